"""Why something is not in a plan: reasons by hand, break-evens against closed forms and new solves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from tests.parts import first_parts
from tests.planner.builders import fleet, hardware, owned_pool, region, rent_offer, service
from tests.planner.questions.tiny import EXACT, engine_table, with_engine_tables
from tests.planner.random_fleets import tiny_case

from fleetplan.fleet.errors import InputError
from fleetplan.fleet.inventory import Fleet
from fleetplan.planner.plan import Plan
from fleetplan.planner.problem import Candidate, build_problem
from fleetplan.planner.questions import fleet_edits
from fleetplan.planner.questions.fleet_question import FleetAnswer
from fleetplan.planner.questions.resolving import Resolver
from fleetplan.planner.questions.why_not.answer import WhyNot, why_not
from fleetplan.planner.questions.why_not.assumed_offer import ASSUMED_OFFER
from fleetplan.planner.questions.why_not.break_even import (
    MOST_SPEED,
    SPEED_RESOLUTION,
    Without,
    price_break_even,
    speed_break_even,
)
from fleetplan.planner.questions.why_not.reasons import Cause
from fleetplan.planner.questions.why_not.subject import Subject, SubjectKind, read_subject
from fleetplan.planner.search import Verge
from fleetplan.scenarios.load import load_fleet

HOURS = 2190.0


def best_plan(question: Fleet) -> Plan:
    plan = Resolver(EXACT).solve(question).plan
    assert plan is not None
    return plan


def asked(question: Fleet, text: str, share: float = 0.001) -> WhyNot:
    subject = read_subject(text, question, share)
    resolver = Resolver(EXACT, keep=subject.configurations)
    return why_not(best_plan(question), question, subject, resolver, 60.0)


def causes(answer: WhyNot) -> list[Cause]:
    return [reason.cause for reason in answer.reasons]


def two_kinds(
    usd_b: float = 2.0, table: pd.DataFrame | None = None, demand: float = 30.0, **changes: object
) -> Fleet:
    """A serves 1 request/s for 1 USD/h, B 1.5 requests/s: B belongs in below 1.5 USD/h."""
    rates = engine_table([("aggregated", "A", 1, 1.0), ("aggregated", "B", 1, 1.5)])
    fields: dict[str, object] = {
        "services": [service("chat", demand, engines=rates if table is None else table)],
        "hardware": [hardware("A", 1), hardware("B", 1), hardware("C", 1)],
        "offers": [rent_offer("rent-A", 1.0, hardware="A"), rent_offer("rent-B", usd_b, hardware="B")],
    }
    return fleet(**{**fields, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["B", "rent-B", "hardware:B", "x1-B", "chat/B/x1-B"])
def test_the_break_even_price_is_the_closed_form(text: str) -> None:
    rates = engine_table([("aggregated", "A", 1, 1.0), ("aggregated", "B", 1, 1.5)])
    rates["config"] = ["x1-A", "x1-B"]
    answer = asked(two_kinds(table=rates), text)
    assert causes(answer) == [Cause.PRICE]
    assert answer.extra is not None
    # One B takes the place of one A: 2 - 1 USD/h.
    assert answer.extra.least_usd == pytest.approx(HOURS)
    assert answer.extra.most_usd == pytest.approx(HOURS)
    if answer.subject.kind is not SubjectKind.CONFIGURATION:
        assert answer.price is not None
        assert answer.price.proven_in == pytest.approx(0.75)
        assert answer.price.proven_out == pytest.approx(0.75)


def test_the_break_even_speed_is_the_closed_form() -> None:
    # 14 B at 2 USD/h and 1 A cost a dollar less than 30 A from (30 - 1) / 14 requests/s on.
    answer = asked(two_kinds(), "B")
    exact = 29 / 14 / 1.5
    assert answer.speed is not None
    assert answer.speed.proven_in is not None
    assert answer.speed.proven_out is not None
    assert exact <= answer.speed.proven_in <= exact * SPEED_RESOLUTION
    assert exact / SPEED_RESOLUTION <= answer.speed.proven_out < exact


def told(least_usd: float, most_usd: float) -> FleetAnswer:
    """An answer whose plan is known by its cost and bound alone."""
    question = two_kinds()
    plan = best_plan(question).model_copy(update={"objective_usd": most_usd, "bound_usd": least_usd})
    return FleetAnswer(build_problem(question, ()), plan, False)


def test_break_evens_are_not_searched_closer_than_the_gaps_decide() -> None:
    """For L40S on `quarterly.yaml` 15 solves took six minutes, most of them to the end of their time."""
    without, today = Without(990.0, 1000.0), told(995.0, 1010.0)
    asked: list[float] = []

    def at_speed(ratio: float, verge: Verge | None) -> FleetAnswer:
        asked.append(ratio)
        # Today is not proven not to pay, so a bound that forbids a proof that it pays is enough.
        assert verge is not None
        assert verge.above_usd == without.least_usd
        return told(970.0, 980.0) if ratio > 8.1 else told(985.0, 995.0)

    speed = speed_break_even(at_speed, without, today)
    assert speed.proven_in is not None
    assert 8.1 < speed.proven_in < 8.1 * 1.21
    assert speed.solves == len(asked) <= 6

    def at_price(ratio: float, verge: Verge | None) -> FleetAnswer:
        asked.append(ratio)
        # A plan that saves a quarter of what the gift saves leads on.
        assert verge == (None if ratio == 0 else Verge(975.0, 1000.0))
        return told(800.0, 900.0) if ratio == 0 else told(950.0, 992.0)

    asked.clear()
    price = price_break_even(at_price, lambda _: 200.0, without, today)
    # Today's price is not solved again, nor a price above one that is not proven in.
    assert asked == [0.0, 0.5]
    assert price.proven_in == pytest.approx(0.49)


def test_a_larger_share_costs_more() -> None:
    answer = asked(two_kinds(), "B", share=0.5)
    assert answer.extra is not None
    # 10 B carry 15 requests/s: 20 USD/h for 15.
    assert answer.extra.most_usd == pytest.approx(5 * HOURS)


def test_what_is_not_worth_having_as_a_gift() -> None:
    """Energy alone costs more than the other hardware."""
    rates = engine_table([("aggregated", "A", 1, 1.0), ("aggregated", "B", 1, 1.0)])
    rates["power_kw"] = [0.0, 20.0]
    here = region("here", energy_usd_per_kwh=(0.1,))
    answer = asked(two_kinds(table=rates, regions=[here]), "B")
    assert answer.price is not None
    assert answer.price.proven_in is None
    assert answer.price.proven_out == 0.0


def test_what_is_in_the_plan_is_said_to_be_with_what_it_saves() -> None:
    for text in ("B", "rent-B"):
        answer = asked(two_kinds(usd_b=1.0), text)
        assert sum(row.accelerators for row in answer.used) == 20
        assert answer.reasons == ()
        assert answer.extra is not None
        assert answer.extra.least_usd == pytest.approx(10 * HOURS)


def test_hardware_that_the_fleet_cannot_get_is_priced_as_if_it_could(monkeypatch: pytest.MonkeyPatch) -> None:
    part = "MI300X"
    rates = engine_table([("aggregated", "A", 1, 1.0), ("aggregated", part, 8, 12.0)])
    monkeypatch.setattr(
        "fleetplan.planner.questions.why_not.assumed_offer.price_book",
        lambda: {part: {}},
    )
    answer = asked(two_kinds(table=rates), part)
    assert causes(answer) == [Cause.SUPPLY, Cause.PRICE]
    assert [offer.name for offer in answer.priced] == [ASSUMED_OFFER]
    assert answer.price is not None
    # Two hosts of eight carry 24 requests/s and 6 A the rest, 24 USD/h saved: 1.5 USD/h a card.
    assert answer.price.proven_in == pytest.approx(1.5)
    assert answer.extra is not None
    assert answer.extra.most_usd == pytest.approx((2 * 8 + 6 - 30) * HOURS)


def late(ttft_ms: float) -> pd.DataFrame:
    table = engine_table([("aggregated", "A", 1, 1.0), ("aggregated", "B", 1, 1.5)])
    table["ttft_ms"] = [100.0, ttft_ms]
    return table


def test_a_latency_limit_that_it_misses_is_named_with_the_one_it_needs() -> None:
    question = two_kinds(usd_b=1.0, services=[service("chat", 30.0, engines=late(240.0), ttft_ms=200.0)])
    answer = asked(question, "B")
    assert causes(answer) == [Cause.LATENCY]
    assert [needed.text for needed in answer.latency] == ["TTFT 200 -> 240 ms for chat"]
    (needed,) = answer.latency
    assert needed.extra is not None
    # There 20 B serve everything.
    assert needed.extra.most_usd == pytest.approx(-10 * HOURS)
    relaxed = fleet_edits.latency_limits_changed(question, "chat", lambda _: 240.0, ttft=True, tpot=False)
    assert best_plan(relaxed).objective_usd == pytest.approx(20 * HOURS)


def test_a_policy_that_forbids_it_is_named() -> None:
    rates = engine_table([("aggregated", "A", 1, 1.0), ("prefill", "B", 1, 5.0), ("decode", "B", 1, 5.0)])
    allowed = service("chat", 30.0, engines=rates, allowed_hardware=("A",))
    assert causes(asked(two_kinds(services=[allowed]), "B")) == [Cause.POLICY]
    together = service("chat", 30.0, engines=rates, runtimes=("aggregated",))
    assert causes(asked(two_kinds(services=[together]), "disaggregated")) == [Cause.POLICY]


def test_an_offer_that_brings_nothing_is_forbidden_by_its_maximum() -> None:
    offers = [rent_offer("rent-A", 1.0, hardware="A"), rent_offer("rent-B", 0.1, hardware="B", maximum=0)]
    answer = asked(two_kinds(offers=offers), "rent-B")
    assert causes(answer) == [Cause.SUPPLY, Cause.LIMITS]
    assert answer.conflict is not None
    assert answer.conflict.core is not None
    core = [each.name for each in answer.conflict.core.requirements]
    assert "offer rent-B supplies at most 0 accelerators of B" in core
    gives = [give.text for way, _ in answer.conflict.ways for give in way.gives]
    assert "1 B accelerator more from offer rent-B" in gives


def test_a_dominated_configuration_names_what_replaces_it() -> None:
    rates = engine_table(
        [("aggregated", "A", 1, 1.0), ("aggregated", "A", 2, 1.5), ("aggregated", "B", 1, 1.5)]
    )
    answer = asked(two_kinds(table=rates), "x2")
    assert causes(answer) == [Cause.DOMINATED, Cause.PRICE]
    assert answer.reasons[0].text == "aggregated on A: 2 x x1 (2 requests/s) fit in place of x2 (1.5)"
    assert answer.extra is not None
    # One x2 and 29 x1 on 31 cards.
    assert answer.extra.most_usd == pytest.approx(HOURS)


def test_a_region_that_nobody_asks_in() -> None:
    places = [region("here"), region("there")]
    offers = [rent_offer("rent-A", 1.0, hardware="A", regions=["here", "there"])]
    rates = engine_table([("aggregated", "A", 1, 1.0)])
    answer = asked(two_kinds(regions=places, offers=offers, table=rates), "there")
    assert causes(answer)[0] is Cause.POLICY
    assert causes(answer)[-1] is Cause.LIMITS
    assert asked(two_kinds(regions=places, offers=offers, table=rates), "here").used


def test_names_that_mean_nothing_or_two_things() -> None:
    question = two_kinds(offers=[rent_offer("A", 1.0), rent_offer("B", 2.0)])
    with pytest.raises(InputError, match=r"names 2 different things; write hardware:B or offer:B"):
        read_subject("B", question, 0.1)
    assert read_subject("offer:B", question, 0.1).kind is SubjectKind.OFFER
    with pytest.raises(InputError, match=r"not a hardware kind, offer, runtime.*'MI300X'"):
        read_subject("MI-300Y", question, 0.1)
    # A name that others give a part is that part.
    assert read_subject("MI-300X", question, 0.1).name == "MI300X"
    with pytest.raises(InputError, match=r"did you mean 'x1'"):
        read_subject("X-1", question, 0.1)


def cheaper(question: Fleet, subject: Subject, ratio: float) -> Plan:
    return best_plan(fleet_edits.price_scaled(question, ratio, subject.offers))


def faster(question: Fleet, subject: Subject, ratio: float) -> Plan:
    def change(candidate: Candidate) -> Candidate:
        if not subject.matches(candidate):
            return candidate
        return replace(candidate, requests_per_s=tuple(rate * ratio for rate in candidate.requests_per_s))

    plan = Resolver(EXACT).solve(question, change).plan
    assert plan is not None
    return plan


@pytest.mark.parametrize(
    ("seeds", "least"),
    first_parts(
        (
            # Of the first twenty those that have break-evens of every kind between them.
            ((8, 10, 17), {"in": 3, "out": 3, "speed": 1, "extra": 3}),
            (range(80), {"in": 4, "out": 8, "speed": 2, "extra": 8}),
        ),
        1,
    ),
    ids=("first", "all"),
)
def test_break_evens_of_random_fleets_hold_when_they_are_solved(
    seeds: Sequence[int], least: Mapping[str, int]
) -> None:
    """Without any force, what is proven in is chosen and saves, and what is proven out saves nothing."""
    checked: Mapping[str, list[int]] = {"in": [], "out": [], "speed": [], "extra": []}
    for seed in seeds:
        question = with_engine_tables(tiny_case(seed))
        free = Resolver(EXACT).solve(question)
        if free.plan is None:
            continue
        for kind in question.hardware:
            subject = (
                read_subject(f"hardware:{kind}", question, 0.001)
                if kind_is_supplied(question, kind)
                else None
            )
            if subject is None or subject.used_in(free.plan):
                continue
            answer = why_not(free.plan, question, subject, Resolver(EXACT), 20.0)
            if answer.extra is not None:
                checked["extra"].append(seed)
                assert answer.extra.least_usd == pytest.approx(answer.extra.most_usd, rel=1e-6, abs=0.5)
            if answer.price is not None and answer.price.proven_in and answer.price.proven_in < 1:
                plan = cheaper(question, subject, answer.price.proven_in * 0.999)
                assert subject.used_in(plan), seed
                assert plan.objective_usd < free.plan.objective_usd
                checked["in"].append(seed)
            if answer.price is not None and answer.price.proven_out is not None:
                plan = cheaper(question, subject, min(1.0, answer.price.proven_out * 1.001))
                assert plan.objective_usd == pytest.approx(free.plan.objective_usd, rel=1e-6), seed
                checked["out"].append(seed)
            if answer.speed is not None and answer.speed.proven_in is not None and answer.speed.proven_out:
                assert (
                    faster(question, subject, answer.speed.proven_in).objective_usd < free.plan.objective_usd
                )
                slow = faster(question, subject, answer.speed.proven_out)
                assert slow.objective_usd == pytest.approx(free.plan.objective_usd, rel=1e-6), seed
                assert answer.speed.proven_in <= MOST_SPEED
                checked["speed"].append(seed)
    assert all(len(checked[name]) >= count for name, count in least.items())


def kind_is_supplied(question: Fleet, kind: str) -> bool:
    return kind in {pool.hardware for pool in question.pools} | {offer.hardware for offer in question.offers}


def test_owned_hardware_that_stands_idle_has_no_price_but_a_speed() -> None:
    rates = engine_table([("aggregated", "A", 1, 1.0), ("aggregated", "B", 1, 1.0)])
    rates["power_kw"] = [0.5, 20.0]
    here = region("here", energy_usd_per_kwh=(0.1,))
    question = two_kinds(
        table=rates,
        regions=[here],
        pools=[owned_pool("own", 40, 1000.0, hardware="B", per_host=1)],
        offers=[rent_offer("rent-A", 1.0, hardware="A")],
    )
    answer = asked(question, "B")
    assert answer.price is None
    assert answer.speed is not None
    assert answer.speed.proven_in == pytest.approx(2.0 / 1.05, rel=0.02)


def test_a_configuration_that_the_framework_cannot_run_says_so(tmp_path: Path) -> None:
    path = tmp_path / "fleet.yaml"
    path.write_text(
        """\
version: 1
offers: [{name: o, hardware: MI300X, per: accelerator, rent_usd_per_accelerator_hour: 2}]
services:
  - name: chat
    model: llama3-8b
    workload: {input_tokens: 500, output_tokens: 50}
    slo: {tpot_ms: 50}
    demand: 5
""",
        encoding="utf-8",
    )
    question = load_fleet(str(path))
    answer = asked(question, "DP4-TP4 b8")
    assert causes(answer) == [Cause.SHAPE] * 3
    first = answer.reasons[0]
    assert first.service == "chat"
    assert "cannot run DP4-TP4 for prefill: attention data parallelism" in first.text
    assert "data_parallel_deployment" in first.text
    assert answer.forced is None
    with pytest.raises(InputError, match="is not a hardware kind"):
        asked(question, "DP4 x")
