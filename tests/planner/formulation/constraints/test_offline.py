"""Family 13: offline work is done before its deadline, in the troughs of the day."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from tests.oracles.highs import highs_usd
from tests.planner.builders import by_case, candidate, fleet, hardware, region, rent_offer, service
from tests.planner.families import solved_example
from tests.planner.family_examples import EXAMPLES, HALVES
from tests.planner.solving import is_infeasible, solve

from fleetplan.fleet.inventory import Fleet, Offline, Slice
from fleetplan.planner.assemble.offline_work import offline_work
from fleetplan.planner.formulation import Solution
from fleetplan.planner.plan import Plan
from fleetplan.planner.problem import Problem, build_problem
from fleetplan.planner.problem.deferral import longest_wait_hours, work_places
from fleetplan.planner.problem.moments import fleet_moments
from fleetplan.planner.verify import verify

RENT_USD = 2190.0
RUNS = (candidate("chat", "A", 1.0), candidate("batch", "A", 1.0))
KEY = ("here", "now", "all")


def mixed(deadline_hours: float, slices: Sequence[Slice] = HALVES, **batch: object) -> Fleet:
    """Four requests/s by day and one by night of one service; two of another that can wait."""
    question = EXAMPLES["offline"]().fleet
    work = service("batch", 2.0, offline=Offline(deadline_hours), **batch)
    return replace(question, services=(question.services[0], work), slices=tuple(slices))


def planned(question: Fleet) -> Plan:
    plan = solve(question, RUNS).plan
    assert plan is not None
    return plan


def test_the_example_has_its_optimum() -> None:
    solved = solved_example("offline")
    assert solved.plan is not None
    served = {row.slice: row.requests_per_s for row in solved.plan.placements if row.service == "batch"}
    by_day, by_night = served.get("day", 0.0), served.get("night", 0.0)
    assert (by_day + by_night) * 12 == pytest.approx(2.0 * 24)
    assert by_day <= 1.0 + 1e-6


def test_two_pools_share_their_tides() -> None:
    """Two pools, worked out by hand: which of them fills up with offline work, and when.

    A has three accelerators that are paid for and draw 1 kW, B is rented by the accelerator at 1 USD/h and
    draws 0.5 kW; energy costs 0.2 USD/kWh, and a replica serves 1 request/s. Chat needs three replicas by day
    and one by night, for 12 hours each; the batch work of a day is 36 replica-hours.

    A alone has 72 replica-hours a day, of which chat takes 48: 24 are left, all by night. So 12 replica-hours
    are missing, which one rented B covers with half of its 24 hours. It costs 2190 USD for the quarter,
    whatever it does. The served load of 84 replica-hours a day draws 1 kW on A and 0.5 kW on B, so B is
    filled with all of its 24 hours and A does the other 60: 60 + 12 = 72 kWh a day for 91.25 days.
    """
    slices = (Slice("day", 12.0), Slice("night", 12.0))
    chat = service("chat", 3.0, ratios={("night", None): {KEY: 1 / 3}})
    question = fleet(
        services=[chat, service("batch", 1.5, offline=Offline(24.0))],
        hardware=[hardware("A", 1), hardware("B", 1)],
        offers=[
            rent_offer("A", 0.0, maximum=3),
            rent_offer("B", 1.0),
        ],
        regions=[region(energy_usd_per_kwh=(0.2,))],
        slices=slices,
    )
    runs = [
        candidate(name, kind, 1.0, power_kw=power)
        for name in ("chat", "batch")
        for kind, power in (("A", 1.0), ("B", 0.5))
    ]
    solved = solve(question, runs)
    assert solved.plan is not None
    assert solved.usd == pytest.approx(2190.0 + 72 * 91.25 * 0.2)
    energy = dict.fromkeys("AB", 0.0)
    for row in solved.plan.placements:
        energy[row.hardware] += row.energy_usd
    assert energy == pytest.approx({"A": 60 * 91.25 * 0.2, "B": 12 * 91.25 * 0.2})
    assert solved.usd == pytest.approx(highs_usd(build_problem(question, runs)), rel=1e-6)


@pytest.mark.parametrize(("hours", "rented"), [(1.0, 6), (11.99, 6), (12.0, 5), (24.0, 5), (90.0, 5)])
def test_work_waits_as_long_as_its_deadline_lets_it(hours: float, rented: int) -> None:
    question = mixed(hours)
    free = replace(question, offers=(rent_offer("A", 1.0),))
    assert planned(free).objective_usd == pytest.approx(rented * RENT_USD)


def test_a_whole_day_is_served_evenly() -> None:
    question = mixed(24.0, slices=())
    chat = replace(question.services[0], demand=by_case(question.services[0].demand.peak))
    plan = planned(replace(question, services=(chat, question.services[1]), offers=(rent_offer("A", 1.0),)))
    assert plan.objective_usd == pytest.approx(6 * RENT_USD)
    assert [(row.slice, row.requests_per_day) for row in plan.offline_work] == [
        (None, pytest.approx(2.0 * 86_400))
    ]


def test_the_longest_wait_is_from_start_to_start_or_from_end_to_end() -> None:
    slices = (Slice("early", 6.0), Slice("noon", 2.0), Slice("late", 16.0))
    moments = fleet_moments(replace(mixed(24.0), slices=slices))
    waits = {
        (a.slice, b.slice): longest_wait_hours(moments, i, j)
        for i, a in enumerate(moments)
        for j, b in enumerate(moments)
    }
    assert waits == {
        ("early", "early"): 0,
        ("noon", "noon"): 0,
        ("late", "late"): 0,
        ("early", "noon"): 6,  # the first request waits from 0:00 to 6:00, the last one from 6:00 to 8:00
        ("early", "late"): 18,  # the last one waits from 6:00 to 24:00
        ("noon", "late"): 16,
        ("noon", "early"): 22,
        ("late", "early"): 16,
        ("late", "noon"): 22,
    }
    assert work_places(moments, 16.0) == {0: (0, 1), 1: (1, 2), 2: (0, 2)}


def test_unmet_work_is_declared_and_weighs_its_hours() -> None:
    question = mixed(11.0)
    lenient = replace(question, policy=replace(question.policy, unmet="penalise"))
    plan = planned(lenient)
    # By day one of six replicas is missing, whichever service goes without.
    assert sum(row.requests_per_s for row in plan.unmet) == pytest.approx(1.0)
    assert {row.slice for row in plan.unmet} == {"day"}


def test_work_that_arises_in_the_evening_alone_fills_the_night() -> None:
    evening = {("day", None): {KEY: 0.0}}
    question = mixed(24.0, ratios=evening)
    plan = planned(replace(question, offers=(rent_offer("A", 1.0),)))
    # 60 replica-hours of chat and 24 of batch fit into the 96 of the four that chat needs by day.
    assert plan.objective_usd == pytest.approx(4 * RENT_USD)
    assert {row.arises_in for row in plan.offline_work} == {"night"}


def test_a_share_of_a_pool_counts_by_the_day() -> None:
    question = fleet(
        services=[service("batch", 2.0, offline=Offline(24.0))],
        hardware=[hardware("A", 1), hardware("B", 1)],
        offers=[rent_offer("A", 1.0), rent_offer("B", 1.5)],
        slices=HALVES,
        policy={"max_share_per_pool": 0.5},
    )
    runs = [candidate("batch", kind, 1.0) for kind in "AB"]
    solved = solve(question, runs)
    # 24 of 48 replica-hours a day on each: one of both, all day.
    assert solved.usd == pytest.approx((1.0 + 1.5) * RENT_USD)
    assert is_infeasible(replace(question, offers=question.offers[:1]), runs)


@pytest.mark.parametrize("hours", [1.0, 12.0, 24.0])
def test_another_solver_agrees(hours: float) -> None:
    question = replace(mixed(hours), offers=(rent_offer("A", 1.0),))
    problem = build_problem(question, RUNS)
    assert planned(question).objective_usd == pytest.approx(highs_usd(problem), rel=1e-6)


def test_a_plan_that_does_less_work_or_later_is_rejected() -> None:
    solved = solve(mixed(13.0), RUNS)
    assert solved.plan is not None
    plan = solved.plan

    def families(changed: Plan) -> set[str]:
        return {violation.family for violation in verify(solved.problem, changed)}

    half = tuple(
        row.model_copy(update={"requests_per_day": row.requests_per_day / 2}) for row in plan.offline_work
    )
    assert "offline" in families(plan.model_copy(update={"offline_work": half}))
    assert "offline" in families(plan.model_copy(update={"offline_work": ()}))
    hasty = replace(solved.problem.services["batch"], offline=Offline(1.0))
    problem = replace(solved.problem, services={**solved.problem.services, "batch": hasty})
    assert {violation.family for violation in verify(problem, plan)} == {"offline"}
    # More work than the placements serve.
    twice = tuple(
        row.model_copy(update={"requests_per_day": row.requests_per_day * 2}) for row in plan.offline_work
    )
    assert "coverage" in families(plan.model_copy(update={"offline_work": twice}))


def batch_cells(question: Fleet) -> tuple[Problem, list[int]]:
    problem = build_problem(question, RUNS)
    return problem, [i for i, cell in enumerate(problem.cells) if cell.service == "batch"]


def test_slices_do_not_exchange_work() -> None:
    """No slice defers work while it does that of another, directly or around the day; the sums stay."""
    problem, (day, evening, night) = batch_cells(
        mixed(24.0, (Slice("day", 9.0), Slice("evening", 6.0), Slice("night", 9.0)))
    )
    units = {(day, evening): 4, (evening, night): 3, (night, day): 5, (day, day): 2, (night, night): 1}
    solution = Solution(put_off={(i, j, 0): work for (i, j), work in units.items()})
    found = offline_work(problem, solution, {})
    deferring = {i for i, j, _ in found if i != j}
    assert not deferring & {j for i, j, _ in found if i != j}
    # Two requests/s arise; a slice's share of them goes where the solution puts it.
    arising = {day: 2.0 * 9 * 3600, evening: 2.0 * 6 * 3600, night: 2.0 * 9 * 3600}
    shares = {
        (i, j): work / sum(other for (k, _), other in units.items() if k == i)
        for (i, j), work in units.items()
    }
    for cell in (day, evening, night):
        done = sum(arising[i] * share for (i, j), share in shares.items() if j == cell)
        assert sum(per_day for (_, j, _), per_day in found.items() if j == cell) == pytest.approx(done)
        assert sum(per_day for (i, _, _), per_day in found.items() if i == cell) == pytest.approx(
            arising[cell]
        )


def test_work_is_not_exchanged_past_its_deadline() -> None:
    problem, (day, evening, night) = batch_cells(
        mixed(8.0, (Slice("day", 8.0), Slice("evening", 8.0), Slice("night", 8.0)))
    )
    # Work of the day would wait 16 hours for the night.
    chain = {(day, evening, 0): 4, (evening, night, 0): 4, (night, night, 0): 1}
    assert set(offline_work(problem, Solution(put_off=chain), {})) == set(chain)
