"""The bound that knows integer supply: never above the optimum, and above the Lagrangian one at times."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.parts import first_of, first_parts
from tests.planner.search.blocks.test_bound import EXACT, built, cases, optimum, parts_of

from fleetplan.planner.formulation.build import PlanningModel
from fleetplan.planner.formulation.groups import continuous_indices
from fleetplan.planner.search.blocks.block_programs import block_programs
from fleetplan.planner.search.blocks.bound import Lagrangian, total_bound
from fleetplan.planner.search.blocks.columns import ColumnPool
from fleetplan.planner.search.blocks.integer_supply import LEAST_GAIN, LEAST_ROUNDS, IntegerSupply
from fleetplan.planner.search.blocks.master import Master, PriceRange
from fleetplan.planner.search.blocks.split import Split
from fleetplan.planner.search.solvers.highs_jobs import Answer, Job
from fleetplan.planner.search.solvers.matrix import FloatArray
from fleetplan.planner.search.solvers.relaxation import Relaxation, relax
from fleetplan.planner.search.solvers.seats import ProcessSeats
from fleetplan.planner.search.solvers.workers import Workers

ROUNDS = 4


class Bounds:
    """Both bounds of one fleet, the second after some rounds."""

    def __init__(self, planning: PlanningModel, workers: Workers, seed: int) -> None:
        self.parts: Split = parts_of(planning)
        self.relaxed: Relaxation = relax(self.parts.program, continuous_indices(planning.variables))
        self.programs = block_programs(self.parts, self.relaxed)
        self.workers = workers
        self.lagrangian = Lagrangian(self.parts, self.relaxed)
        self.pool = ColumnPool(self.parts, self.relaxed, self.lagrangian.cost)
        self.rng = np.random.default_rng(seed)
        master = Master(self.parts, self.relaxed, self.lagrangian.cost)
        linear = workers.solve([Job(self.relaxed.program, self.lagrangian.cost, None)])[0]
        assert linear.row_duals is not None
        assert linear.values is not None
        best = self.lagrangian.price(linear.row_duals[self.parts.linking_rows])
        bounds = self.priced(best.reduced_cost)
        self.plain = total_bound(best, bounds)
        self.supply = IntegerSupply(
            self.parts, master, self.lagrangian, best, linear.values[self.parts.master_variables]
        )
        self.supply.cut(best, bounds)
        self.whole = [self.supply.bound(self.solved())]
        for _ in range(ROUNDS):
            values = self.solved().values
            assert values is not None
            job = self.supply.prices_job(values[: len(self.parts.master_variables)], self.pool.columns)
            duals = workers.solve([job])[0].row_duals
            assert duals is not None
            self.note(self.supply.next_prices(duals))
            self.whole.append(self.supply.bound(self.solved()))

    def note(self, prices: FloatArray) -> None:
        priced = self.lagrangian.price(prices)
        self.supply.cut(priced, self.priced(priced.reduced_cost))

    def solved(self) -> Answer:
        return self.workers.solve([self.supply.job(EXACT)])[0]

    def priced(self, reduced_cost: FloatArray) -> FloatArray:
        jobs = [
            Job(self.programs.program(number), reduced_cost[block.variables], EXACT)
            for number, block in enumerate(self.parts.blocks)
        ]
        answers = self.workers.solve(jobs)
        for number, answer in enumerate(answers):
            if answer.values is not None:
                self.pool.add(number, answer.values)
        return np.array([answer.bound for answer in answers])


@pytest.mark.parametrize("fleets", first_parts((8, 40), 1))
def test_the_bound_never_passes_the_optimum_and_rises_where_hosts_are_few(fleets: int) -> None:
    checked = better = 0
    with Workers(ProcessSeats(1)) as workers:
        for seed, case in enumerate(cases(fleets)):
            planning = built(case)
            best = optimum(planning)
            if best is None:
                continue
            found = Bounds(planning, workers, seed)
            tolerance = 1e-5 * abs(best) + 1
            # Cuts only add to what is known; the first is the Lagrangian bound with integer supply.
            assert found.whole[0] >= found.plain - tolerance
            assert all(
                one <= other + tolerance for one, other in zip(found.whole, found.whole[1:], strict=False)
            )
            assert found.whole[-1] <= best + tolerance
            checked += 1
            better += found.whole[-1] > found.plain + 1e-3 * abs(best)
    assert checked >= fleets // 2
    # In most of these fleets what limits blocks is not integer supply.
    assert better >= fleets // 13


@pytest.mark.parametrize("fleets", first_parts((4, 24), 1))
def test_cuts_at_any_prices_of_local_rows_hold(fleets: int) -> None:
    checked = 0
    with Workers(ProcessSeats(1)) as workers:
        for seed, case in enumerate(cases(fleets)):
            planning = built(case)
            best = optimum(planning)
            if best is None:
                continue
            found = Bounds(planning, workers, seed)
            for _ in range(3):
                row_duals = found.rng.normal(size=len(found.parts.linking_rows)) * abs(best) / 10
                found.note(found.supply.next_prices(row_duals))
            assert found.supply.bound(found.solved()) <= best + 1e-5 * abs(best) + 1
            checked += 1
    assert checked >= fleets // 2


@pytest.mark.parametrize("fleets", first_of((1, 3), 1))
def test_rounds_go_on_while_they_gain_and_there_is_something_to_gain(fleets: int) -> None:
    checked = 0
    with Workers(ProcessSeats(1)) as workers:
        for seed, case in enumerate(cases(24)):
            planning = built(case)
            if optimum(planning) is None:
                continue
            supply = Bounds(planning, workers, seed).supply
            assert not supply.pays(math.inf)
            if not supply.pays(0.0):
                continue
            for _ in range(LEAST_ROUNDS):
                supply.note_gain(LEAST_GAIN)
            assert not supply.pays(0.0)
            supply.note_gain(2 * LEAST_GAIN)
            assert supply.pays(0.0)
            checked += 1
            if checked == fleets:
                return
    raise AssertionError(f"integer supply pays in {checked} of {fleets} fleets")


def test_ranges_of_prices_meet() -> None:
    near = PriceRange(np.array([-2.0, 1.0]), np.array([0.5, 3.0])) & PriceRange.of_penalty(2.0, 2)
    assert near.lower.tolist() == [-2.0, 1.0]
    assert near.upper.tolist() == [0.5, 2.0]
