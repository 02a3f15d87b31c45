"""Break-even price and speed of hardware, against closed forms and new solves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest
from tests.parts import first_parts
from tests.planner.builders import owned_pool, region, rent_offer
from tests.planner.questions.tiny import EXACT, engine_table, with_engine_tables
from tests.planner.questions.why_not_asked import HOURS, asked, best_plan, causes, two_kinds
from tests.planner.random_fleets import tiny_case

from fleetplan.fleet.inventory import Fleet
from fleetplan.planner.plan import Plan
from fleetplan.planner.problem import Candidate, build_problem
from fleetplan.planner.questions import fleet_edits
from fleetplan.planner.questions.fleet_question import FleetAnswer
from fleetplan.planner.questions.resolving import Resolver
from fleetplan.planner.questions.why_not.answer import why_not
from fleetplan.planner.questions.why_not.break_even import (
    MOST_SPEED,
    SPEED_RESOLUTION,
    CostWithout,
    price_break_even,
    speed_break_even,
)
from fleetplan.planner.questions.why_not.reasons import Cause
from fleetplan.planner.questions.why_not.subject import Subject, SubjectKind, read_subject
from fleetplan.planner.search import CostThresholds


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
    """A break-even search stops where the optimality gaps decide nothing more."""
    without, today = CostWithout(990.0, 1000.0), told(995.0, 1010.0)
    asked: list[float] = []

    def at_speed(ratio: float, thresholds: CostThresholds | None) -> FleetAnswer:
        asked.append(ratio)
        # Today is not proven not to pay, so a bound that forbids a proof that it pays is enough.
        assert thresholds is not None
        assert thresholds.above_usd == without.least_usd
        return told(970.0, 980.0) if ratio > 8.1 else told(985.0, 995.0)

    speed = speed_break_even(at_speed, without, today)
    assert speed.proven_in is not None
    assert 8.1 < speed.proven_in < 8.1 * 1.21
    assert speed.solves == len(asked) <= 6

    def at_price(ratio: float, thresholds: CostThresholds | None) -> FleetAnswer:
        asked.append(ratio)
        # A plan that saves a quarter of what the gift saves leads on.
        assert thresholds == (None if ratio == 0 else CostThresholds(975.0, 1000.0))
        return told(800.0, 900.0) if ratio == 0 else told(950.0, 992.0)

    asked.clear()
    price = price_break_even(at_price, lambda _: 200.0, without, today)
    # Today's price is not solved again, nor a price above one that is not proven in.
    assert asked == [0.0, 0.5]
    assert price.proven_in == pytest.approx(0.49)


def test_what_is_not_worth_having_as_a_gift() -> None:
    """Energy alone costs more than the other hardware."""
    rates = engine_table([("aggregated", "A", 1, 1.0), ("aggregated", "B", 1, 1.0)])
    rates["power_kw"] = [0.0, 20.0]
    here = region("here", energy_usd_per_kwh=(0.1,))
    answer = asked(two_kinds(table=rates, regions=[here]), "B")
    assert answer.price is not None
    assert answer.price.proven_in is None
    assert answer.price.proven_out == 0.0


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
