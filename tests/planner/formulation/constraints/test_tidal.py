"""Family 8 within a day: replicas that change from slice to slice, free, at a cost, or up to a limit."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from tests.oracles.highs import highs_usd
from tests.planner.builders import by_case, candidate, fleet, hardware, rent_offer, service
from tests.planner.families import solved_example
from tests.planner.family_examples import EXAMPLES, HALVES
from tests.planner.solving import solve

from fleetplan.fleet.inventory import Demand, Finance, Fleet, Service, Slice, Tidal
from fleetplan.planner.plan import Plan
from fleetplan.planner.problem import build_problem
from fleetplan.planner.verify import verify

RENT_USD = 2190.0
DAYS = 365 / 4
RUNS = (candidate("day", "A", 1.0), candidate("night", "A", 1.0))


def shifts(tidal: Tidal | None = None, slices: tuple[Slice, ...] = HALVES) -> Fleet:
    """Two replicas by day for one service, two by night for the other."""
    question = EXAMPLES["tidal"]().fleet
    return replace(question, slices=slices, policy=replace(question.policy, tidal=tidal or Tidal()))


def asleep(service: Service, *parts: str) -> Demand:
    """The demand of a service without that of some slices."""
    peak = service.demand.peak
    return by_case(peak, {(part, None): dict.fromkeys(peak, 0.0) for part in parts})


def planned(question: Fleet) -> Plan:
    plan = solve(question, RUNS).plan
    assert plan is not None
    return plan


def test_the_example_has_its_optimum() -> None:
    solved = solved_example("tidal")
    assert solved.plan is not None
    assert sum(max(0, row.accelerators) for row in solved.plan.tides) == 2
    assert solved.plan.cost_breakdown["tidal"] == pytest.approx(2 * DAYS * 10.0)


def test_replicas_change_freely_unless_the_policy_says_otherwise() -> None:
    plan = planned(shifts())
    assert plan.objective_usd == pytest.approx(2 * RENT_USD)
    assert {(row.service, row.slice): row.replicas for row in plan.placements} == {
        ("day", "day"): 2,
        ("night", "night"): 2,
    }
    # The rent of each hour goes to the service that runs in it.
    assert [row.usd for row in plan.placements] == pytest.approx([RENT_USD, RENT_USD])


@pytest.mark.parametrize(
    ("usd", "shared"),
    [(2190 / (2 * DAYS) - 0.01, 2), (2190 / (2 * DAYS) + 0.01, 0)],
)
def test_sharing_ends_where_two_starts_a_day_cost_an_accelerator(usd: float, shared: int) -> None:
    plan = planned(shifts(Tidal(usd)))
    assert plan.objective_usd == pytest.approx((4 - shared) * RENT_USD + shared * 2 * DAYS * usd)


@pytest.mark.parametrize(("share", "rented"), [(0.0, 4), (0.3, 4), (0.34, 3), (0.99, 3), (1.0, 2)])
def test_at_most_a_share_of_a_pool_changes(share: float, rented: int) -> None:
    plan = planned(shifts(Tidal(0.0, share)))
    assert plan.objective_usd == pytest.approx(rented * RENT_USD)


def test_the_day_is_a_circle() -> None:
    # In three slices of eight hours the night service starts once and ends once, over midnight too.
    slices = (Slice("late", 8.0), Slice("day", 8.0), Slice("night", 8.0))
    question = shifts(Tidal(1.0), slices)
    night = replace(question.services[1], demand=asleep(question.services[1], "day"))
    day = replace(question.services[0], demand=asleep(question.services[0], "late", "night"))
    plan = planned(replace(question, services=(day, night)))
    assert plan.objective_usd == pytest.approx(2 * RENT_USD + 4 * DAYS * 1.0)
    assert sorted((row.slice, row.service) for row in plan.tides if row.accelerators > 0) == [
        ("day", "day"),
        ("night", "night"),
    ]


@pytest.mark.parametrize("tidal", [Tidal(1000.0), Tidal(0.0, 0.0)])
def test_nothing_starts_within_days_of_a_single_slice(tidal: Tidal) -> None:
    # From the days of one kind to those of the other replicas change freely, as often as these take turns.
    kinds = (
        Slice("day", 24.0, "weekday", Fraction(5, 7)),
        Slice("night", 24.0, "weekend", Fraction(2, 7)),
    )
    solved = solve(shifts(tidal, kinds), RUNS)
    assert solved.plan is not None
    assert solved.plan.objective_usd == pytest.approx(2 * RENT_USD)
    assert solved.plan.bound_usd == pytest.approx(2 * RENT_USD)
    assert solved.plan.tides == ()


def test_changes_are_discounted_like_running_cost() -> None:
    question = replace(shifts(Tidal(1.0)), finance=Finance(discount_rate_per_year=0.1))
    plan = planned(question)
    assert plan.cost_breakdown["tidal"] == pytest.approx(4 * DAYS / 1.1**0.25)


def test_a_replica_may_stand_idle_for_a_slice_rather_than_start_again() -> None:
    demand = {("here", "now", "all"): 2.0}
    half = {("night", None): {("here", "now", "all"): 0.5}}
    question = fleet(
        services=[service("chat", demand, ratios=half)],
        hardware=[hardware("A", 1)],
        offers=[rent_offer("A", 1.0)],
        slices=HALVES,
        policy={"tidal": Tidal(0.01)},
    )
    plan = solve(question, (candidate("chat", "A", 1.0),)).plan
    assert plan is not None
    assert [row.replicas for row in plan.placements] == [2, 2]
    assert plan.objective_usd == pytest.approx(2 * RENT_USD)


@pytest.mark.parametrize("tidal", [Tidal(), Tidal(8.0), Tidal(2.0, 0.5), Tidal(0.0, 0.0)])
def test_another_solver_agrees(tidal: Tidal) -> None:
    question = shifts(tidal)
    problem = build_problem(question, RUNS)
    assert planned(question).objective_usd == pytest.approx(highs_usd(problem), rel=1e-6)


def test_a_plan_that_hides_its_changes_is_rejected() -> None:
    solved = solve(shifts(Tidal(5.0)), RUNS)
    assert solved.plan is not None
    hidden = solved.plan.model_copy(update={"tides": ()})
    assert {violation.family for violation in verify(solved.problem, hidden)} == {"tidal"}
    cheaper = tuple(row.model_copy(update={"usd": row.usd / 2}) for row in solved.plan.tides)
    lowered = solved.plan.model_copy(update={"tides": cheaper})
    assert {violation.family for violation in verify(solved.problem, lowered)} == {"tidal"}
