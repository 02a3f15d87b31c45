"""`plan compare`: counterfactuals worked out by hand, each one's rule holding in its plan."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from rich.console import Console
from tests.parts import first_parts
from tests.planner.builders import (
    HOURS_PER_QUARTER,
    fleet,
    hardware,
    owned_pool,
    region,
    rent_offer,
    service,
)

from fleetplan.fleet.catalog import accelerators
from fleetplan.fleet.errors import InputError
from fleetplan.fleet.figures import money
from fleetplan.fleet.inventory import Fleet, Hardware, Service
from fleetplan.planner import cli
from fleetplan.planner.api import NoPlanFoundError, Planned, Purpose
from fleetplan.planner.plan import Infeasible, Plan
from fleetplan.planner.questions import compare
from fleetplan.planner.questions.comparison import Compared, Comparison, Saving
from fleetplan.planner.questions.counterfactuals import Counterfactual, Sources, counterfactual
from fleetplan.planner.report.compare_console import print_comparison
from fleetplan.planner.search.result import SearchLimits

EXACT = SearchLimits(time_limit_s=30.0, gap_ratio=0.0, workers=1)
RULES = ("homogeneous", "no-disaggregation", "single-vendor")
RATES = {
    ("prefill", "A"): 10.0,
    ("decode", "A"): 4.0,
    ("prefill", "B"): 12.0,
    ("decode", "B"): 20.0,
    ("aggregated", "A"): 2.0,
    ("aggregated", "B"): 6.0,
}
"""Requests/s an accelerator: A reads prompts well, B generates."""


def engines(rates: Mapping[tuple[str, str], float], ttft_ms: float | None = None) -> pd.DataFrame:
    return pd.DataFrame(
        [
            {
                "phase": phase,
                "hardware": kind,
                "config": "x1",
                "accelerators_per_replica": 1,
                "requests_per_s": rate,
                "ttft_ms": ttft_ms,
            }
            for (phase, kind), rate in rates.items()
        ]
    )


def chat(demand: float = 120.0, rates: Mapping[tuple[str, str], float] = RATES, **changes: object) -> Service:
    return service("chat", demand, engines=engines(rates), **changes)


def vendored(name: str, vendor: str) -> Hardware:
    part = replace(accelerators()["H100-SXM"], name=name, vendor=vendor)
    return Hardware(name, 1, part, None)


def two_kinds(usd_a: float = 1.0, usd_b: float = 2.0, services: Sequence[Service] = ()) -> Fleet:
    return fleet(
        services=services or [chat()],
        hardware=[vendored("A", "one"), vendored("B", "two")],
        offers=[rent_offer("A", usd_a), rent_offer("B", usd_b)],
    )


def no_scenario(name: str) -> Fleet:
    raise AssertionError(name)


def named(
    question: Fleet, *texts: str, plan: Plan | None = None, scenarios: Mapping[str, Fleet] | None = None
) -> list[Counterfactual]:
    def read(_: Path) -> Plan:
        assert plan is not None
        return plan

    known = scenarios or {}
    sources = Sources(tuple(known), known.__getitem__ if known else no_scenario, read)
    return [counterfactual(text, question, sources) for text in texts]


def compared(question: Fleet, *texts: str, **sources: object) -> Comparison:
    return compare.compare(question, named(question, *texts, **sources), EXACT)  # type: ignore[arg-type]


def only(found: Comparison) -> Compared:
    (row,) = found.rows
    return row


def plan_of(outcome: Plan | Infeasible | None) -> Plan:
    assert isinstance(outcome, Plan)
    return outcome


def chosen_plan(row: Compared) -> Plan:
    assert row.chosen is not None
    return plan_of(row.chosen.plan)


def hourly(plan: Plan) -> float:
    return plan.objective_usd / HOURS_PER_QUARTER


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


def test_the_same_question_is_solved_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    solve = compare.solve_problem

    def counted(*arguments: object) -> Planned:
        asked.append(arguments)
        return solve(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(compare, "solve_problem", counted)
    found = compared(two_kinds(), "homogeneous", "single-vendor", "without:A", "without:B")
    assert len(asked) == 3
    assert [hourly(chosen_plan(row)) for row in found.rows] == pytest.approx([32.0, 32.0, 32.0, 42.0])


def test_the_interval_of_the_saving_holds_both_gaps(monkeypatch: pytest.MonkeyPatch) -> None:
    solve = compare.solve_problem

    def with_a_gap(*arguments: object) -> Planned:
        planned = solve(*arguments)  # type: ignore[arg-type]
        plan = plan_of(planned.outcome)
        return replace(planned, outcome=plan.model_copy(update={"bound_usd": 0.9 * plan.objective_usd}))

    monkeypatch.setattr(compare, "solve_problem", with_a_gap)
    saving = only(compared(two_kinds(), "without:A")).saving
    assert saving is not None
    hours = HOURS_PER_QUARTER
    # The plan costs 24 and at least 21.6, the other 32 and at least 28.8.
    assert saving.usd == pytest.approx(8 * hours)
    assert saving.least_usd == pytest.approx(4.8 * hours)
    assert saving.most_usd == pytest.approx(10.4 * hours)


def test_an_option_without_a_plan_in_time_may_still_be_the_cheapest(monkeypatch: pytest.MonkeyPatch) -> None:
    solve = compare.solve_problem

    def in_vain_on_a(candidates: object, problem: object, *rest: object) -> Planned:
        if {each.hardware for each in problem.candidates} == {"A"}:  # type: ignore[attr-defined]
            raise NoPlanFoundError("no plan within 1 s")
        return solve(candidates, problem, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(compare, "solve_problem", in_vain_on_a)
    row = only(compared(two_kinds(), "homogeneous"))
    assert hourly(chosen_plan(row)) == pytest.approx(32.0)
    assert row.bound_usd == pytest.approx(24 * HOURS_PER_QUARTER)
    assert row.saving is not None
    assert not row.saving.proven
    assert [(trial.infeasible, trial.reasons) for trial in row.trials if trial.plan is None] == [
        (False, ("no plan within 1 s",))
    ]


def test_rows_are_known_as_they_are_solved_and_ctrl_c_ends_the_question(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    solve = compare.solve_problem
    purposes: list[object] = []

    def interrupted_at_the_third(*arguments: object) -> Planned:
        purposes.append(arguments[-1])
        if len(purposes) == 3:
            raise KeyboardInterrupt
        return solve(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(compare, "solve_problem", interrupted_at_the_third)
    question, known = two_kinds(), list[int]()
    with pytest.raises(KeyboardInterrupt):
        compare.compare(
            question,
            named(question, "without:A", "without:B"),
            EXACT,
            note=lambda found: known.append(len(found.rows)),
        )
    assert known == [0, 1]
    # Ctrl-C keeps the best plan of the fleet itself, and ends the question after that.
    assert purposes == [Purpose.ANSWER, Purpose.ROW, Purpose.ROW]


def test_infeasible_for_want_of_a_configuration() -> None:
    row = only(compared(two_kinds(services=[chat(runtimes=("disaggregated",))]), "no-disaggregation"))
    assert row.chosen is None
    assert row.saving is None
    (trial,) = row.trials
    assert trial.infeasible
    assert trial.reasons == (
        "chat (all) in here: no configuration that is allowed meets its limits and fits memory",
    )


def test_infeasible_for_want_of_a_phase_or_of_a_pool_in_the_region() -> None:
    phases = {("prefill", "A"): 10.0, ("decode", "B"): 20.0}
    row = only(compared(two_kinds(services=[chat(rates=phases)]), "without:A"))
    assert row.trials[0].reasons == ("chat (all) in here: only decode is left, not the other phase",)
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
        "chat (all) in here now: 48 of 120 requests/s unserved; missing: hardware (what can serve it "
        "is fully used, or arrives later); additional capacity needed: 7 B accelerators",
    )


def test_different_unmet_demand_is_no_saving() -> None:
    question = replace(two_kinds(), offers=(rent_offer("A", 1.0), rent_offer("B", 2.0, maximum=10)))
    lenient = replace(question, policy=replace(question.policy, unmet="penalise"))
    row = only(compared(lenient, "without:A"))
    assert [each.requests_per_s for each in chosen_plan(row).unmet] == [pytest.approx(48.0)]
    assert row.saving is None
    assert "different demand unmet" in row.notes[-1]


def test_candidates_are_evaluated_once(monkeypatch: pytest.MonkeyPatch) -> None:
    evaluated = []
    build = compare.kept_candidates

    def counted(question: Fleet, *rest: object) -> object:
        evaluated.append(question)
        return build(question, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(compare, "kept_candidates", counted)
    question = two_kinds()
    dearer = replace(question, offers=(rent_offer("A", 2.0), rent_offer("B", 4.0)))
    found = compared(
        question, *RULES, "without:A", "more", "dearer",
        scenarios={"more": replace(question, services=(chat(240.0),)), "dearer": dearer},
    )  # fmt: skip
    assert len(evaluated) == 1
    more, both = found.rows[-2:]
    assert [hourly(chosen_plan(row)) for row in (more, both)] == [pytest.approx(48.0)] * 2
    assert more.notes == ("it serves another demand: 240 for 120 requests/s over all services and periods",)
    assert both.notes == ()
    slower = {key: rate / 2 for key, rate in RATES.items()}
    halved = replace(question, services=(chat(rates=slower),))
    row = only(compared(question, "slower", scenarios={"slower": halved}))
    assert len(evaluated) == 3
    assert hourly(chosen_plan(row)) == pytest.approx(48.0)


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


FLEET = """
version: 1
name: two-kinds
hardware: {A: {accelerators_per_host: 1}, B: {accelerators_per_host: 1}}
offers:
  - {name: a, hardware: A, per: accelerator, rent_usd_per_accelerator_hour: 1}
  - {name: b, hardware: B, per: accelerator, rent_usd_per_accelerator_hour: 2}
services:
  - {name: chat, engines: engines.csv, demand: 120}
scenarios:
  more: {services: [{name: chat, demand: 240}]}
"""


def run(*arguments: object) -> int:
    with pytest.raises(SystemExit) as stopped:
        cli.main(["compare", *map(str, arguments)])
    return int(stopped.value.code or 0)


@pytest.fixture
def fleet_file(tmp_path: Path) -> Path:
    engines(RATES).drop(columns="ttft_ms").to_csv(tmp_path / "engines.csv", index=False)
    path = tmp_path / "fleet.yaml"
    path.write_text(FLEET, encoding="utf-8")
    return path


def test_the_command_prints_a_line_for_each_and_writes_their_plans(
    fleet_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = fleet_file.parent / "out"
    against = ["--against", "homogeneous", "--against", "more", "--against", "without:A"]
    assert run(fleet_file, *against, "--out", out, "--gap", "0") == 0
    printed = capsys.readouterr().out
    assert "homogeneous (B)" in printed
    assert "+$17.52 k (+25.0%)" in printed
    assert "another demand: 240 for 120" in printed
    assert "accelerators in use: A 0 -> 12, B 16 -> 6" in printed
    plans = {path.parent.name: Plan.read(path) for path in sorted(out.glob("*/plan.json"))}
    assert {name: hourly(plan) for name, plan in plans.items()} == pytest.approx(
        {"plan": 24.0, "against-homogeneous": 32.0, "against-more": 48.0, "against-without-A": 32.0}
    )
    # A plan that it wrote is a counterfactual of the next question.
    assert run(fleet_file, "--against", out / "against-homogeneous" / "plan.json") == 0


def test_the_command_says_what_hardware_that_stands_idle_costs(
    fleet_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # 12 A are rented already: they cost 12 USD an hour of the 44 where nothing may run on them.
    pool = "pools=[{name: own, hardware: A, accelerators: 12, rented: {usd_per_accelerator_hour: 1}}]"
    assert run(fleet_file, "--against", "without:A", "--set", pool) == 0
    assert (
        "$26.28 k pays for owned or rented hardware that runs nothing; without it the TCO would be $70.08 k"
        in (capsys.readouterr().out)
    )


def test_the_command_exits_with_2_for_every_mistake_at_once(
    fleet_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(fleet_file, "--against", "les", "--against", "nowhere.json", "--against", "without:C") == 2
    errors = capsys.readouterr().err
    assert all(text in errors for text in ("--against les", "nowhere.json", "no pool or offer supplies 'C'"))


def test_the_command_says_that_the_fleet_itself_is_infeasible(
    fleet_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    limited = ["--set", "offers.a.max_accelerators=1", "--set", "offers.b.max_accelerators=1"]
    assert run(fleet_file, "--against", "homogeneous", *limited) == 3
    assert "cannot be served" in capsys.readouterr().out


def test_the_command_says_what_an_infeasible_counterfactual_lacks(
    fleet_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    limited = ["--set", "offers.b.max_accelerators=6"]
    assert run(fleet_file, "--against", "without:A", *limited) == 0
    printed = capsys.readouterr().out
    assert "infeasible" in printed
    assert "requests/s unserved" in printed


def test_a_plan_in_force_counts_in_every_fleet_that_is_compared() -> None:
    """Starting a card costs 4,380 USD, two dollars an hour; 16 B run already."""
    question = two_kinds()
    question = replace(question, policy=replace(question.policy, transition_usd_per_accelerator=4380.0))
    (homogeneous,) = named(question, "homogeneous")
    running = chosen_plan(only(compare.compare(question, [homogeneous], EXACT)))
    found = compare.compare(question, [homogeneous], EXACT, baseline=running)
    row = only(found)
    # 12 A and 6 B would start 12 cards: 24 + 24 USD/h against 32 of the B that run.
    assert hourly(plan_of(found.outcome)) == pytest.approx(32.0)
    assert row.saving is not None
    assert row.saving.usd == pytest.approx(0.0, abs=1e-6)
    assert {trial.label: hourly(plan_of(trial.plan)) for trial in row.trials} == pytest.approx(
        {"A": 42.0 + 42 * 2.0, "B": 32.0}
    )


def many_kinds(seed: int) -> Fleet:
    """Three kinds of hardware at random rates and prices; each can serve everything alone."""
    drawn = random.Random(seed)
    phases = ("prefill", "decode", "aggregated")
    rates = {(phase, kind): drawn.uniform(2.0, 12.0) for phase in phases for kind in "ABC"}
    code = service("code", drawn.uniform(5.0, 90.0), engines=engines(rates))
    return fleet(
        services=[chat(drawn.uniform(80.0, 400.0), rates), code],
        hardware=[vendored(kind, f"vendor {kind}") for kind in "ABC"],
        offers=[rent_offer(kind, drawn.uniform(0.8, 2.5)) for kind in "ABC"],
    )


def offering(question: Fleet, kind: str) -> Fleet:
    return replace(question, offers=tuple(each for each in question.offers if each.hardware == kind))


@pytest.mark.parametrize("seed", first_parts(range(6), 2))
def test_options_that_are_dearer_for_certain_change_no_saving(seed: int) -> None:
    question = many_kinds(seed)
    row = only(compared(question, "homogeneous"))
    # Every option alone, solved to its end.
    labels = [trial.label for trial in row.trials]
    each_alone = [compare.compare(offering(question, label), [], EXACT).outcome for label in labels]
    alone = {label: plan_of(found).objective_usd for label, found in zip(labels, each_alone, strict=True)}
    assert row.saving is not None
    assert chosen_plan(row).objective_usd == pytest.approx(min(alone.values()))
    assert row.bound_usd == pytest.approx(min(alone.values()))
    for trial in row.trials:
        plan = plan_of(trial.plan)
        assert plan.bound_usd <= alone[trial.label] * (1 + 1e-9)
        assert plan.objective_usd >= alone[trial.label] * (1 - 1e-9)
        if not trial.dearer:
            assert plan.objective_usd == pytest.approx(alone[trial.label])


def test_a_dearer_option_is_told_as_a_range(capsys: pytest.CaptureFixture[str]) -> None:
    found = compared(two_kinds(), "homogeneous")
    row = only(found)
    (cheap, dear) = sorted(row.trials, key=lambda trial: plan_of(trial.plan).objective_usd)
    loose = plan_of(dear.plan).model_copy(update={"bound_usd": plan_of(cheap.plan).objective_usd})
    trials = (cheap, replace(dear, plan=loose, dearer=True))
    print_comparison(plan_of(found.outcome), (replace(row, trials=trials),), Console(width=120))
    told = capsys.readouterr().out
    assert f"{money(loose.bound_usd)} to {money(loose.objective_usd)}, dearer than the cheapest" in told


@pytest.mark.parametrize(("usd", "advised"), [(0.0, False), (5.0, True)])
def test_a_smaller_gap_is_advised_between_plans_of_different_cost(
    usd: float, advised: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    found = compared(two_kinds(), "homogeneous")
    saving = Saving(usd=usd, least_usd=usd - 9.0, most_usd=usd + 9.0, of_usd=1000.0)
    print_comparison(plan_of(found.outcome), (replace(only(found), saving=saving),), Console(width=120))
    assert ("try a smaller --gap" in capsys.readouterr().out) == advised


def test_an_option_is_not_searched_once_another_one_costs_less(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[SearchLimits] = []
    first = compare.solve_problem

    def noted(candidates: Any, problem: Any, limits: SearchLimits, *others: Any) -> Planned:
        asked.append(limits)
        return first(candidates, problem, limits, *others)

    monkeypatch.setattr(compare, "solve_problem", noted)
    row = only(compared(two_kinds(), "homogeneous"))
    of_plan, *of_options = asked
    assert of_plan.verge is None
    assert [limits.verge is None for limits in of_options] == [True] + [False] * (len(of_options) - 1)
    assert of_options[-1].verge is not None
    costs = [plan_of(trial.plan).objective_usd for trial in row.trials]
    assert of_options[-1].verge.above_usd in costs


def test_hardware_to_do_without_has_any_of_its_names() -> None:
    question = fleet(
        services=[chat()],
        hardware=[vendored("H20-SXM", "one"), vendored("B", "two")],
        offers=[rent_offer("H20-SXM", 1.0), rent_offer("B", 2.0)],
    )
    (found,) = named(question, "without:H20")
    assert found.definition == "nothing runs on H20-SXM, whether owned or rented"
