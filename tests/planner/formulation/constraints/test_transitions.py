"""Family 8: replicas that start are counted and charged, against the previous period or the plan in force."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace

import pytest
from tests.oracles.highs import highs_usd
from tests.parts import first_parts
from tests.planner.builders import buy_offer, candidate, fleet, hardware, rent_offer, rented_pool, service
from tests.planner.families import solved_example
from tests.planner.random_fleets import several_periods_case
from tests.planner.solving import Solved, solve

from fleetplan.fleet.inventory import Finance, Fleet
from fleetplan.fleet.inventory.periods import QUARTERS as CALENDAR
from fleetplan.planner.candidates.dominance import prune_dominated
from fleetplan.planner.candidates.rejections import RejectionLog
from fleetplan.planner.plan import Plan
from fleetplan.planner.problem import build_problem
from fleetplan.planner.problem.current_plan import configurations_in_force, period_in_force, with_baseline
from fleetplan.planner.verify import verify

QUARTERS = ("2026Q1", "2026Q2", "2026Q3")
RENT_USD = 2190.0
"""One accelerator for one quarter at 1 USD an hour."""


def one_service(rates: tuple[float, ...], usd: float, periods: tuple[str, ...] = QUARTERS) -> Fleet:
    demand = {("here", q, "all"): rate for q, rate in zip(periods, rates, strict=True)}
    return fleet(
        services=[service("chat", demand, periods=periods)],
        hardware=[hardware("A", 1)],
        offers=[rent_offer("A", 1.0, periods=periods)],
        periods=periods,
        policy={"transition_usd_per_accelerator": usd},
    )


def plan_of(solved: Solved) -> Plan:
    assert solved.plan is not None
    return solved.plan


def test_the_example_has_its_optimum() -> None:
    solved = solved_example("transitions")
    assert [row.replicas for row in solved.rows()] == [2, 2, 2]
    assert plan_of(solved).transitions == ()


def test_what_is_cheap_to_start_is_started_anew() -> None:
    solved = solve(one_service((2.0, 1.0, 2.0), 2000.0), [candidate("chat", "A", 1.0)])
    assert solved.usd == pytest.approx(5 * RENT_USD + 2000.0)
    plan = plan_of(solved)
    assert plan.cost_breakdown["transition"] == pytest.approx(2000.0)
    changes = [(row.period, row.replicas_before, row.replicas, row.usd) for row in plan.transitions]
    assert changes == [("2026Q2", 2, 1, 0.0), ("2026Q3", 1, 2, 2000.0)]


def test_a_replica_waits_through_a_quarter_without_demand() -> None:
    runs = [candidate("chat", "A", 1.0)]
    assert solve(one_service((1.0, 0.0, 1.0), 3000.0), runs).usd == pytest.approx(3 * RENT_USD)
    assert solve(one_service((1.0, 0.0, 1.0), 2000.0), runs).usd == pytest.approx(2 * RENT_USD + 2000.0)


def test_nothing_waits_after_its_last_use() -> None:
    question = one_service((2.0, 1.0, 1.0), 3000.0)
    kept = replace(question, offers=(), pools=(rented_pool("A", 2, 1.0, per_host=1, periods=QUARTERS),))
    assert [row.replicas for row in solve(kept, [candidate("chat", "A", 1.0)]).rows()] == [2, 1, 1]


def test_every_small_case_is_the_cheapest_of_all_schedules() -> None:
    """One kind of replica: try every number of replicas in every quarter."""
    rng = random.Random(8)
    for _ in range(12):
        rates = tuple(float(rng.randint(0, 3)) for _ in QUARTERS)
        if not any(rates):
            continue
        usd = rng.choice((500.0, 2000.0, 2500.0, 5000.0))
        schedules = itertools.product(*(range(int(rate), 4) for rate in rates))
        cheapest = min(
            sum(counts) * RENT_USD + usd * sum(max(0, b - a) for a, b in itertools.pairwise(counts))
            for counts in schedules
        )
        found = solve(one_service(rates, usd), [candidate("chat", "A", 1.0)])
        assert found.usd == pytest.approx(cheapest), (rates, usd)


def test_a_better_configuration_is_not_worth_its_change() -> None:
    """The plan in force runs B; A is 200 USD cheaper a quarter, and costs 500 USD to start."""
    now = ("now",)
    question = fleet(
        services=[service("chat", 1.0)],
        hardware=[hardware("A", 1), hardware("B", 1)],
        offers=[rent_offer("A", 1.0), rent_offer("B", 1.0 + 200 / RENT_USD)],
        policy={"transition_usd_per_accelerator": 500.0},
    )
    runs = [candidate("chat", "A", 1.0), candidate("chat", "B", 1.0)]
    only_b = plan_of(solve(replace(question, offers=question.offers[1:]), runs))
    assert solve(question, runs).rows()[0].hardware == "A"
    kept = solve(question, runs, baseline=only_b)
    assert kept.rows()[0].hardware == "B"
    assert plan_of(kept).transitions == ()
    cheap = replace(question, policy=replace(question.policy, transition_usd_per_accelerator=150.0))
    changed = solve(cheap, runs, baseline=only_b)
    assert changed.usd == pytest.approx(RENT_USD + 150.0)
    assert {row.hardware: row.accelerators for row in plan_of(changed).transitions} == {"A": 1, "B": -1}
    assert period_in_force(only_b, now, CALENDAR) == "now"


def test_of_two_plans_of_the_same_cost_the_one_with_fewer_changes_is_taken() -> None:
    question = fleet(
        services=[service("chat", 1.0)],
        hardware=[hardware("A", 1), hardware("B", 1)],
        offers=[rent_offer("A", 1.0), rent_offer("B", 1.0)],
    )
    runs = [candidate("chat", "A", 1.0), candidate("chat", "B", 1.0)]
    for one in question.offers:
        before = plan_of(solve(replace(question, offers=(one,)), runs))
        assert solve(question, runs, baseline=before).rows()[0].hardware == one.name


def test_the_plan_in_force_is_that_of_the_quarter_before() -> None:
    plan = plan_of(solve(one_service((1.0, 2.0, 3.0), 100.0), [candidate("chat", "A", 1.0)]))
    assert period_in_force(plan, ("2026Q3", "2026Q4"), CALENDAR) == "2026Q2"
    assert period_in_force(plan, ("2027Q1",), CALENDAR) == "2026Q3"
    assert period_in_force(plan, QUARTERS, CALENDAR) == "2026Q1"
    assert period_in_force(plan, ("2025Q4",), CALENDAR) is None
    later = one_service((3.0,), 100.0, ("2026Q3",))
    solved = solve(later, [candidate("chat", "A", 1.0)], baseline=plan)
    assert solved.usd == pytest.approx(3 * RENT_USD + 100.0)


def test_what_has_no_place_in_the_fleet_ends_with_a_warning() -> None:
    plan = plan_of(solve(one_service((1.0, 1.0, 1.0), 100.0), [candidate("chat", "A", 1.0)]))
    question = one_service((1.0,), 100.0, ("2026Q4",))
    _, gone = with_baseline(build_problem(question, [candidate("chat", "A", 1.0, config="other")]), plan)
    assert "no such configuration" in gone[0]
    renamed = replace(question, offers=(replace(question.offers[0], name="other"),))
    _, moved = with_baseline(build_problem(renamed, [candidate("chat", "A", 1.0)]), plan)
    assert "no pool here/A" in moved[0]


def test_what_runs_stays_a_candidate() -> None:
    better, worse = candidate("chat", "A", 2.0), candidate("chat", "A", 1.0, config="worse")
    question = one_service((1.0, 1.0, 1.0), 100.0)
    plan = plan_of(solve(question, [worse]))
    kinds = question.hardware
    assert prune_dominated([better, worse], kinds, RejectionLog()) == [better]
    assert prune_dominated([better, worse], kinds, RejectionLog(), configurations_in_force(plan)) == [
        better,
        worse,
    ]


def test_a_tampered_list_of_changes_is_rejected() -> None:
    solved = solve(one_service((1.0, 2.0, 2.0), 100.0), [candidate("chat", "A", 1.0)])
    plan = plan_of(solved)
    (change,) = plan.transitions
    for tampered in ((), (change.model_copy(update={"usd": 0.0}),)):
        found = verify(solved.problem, plan.model_copy(update={"transitions": tampered}))
        assert {violation.family for violation in found} == {"transitions"}


@pytest.mark.parametrize("seed", first_parts(range(8), 2, more=2))
def test_random_fleets_have_one_optimum(seed: int) -> None:
    case = several_periods_case(seed)
    usd = random.Random(seed).choice((0.0, 300.0, 4000.0))
    policy = replace(case.fleet.policy, transition_usd_per_accelerator=usd)
    before = solve(case.fleet, case.candidates).plan if seed % 2 else None
    solved = solve(replace(case.fleet, policy=policy), case.candidates, baseline=before)
    expected = highs_usd(solved.problem)
    assert solved.usd == (None if expected is None else pytest.approx(expected, rel=1e-6))


def test_purchases_wait_for_no_one() -> None:
    """Bought hosts are installed anyway, so an idle replica on them costs nothing."""
    question = replace(
        one_service((2.0, 1.0, 2.0), 1.0),
        offers=(buy_offer("buy", 16_000, hardware="A", per_unit=1, periods=QUARTERS),),
    )
    assert solve(question, [candidate("chat", "A", 1.0)]).usd == pytest.approx(6 * 1000.0)


def test_a_start_is_paid_at_the_start_of_its_period() -> None:
    question = replace(one_service((1.0, 1.0, 2.0), 100.0), finance=Finance(discount_rate_per_year=0.08))
    plan = plan_of(solve(question, (candidate("chat", "A", 1.0),)))
    # Half a year from the start of the horizon.
    assert plan.cost_breakdown["transition"] == pytest.approx(100.0 / 1.08**0.5)
    assert [row.usd for row in plan.transitions] == pytest.approx([100.0 / 1.08**0.5])
