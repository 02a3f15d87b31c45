"""No Lagrangian bound passes the optimum, whatever the prices are, and every plan found is exact."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from ortools.sat.python import cp_model
from tests.parts import first_parts
from tests.planner.random_fleets import PlanningCase, large_case, several_periods_case, tiny_case

from fleetplan.planner.formulation.build import PlanningModel, build_model
from fleetplan.planner.formulation.groups import continuous_indices
from fleetplan.planner.problem import build_problem
from fleetplan.planner.search.blocks import solve as block_solve
from fleetplan.planner.search.blocks.block_programs import block_programs
from fleetplan.planner.search.blocks.bound import Lagrangian, total_bound
from fleetplan.planner.search.blocks.effort import Clock
from fleetplan.planner.search.blocks.request import Request
from fleetplan.planner.search.blocks.roles import block_keys, indicator_variables, roles
from fleetplan.planner.search.blocks.search import BlockSearch
from fleetplan.planner.search.blocks.split import Split, split
from fleetplan.planner.search.solvers.cpsat import configured_solver
from fleetplan.planner.search.solvers.highs_jobs import Effort, Job
from fleetplan.planner.search.solvers.interrupt import Stop
from fleetplan.planner.search.solvers.matrix import read_program
from fleetplan.planner.search.solvers.relaxation import relax
from fleetplan.planner.search.solvers.seats import ProcessSeats
from fleetplan.planner.search.solvers.workers import Workers

EXACT = Effort(None, 100_000, 0.0)


def built(case: PlanningCase, allow_unmet: bool = False) -> PlanningModel:
    planning = build_model(build_problem(case.fleet, case.candidates), allow_unmet=allow_unmet)
    planning.model.minimize(planning.total_cost)
    return planning


def parts_of(planning: PlanningModel) -> Split:
    program = read_program(planning.model)
    return split(program, block_keys(planning.problem, planning.variables, len(program.cost)))


_OPTIMA: dict[str, float | None] = {}
"""By the text of the model: several tests ask for the optimum of one fleet."""


def optimum(planning: PlanningModel) -> float | None:
    text = str(planning.model.proto)
    if text not in _OPTIMA:
        solver = configured_solver(20.0, seed=1, workers=1)
        status = solver.solve(planning.model)
        assert status in (cp_model.OPTIMAL, cp_model.INFEASIBLE)
        _OPTIMA[text] = solver.objective_value if status == cp_model.OPTIMAL else None
    return _OPTIMA[text]


def cases(count: int) -> list[PlanningCase]:
    return [tiny_case(seed) if seed % 2 else several_periods_case(seed) for seed in range(count)]


def request(planning: PlanningModel, parts: Split, processes: int = 2) -> Request:
    return Request(
        parts=parts,
        roles=roles(planning.problem, planning.variables, len(parts.program.cost)),
        continuous=continuous_indices(planning.variables),
        indicators=indicator_variables(planning.variables),
        start=None,
        seats=partial(ProcessSeats, processes),
        complete=lambda _: None,
        enough=lambda objective, bound: objective <= bound,
        on_step=lambda _: None,
    )


@pytest.mark.parametrize("fleets", first_parts((6, 175), 1))
def test_the_bound_never_passes_the_optimum_on_random_fleets(fleets: int) -> None:
    """At the prices of the linear relaxation, at none, and at random ones of either sign."""
    checked = 0
    with Workers(ProcessSeats(1)) as workers:
        for seed, case in enumerate(cases(fleets)):
            planning = built(case)
            best = optimum(planning)
            if best is None:
                continue
            parts = parts_of(planning)
            relaxed = relax(parts.program, continuous_indices(planning.variables))
            lagrangian = Lagrangian(parts, relaxed)
            linear = workers.solve([Job(relaxed.program, lagrangian.cost, None)])[0]
            assert linear.row_duals is not None
            root = linear.row_duals[parts.linking_rows]
            rng = np.random.default_rng(seed)
            spread = float(np.abs(root).max(initial=1.0))
            tried = (root, np.zeros_like(root), root + spread * rng.normal(size=root.shape))
            anything = spread * rng.normal(size=linear.row_duals.shape)
            assert relaxed.bound(lagrangian.cost, linear.row_duals + anything) <= best + 1e-6 * abs(best)
            whole = relaxed.bound(lagrangian.cost, linear.row_duals)
            assert whole == pytest.approx(linear.objective, rel=1e-6, abs=1e-3)
            bounds, programs = [], block_programs(parts, relaxed)
            for duals in tried:
                priced = lagrangian.price(duals)
                jobs = [
                    Job(programs.program(number), priced.reduced_cost[block.variables], EXACT)
                    for number, block in enumerate(parts.blocks)
                ]
                answers = workers.solve(jobs)
                bounds.append(total_bound(priced, np.array([answer.bound for answer in answers])))
                assert bounds[-1] <= best + 1e-6 * abs(best) + 1
            # At the prices of the linear relaxation blocks can only raise its bound.
            assert bounds[0] >= linear.bound - 1e-5 * abs(linear.bound) - 1
            checked += 1
    assert checked >= 100 * fleets // 175


def test_a_pricing_that_is_cut_short_weakens_the_bound_and_does_not_break_it() -> None:
    checked = 0
    with Workers(ProcessSeats(1)) as workers:
        for case in cases(30):
            planning = built(case)
            best = optimum(planning)
            if best is None:
                continue
            parts = parts_of(planning)
            relaxed = relax(parts.program, continuous_indices(planning.variables))
            priced = Lagrangian(parts, relaxed).price(np.zeros(len(parts.linking_rows)))
            programs = block_programs(parts, relaxed)
            jobs = [
                Job(programs.program(number), priced.reduced_cost[block.variables], Effort(None, 0, 0.5))
                for number, block in enumerate(parts.blocks)
            ]
            bound = total_bound(priced, np.array([answer.bound for answer in workers.solve(jobs)]))
            assert bound <= best + 1e-6 * abs(best) + 1
            checked += 1
    assert checked >= 15


@pytest.mark.parametrize("seed", first_parts(range(12), 1, more=2))
@pytest.mark.parametrize("beside", [False, True])
def test_a_search_over_blocks_finds_exact_plans_within_its_bound(seed: int, beside: bool) -> None:
    """By counted work, and by the clock, with plans improved beside the bound."""
    planning = built(several_periods_case(seed))
    best = optimum(planning)
    parts = parts_of(planning)
    clock = Clock(1.0, deterministic=not beside)
    found = BlockSearch(request(planning, parts, 2 if beside else 1), clock, seed=1).run(Stop())
    if best is None:
        assert found.values is None
        return
    assert found.bound is not None
    assert found.bound <= best * (1 + 1e-9) + 1
    if found.values is not None:
        assert parts.program.holds(found.values)
        assert found.objective == parts.program.value(found.values)
        assert found.objective >= best - 1e-6 * abs(best)


SIZES = ([1, 2, 2, 1], [1, 4, 2, 2], [1, 3, 5, 2])


@pytest.mark.parametrize("size", first_parts(SIZES, 1), ids=("small", "large", "areas"))
def test_work_that_is_counted_repeats_bit_for_bit(size: list[int]) -> None:
    planning = built(large_case(*size))
    parts = parts_of(planning)

    def run(workers: int) -> tuple[list[int] | None, float | None, float | None, float]:
        clock = Clock(0.15, deterministic=True)
        found = BlockSearch(request(planning, parts, workers), clock, seed=5).run(Stop())
        values = None if found.values is None else found.values.tolist()
        return values, found.objective, found.bound, found.work_s

    first = run(2)
    assert first[0] is not None
    assert run(2) == first
    assert run(1) == first


def test_small_models_are_left_to_one_solver() -> None:
    assert block_solve.decomposed(built(tiny_case(1))) is None
