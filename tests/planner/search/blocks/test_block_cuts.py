"""Cuts of blocks: no plan is cut off, whatever the prices, and a linear program with them proves as much."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from tests.parts import first_parts
from tests.planner.random_fleets import several_periods_case
from tests.planner.search.blocks.test_bound import EXACT, built, parts_of

from fleetplan.planner.formulation.build import PlanningModel
from fleetplan.planner.formulation.groups import continuous_indices
from fleetplan.planner.search.blocks.block_cuts import BlockCuts
from fleetplan.planner.search.blocks.block_programs import block_programs
from fleetplan.planner.search.blocks.bound import Lagrangian
from fleetplan.planner.search.blocks.columns import ColumnPool
from fleetplan.planner.search.blocks.construction import Structure, root_of
from fleetplan.planner.search.blocks.linear import whole_job
from fleetplan.planner.search.blocks.master import Master, PriceRange
from fleetplan.planner.search.blocks.periods import Periods
from fleetplan.planner.search.blocks.roles import indicator_variables, roles
from fleetplan.planner.search.solvers.highs_jobs import Answer, Effort, Job
from fleetplan.planner.search.solvers.highs_process import Programs
from fleetplan.planner.search.solvers.relaxation import relax
from fleetplan.planner.search.solvers.seats import ProcessSeats
from fleetplan.planner.search.solvers.workers import Workers

FLEETS = first_parts((6, 12, 40), 1)
CUT_SHORT = Effort(None, 0, 0.5)


class PricedFleet:
    """One fleet: its program, its blocks, its best plan, and prices of its linking rows."""

    def __init__(self, planning: PlanningModel, workers: Workers, seed: int) -> None:
        self.workers = workers
        self.parts = parts_of(planning)
        self.relaxed = relax(self.parts.program, continuous_indices(planning.variables))
        self.lagrangian = Lagrangian(self.parts, self.relaxed)
        self.cost = self.lagrangian.cost
        self.master = Master(self.parts, self.relaxed, self.cost)
        pool = ColumnPool(self.parts, self.relaxed, self.cost)
        self.cuts = BlockCuts(self.parts, self.lagrangian, self.master, pool)
        self.linear = workers.solve_one(whole_job(self.relaxed, self.cost))
        self.best = workers.solve_one(Job(self.relaxed.program, self.cost, EXACT))
        self.known = roles(planning.problem, planning.variables, len(self.cost))
        self.indicators = indicator_variables(planning.variables)
        self.rng = np.random.default_rng(seed)

    @property
    def structure(self) -> Structure:
        """The program as it is relaxed."""
        parts = self.parts
        return Structure(self.known, self.relaxed, self.cost, parts.linking_rows, parts.following_variables)

    def prices(self) -> Iterator[np.ndarray]:
        """Those of the relaxation, and random ones."""
        assert self.linear.row_duals is not None
        first = self.cuts.of_linking_rows(self.linear.row_duals)
        yield first
        for spread in (0.3, 3.0):
            yield first + spread * float(np.abs(first).max(initial=1.0)) * self.rng.normal(size=first.shape)

    def answers(self, prices: np.ndarray, effort: Effort = EXACT) -> list[Answer]:
        """Of all blocks at some prices."""
        programs = Programs.of(block_programs(self.parts, self.relaxed))
        with Workers(ProcessSeats(1, programs)) as workers:
            return workers.solve(self.cuts.jobs(prices, effort))


def cases(fleets: int, workers: Workers) -> Iterator[PricedFleet]:
    """Random fleets that have a plan."""
    for seed in range(fleets):
        case = PricedFleet(built(several_periods_case(seed)), workers, seed)
        if case.best.values is not None and case.linear.row_duals is not None:
            yield case


@pytest.mark.parametrize("fleets", FLEETS)
def test_no_cut_cuts_off_the_best_plan_and_the_program_with_them_proves_the_lagrangian_bound(
    fleets: int,
) -> None:
    checked = higher = tight = blocks = 0
    with Workers(ProcessSeats(1)) as workers:
        for case in cases(fleets, workers):
            assert case.best.values is not None
            relaxed = case.relaxed
            for prices in case.prices():
                answers = case.answers(prices)
                cuts = case.cuts.learned(answers)
                assert cuts.count == len(answers)
                assert (cuts.rows @ case.best.values >= cuts.least - 1e-6).all()
                relaxed = relaxed.with_cuts(cuts.rows, cuts.least)
                answer = workers.solve_one(whole_job(relaxed, case.cost))
                # The program sums up blocks at prices that are far larger than the plan.
                tolerance = 1e-6 * (abs(case.best.objective) + sum(abs(each.bound) for each in answers))
                lagrangian = case.lagrangian.price(prices).constant + sum(each.bound for each in answers)
                assert lagrangian - tolerance <= answer.objective <= case.best.objective + tolerance
                # A cut promises what its block's cheapest column costs, where its solver came to its end.
                for number, each in enumerate(answers):
                    assert each.values is not None
                    own = np.zeros(len(case.cost))
                    own[case.parts.blocks[number].variables] = each.values
                    least = float(cuts.least[number])
                    tight += float((cuts.rows @ own)[number]) <= least + 1e-5 * abs(least) + 1e-6
                    blocks += 1
            higher += answer.objective > case.linear.objective + 1e-3 * abs(case.best.objective)
            checked += 1
    assert checked >= fleets // 2
    assert higher >= fleets // 4
    assert tight >= 0.95 * blocks


@pytest.mark.parametrize("fleets", FLEETS)
def test_blocks_that_are_cut_short_weaken_the_cuts_and_do_not_break_them(fleets: int) -> None:
    with Workers(ProcessSeats(1)) as workers:
        for case in cases(fleets // 2, workers):
            for prices in case.prices():
                cuts = case.cuts.learned(case.answers(prices, CUT_SHORT))
                assert (cuts.rows @ case.best.values >= cuts.least - 1e-6).all()


@pytest.mark.parametrize("fleets", FLEETS)
def test_what_is_proven_of_a_supply_is_no_more_than_a_plan_with_it_costs(fleets: int) -> None:
    checked = 0
    with Workers(ProcessSeats(1)) as workers:
        for case in cases(fleets, workers):
            assert case.best.values is not None
            held = case.parts.master_variables[case.master.whole]
            lower, upper = case.relaxed.lower.copy(), case.relaxed.upper.copy()
            lower[held] = upper[held] = np.round(case.best.values[held])
            given = case.relaxed.program.within(lower, upper)
            best = workers.solve_one(Job(given, case.cost, EXACT))
            for prices in case.prices():
                answers = case.answers(prices)
                case.cuts.learned(answers)
                tolerance = 1e-6 * (abs(best.objective) + sum(abs(each.bound) for each in answers))
                proven = case.cuts.bound_at(case.best.values, answers)
                assert proven <= best.objective + tolerance
                # Other supply may cost less: the bound of all is no higher.
                everything = case.lagrangian.price(prices).constant + sum(each.bound for each in answers)
                assert proven >= everything - tolerance
            job = case.cuts.master_job(case.best.values, PriceRange.of_penalty(1e15, len(prices)))
            assert job is not None
            mixed = workers.solve_one(job)
            assert mixed.objective >= proven - tolerance
            checked += 1
    assert checked >= fleets // 2


# The eighth fleet is the first whose supply costs more with cuts.
@pytest.mark.parametrize("fleets", first_parts((12, 40), 1))
def test_supply_with_cuts_of_blocks_is_proven_to_cost_more_and_never_too_much(fleets: int) -> None:
    checked = higher = 0
    with Workers(ProcessSeats(1)) as workers:
        for case in cases(fleets, workers):
            root = root_of(case.structure, case.linear)
            assert root is not None
            tolerance = 1e-6 * abs(case.best.objective) + 1
            periods = Periods(case.structure, case.indicators, root)
            before = -np.inf
            for _ in range(3):
                program = periods.supply_program()
                found = workers.solve_one(Job(program.rows, program.cost, EXACT))
                assert before - tolerance <= found.bound <= case.best.objective + tolerance
                higher += found.bound > before + 1e-3 * abs(before) > -np.inf
                before = found.bound
                assert found.values is not None
                values = program.values(found.values)
                np.testing.assert_allclose(program.found(values), found.values, atol=1e-9)
                held = workers.solve_one(periods.held_job(values))
                if held.row_duals is None:
                    break
                answers = case.answers(case.cuts.of_linking_rows(held.row_duals))
                periods.add(case.cuts.learned(answers))
                tolerance = 1e-6 * (abs(case.best.objective) + sum(abs(each.bound) for each in answers))
                after = workers.solve_one(periods.held_job(values))
                # Cuts hold in the program with its supply held, or leave no plan with it.
                assert after.objective >= case.cuts.bound_at(values, answers) - tolerance
            checked += 1
    assert checked >= fleets // 2
    assert higher >= 1
