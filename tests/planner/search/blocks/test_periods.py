"""Supply decisions: the bound never exceeds the optimum, and the decisions of periods form a plan."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from tests.parts import first_parts
from tests.planner.random_fleets import several_periods_case
from tests.planner.search.blocks.test_bound import EXACT, built, optimum, parts_of
from tests.planner.search.blocks.test_construction import structured

from fleetplan.perfmodel.queueing import CapacityLine
from fleetplan.planner.formulation.build import PlanningModel
from fleetplan.planner.formulation.groups import continuous_indices
from fleetplan.planner.search.blocks import periods as periods_module
from fleetplan.planner.search.blocks.construction import Structure, root_of
from fleetplan.planner.search.blocks.linear import whole_job
from fleetplan.planner.search.blocks.period_numbers import JOINING, SHARED
from fleetplan.planner.search.blocks.periods import Periods, small_periods
from fleetplan.planner.search.blocks.roles import indicator_variables, roles
from fleetplan.planner.search.solvers.highs_jobs import Answer, Job
from fleetplan.planner.search.solvers.relaxation import relax
from fleetplan.planner.search.solvers.seats import ProcessSeats
from fleetplan.planner.search.solvers.workers import Workers

FLEETS = first_parts((8, 40), 1)


class Found:
    """The programs of the periods of one fleet, and the bound of its linear relaxation."""

    def __init__(self, planning: PlanningModel, workers: Workers) -> None:
        parts = parts_of(planning)
        self.relaxed = relax(parts.program, continuous_indices(planning.variables))
        self.cost = parts.program.cost * self.relaxed.variable_scale
        known = roles(planning.problem, planning.variables, len(parts.program.cost))
        structure = Structure(known, self.relaxed, self.cost, parts.linking_rows, parts.following_variables)
        linear = workers.solve_one(whole_job(self.relaxed, self.cost))
        root = root_of(structure, linear)
        assert root is not None
        self.replicas = planning.variables.replicas
        self.workers = workers
        self.linear = linear.bound
        self.periods = Periods(structure, indicator_variables(planning.variables), root)

    def plan(self) -> np.ndarray | None:
        """Return the decisions of every period under the best supply."""
        supply = self.supply()
        assert supply.values is not None
        values = self.periods.merged(self.workers.solve(self.periods.plan_jobs(supply.values, EXACT)))
        following = None if values is None else self.periods.following_job(values)
        if values is None or following is None:
            return values
        return self.periods.completed(values, self.workers.solve_one(following))

    def supply(self, whole: Collection[int] = ()) -> Answer:
        """The best supply for what is known."""
        program = self.periods.supply_program(whole)
        answer = self.workers.solve_one(Job(program.rows, program.cost, EXACT))
        if answer.values is None:
            return answer
        return replace(answer, values=program.values(answer.values))


LINES = (CapacityLine(0.5, 0.0), CapacityLine(0.9, 0.6, least=2))
"""What pools carry whose latencies are limited under load."""


def plannable(fleets: int) -> Iterator[tuple[int, PlanningModel, float]]:
    """The seed, the model and the optimum of every random fleet that has a plan, half of them under load."""
    for seed in range(fleets):
        case = several_periods_case(seed)
        if seed % 2:
            case = replace(case, candidates=[replace(each, pooling=LINES) for each in case.candidates])
        planning = built(case)
        best = optimum(planning)
        if best is not None:
            yield seed, planning, best


def test_a_period_runs_nothing_in_slots_that_are_not_looked_at() -> None:
    with Workers(ProcessSeats(1)) as workers:
        planning = built(several_periods_case(5))
        found = Found(planning, workers)
        supply = found.supply().values
        assert supply is not None
        slot = roles(planning.problem, planning.variables, len(supply)).slot
        opened = np.arange(slot.max() + 1) % 2 == 0
        for period, job in enumerate(found.periods.plan_jobs(supply, EXACT, opened=opened)):
            own = slot[found.periods.period == period]
            closed = np.flatnonzero((own >= 0) & ~opened[own])
            assert len(closed)
            assert (job.rows.upper[closed] == np.maximum(job.rows.lower[closed], 0)).all()
            everything = found.periods.plan_jobs(supply, EXACT)[period].rows.upper
            assert (everything[closed] > 0).any()
            others = np.setdiff1d(np.arange(len(everything)), closed)
            assert (job.rows.upper[others] == everything[others]).all()


@pytest.mark.parametrize("fleets", FLEETS)
def test_periods_decided_whole_with_supply_raise_its_bound_and_never_pass_the_optimum(fleets: int) -> None:
    checked = higher = exact = 0
    with Workers(ProcessSeats(1)) as workers:
        for _, planning, best in plannable(fleets):
            tolerance = 1e-6 * abs(best) + 1
            found = Found(planning, workers)
            bounds = [found.supply(range(count)).bound for count in range(found.periods.count + 1)]
            assert max(bounds) <= best + tolerance
            assert all(more >= fewer - tolerance for fewer, more in pairwise(bounds))
            higher += bounds[-1] > bounds[0] + 1e-3 * abs(best)
            exact += bounds[-1] >= best - 1e-3 * abs(best)
            checked += 1
    assert checked >= fleets // 2
    assert higher >= fleets // 4
    # What is left out of the bound, such as changes between periods, costs next to nothing in most fleets.
    assert exact >= checked // 2


@pytest.mark.parametrize("fleets", FLEETS)
def test_what_periods_decide_together_is_a_plan_that_costs_no_less_than_the_optimum(fleets: int) -> None:
    plans = 0
    with Workers(ProcessSeats(1)) as workers:
        for _, planning, best in plannable(fleets):
            found = Found(planning, workers)
            values = found.plan()
            if values is None:
                continue
            used = found.relaxed.rows @ values
            passed = np.maximum(used - found.relaxed.row_upper, found.relaxed.row_lower - used)
            # A limit over several periods may be passed: then it is no plan, and not kept.
            if passed.max() <= 1e-6:
                assert float(found.cost @ values) >= best - 1e-5 * abs(best) - 1
                plans += 1
    assert plans >= fleets // 4


def test_periods_are_worthwhile_by_what_may_run_and_not_by_the_variables_that_it_takes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    case = several_periods_case(1)
    pooled = replace(case, candidates=[replace(each, pooling=LINES) for each in case.candidates])
    with Workers(ProcessSeats(1)) as workers:
        found = [Found(built(each), workers) for each in (case, pooled)]
    plain, under_load = (each.periods for each in found)
    assert len(under_load.period) > 1.5 * len(plain.period)
    sets = max(
        len({(c, p) for c, p, moment in found[0].replicas if moment == period})
        for period in range(plain.count)
    )
    for most, expected in ((sets, True), (sets - 1, False)):
        monkeypatch.setattr(periods_module, "MOST_SLOTS", most)
        assert [small_periods(structured(each)[0].roles) for each in (case, pooled)] == [expected] * 2


def test_every_row_and_column_has_its_period() -> None:
    """A row of one period holds variables of that period and shared ones; one that joins holds several's."""
    with Workers(ProcessSeats(1)) as workers:
        periods = Found(built(several_periods_case(1)), workers).periods
    rows = periods.relaxation.rows
    for number, own in enumerate(periods.of_row):
        held = set(periods.period[rows.indices[rows.indptr[number] : rows.indptr[number + 1]]]) - {SHARED}
        assert held == set() if own == SHARED else len(held) > 1 if own == JOINING else held == {own}
