"""`plan compare`: counterfactuals against hand calculations, each with its rule satisfied."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.planner.builders import HOURS_PER_QUARTER, fleet, hardware, owned_pool, region, rent_offer
from tests.planner.questions.comparing import (
    RATES,
    chat,
    chosen_plan,
    compared,
    hourly,
    named,
    only,
    plan_of,
    two_kinds,
    vendored,
)

from fleetplan.fleet.errors import InputError
from fleetplan.planner.plan import Plan

# Prices in USD an hour; 120 requests/s take 12 A and 30 A, 10 B and 6 B, for prefill and decode.
BREAK_EVEN_WITH_B = RATES["prefill", "A"] / RATES["prefill", "B"]
"""Price of A over that of B below which prompts on A and tokens on B beat B alone: a/PA < b/PB."""


BREAK_EVEN_WITH_A = RATES["decode", "A"] / RATES["decode", "B"]
"""The same above which they beat A alone: b/DB < a/DA."""


@pytest.mark.parametrize(
    ("ratio", "heterogeneous"),
    [
        (BREAK_EVEN_WITH_A * 0.99, False),
        (BREAK_EVEN_WITH_A * 1.01, True),
        (16 / 42, True),
        (BREAK_EVEN_WITH_B * 0.99, True),
        (BREAK_EVEN_WITH_B * 1.01, False),
    ],
)
def test_the_break_even_price_of_two_kinds_is_the_closed_form(ratio: float, heterogeneous: bool) -> None:
    disaggregated = {key: rate for key, rate in RATES.items() if key[0] != "aggregated"}
    usd_b = 3.0
    usd_a = ratio * usd_b
    found = compared(two_kinds(usd_a, usd_b, [chat(rates=disaggregated)]), "homogeneous")
    one_kind = min(42 * usd_a, 16 * usd_b)
    mixed = min(one_kind, 12 * usd_a + 6 * usd_b)
    assert hourly(plan_of(found.outcome)) == pytest.approx(mixed)
    row = only(found)
    assert hourly(chosen_plan(row)) == pytest.approx(one_kind)
    assert row.saving is not None
    assert row.saving.usd == pytest.approx((one_kind - mixed) * HOURS_PER_QUARTER, abs=1e-6)
    assert (row.saving.least_usd > 1) is heterogeneous


def test_the_homogeneous_fleet_is_the_cheapest_of_all_kinds() -> None:
    row = only(compared(two_kinds(), "homogeneous"))
    assert {trial.label: hourly(plan_of(trial.plan)) for trial in row.trials} == pytest.approx(
        {"A": 42.0, "B": 32.0}
    )
    assert row.chosen is not None
    assert row.chosen.label == "B"
    for trial in row.trials:
        assert {each.hardware for each in plan_of(trial.plan).placements} == {trial.label}


def test_without_disaggregation_every_replica_is_aggregated() -> None:
    # 60 A at 1 USD or 20 B at 2 USD, for 12 A and 6 B.
    found = compared(two_kinds(), "no-disaggregation")
    assert hourly(plan_of(found.outcome)) == pytest.approx(24.0)
    row = only(found)
    assert hourly(chosen_plan(row)) == pytest.approx(40.0)
    assert {each.phase for each in chosen_plan(row).placements} == {"aggregated"}
    assert row.saving is not None
    assert row.saving.ratio(row.saving.usd) == pytest.approx(0.4)


def test_a_single_vendor_may_have_several_kinds() -> None:
    question = two_kinds()
    third = replace(
        question,
        hardware={**question.hardware, "C": vendored("C", "one")},
        offers=(*question.offers, rent_offer("C", 2.5)),
        services=(chat(rates={**RATES, ("decode", "C"): 20.0}),),
    )
    row = only(compared(third, "single-vendor"))
    # Prompts on 12 A, tokens on 6 C, both of the first vendor.
    assert row.chosen is not None
    assert row.chosen.label == "one"
    assert {each.hardware for each in chosen_plan(row).placements} == {"A", "C"}
    assert hourly(chosen_plan(row)) == pytest.approx(12 + 15)


def test_without_a_kind_nothing_runs_on_it() -> None:
    row = only(compared(two_kinds(), "without:A"))
    assert {each.hardware for each in chosen_plan(row).placements} == {"B"}
    assert hourly(chosen_plan(row)) == pytest.approx(32.0)


def test_what_stands_already_is_paid_for_all_the_same() -> None:
    question = replace(two_kinds(), pools=(owned_pool("own-a", 12, 16 * 100.0, hardware="A", per_host=1),))
    row = only(compared(question, "without:A"))
    assert row.stranded_usd == pytest.approx(12 * 100.0)
    assert chosen_plan(row).objective_usd == pytest.approx(32 * HOURS_PER_QUARTER + 12 * 100.0)


def test_a_plan_in_force_keeps_its_configurations() -> None:
    old = plan_of(compared(two_kinds(usd_a=10.0)).outcome)
    assert {each.hardware for each in old.placements} == {"B"}
    row = only(compared(two_kinds(services=[chat(240.0)]), "old.json", plan=old))
    ran = {(each.phase, each.hardware, each.config) for each in old.placements}
    assert {(each.phase, each.hardware, each.config) for each in chosen_plan(row).placements} <= ran
    assert hourly(chosen_plan(row)) == pytest.approx(64.0)


def test_the_difference_leads_from_the_counterfactual_to_the_plan() -> None:
    found = compared(two_kinds(), "without:A")
    difference = only(found).difference
    assert difference is not None
    added = [each for each in difference.changes if each.action.value == "+"]
    assert all("A" in each.name for each in added)
    assert difference.tco.delta_usd == pytest.approx(-8 * HOURS_PER_QUARTER)


def test_a_counterfactual_that_leaves_nothing_out_is_the_plan() -> None:
    aggregated = {key: rate for key, rate in RATES.items() if key[0] == "aggregated"}
    found = compared(two_kinds(services=[chat(rates=aggregated)]), "no-disaggregation")
    row = only(found)
    assert chosen_plan(row) is found.outcome
    assert row.saving is not None
    assert (row.saving.usd, row.saving.proven) == (0.0, True)


def test_infeasible_for_want_of_a_configuration() -> None:
    row = only(compared(two_kinds(services=[chat(runtimes=("disaggregated",))]), "no-disaggregation"))
    assert row.chosen is None
    assert row.saving is None
    (trial,) = row.trials
    assert trial.infeasible
    assert trial.reasons == ("chat (all) in here: no allowed configuration meets its limits and fits memory",)


def test_infeasible_for_want_of_a_phase_or_of_a_pool_in_the_region() -> None:
    phases = {("prefill", "A"): 10.0, ("decode", "B"): 20.0}
    row = only(compared(two_kinds(services=[chat(rates=phases)]), "without:A"))
    assert row.trials[0].reasons == (
        "chat (all) in here: only decode configurations remain, none of the other phase",
    )
    question = fleet(
        services=[chat(regions=("here", "there"))],
        hardware=[vendored("A", "one"), vendored("B", "two")],
        offers=[rent_offer("A", 1.0, regions=("here", "there")), rent_offer("B", 2.0)],
        regions=[region("here"), region("there")],
    )
    row = only(compared(question, "without:A"))
    assert row.trials[0].reasons == (
        "chat (all) in there: the region has no pool or offer of suitable hardware (B)",
    )


def test_infeasible_for_want_of_hardware_says_how_much() -> None:
    question = replace(two_kinds(), offers=(rent_offer("A", 1.0), rent_offer("B", 2.0, maximum=10)))
    found = compared(question, "without:A")
    assert isinstance(found.outcome, Plan)
    (trial,) = only(found).trials
    assert trial.infeasible
    # 6 + 4 B carry 72 of the 120 requests/s; 48 more take 4 + 3 of them.
    assert trial.reasons == (
        "chat (all) in here now: 48 of 120 requests/s unserved; missing: hardware (all that can serve it "
        "is in use, or arrives later); additional capacity needed: 7 B accelerators",
    )


@pytest.mark.parametrize(
    ("text", "hint"),
    [("homogenous", "did you mean 'homogeneous'?"), ("without:a", "did you mean 'A'?")],
)
def test_what_names_nothing_is_refused(text: str, hint: str) -> None:
    with pytest.raises(InputError, match="--against") as refused:
        named(two_kinds(), text)
    assert hint in str(refused.value)


def test_single_vendor_needs_vendors() -> None:
    question = replace(two_kinds(), hardware={"A": hardware("A", 1), "B": hardware("B", 1)})
    with pytest.raises(InputError, match="the vendor of A is not known"):
        named(question, "single-vendor")


def test_hardware_to_do_without_has_any_of_its_names() -> None:
    question = fleet(
        services=[chat()],
        hardware=[vendored("H20-SXM", "one"), vendored("B", "two")],
        offers=[rent_offer("H20-SXM", 1.0), rent_offer("B", 2.0)],
    )
    (found,) = named(question, "without:H20")
    assert found.definition == "nothing runs on H20-SXM, whether owned or rented"
