"""The matrix view: what a model says, in blocks that only linking rows join."""

from __future__ import annotations

import numpy as np
import pytest
from ortools.sat.python import cp_model
from tests.planner.random_fleets import large_case, several_periods_case

from fleetplan.planner.formulation.build import PlanningModel, build_model
from fleetplan.planner.formulation.groups import continuous_indices
from fleetplan.planner.problem import build_problem
from fleetplan.planner.search.blocks.roles import block_keys
from fleetplan.planner.search.blocks.split import MASTER, split
from fleetplan.planner.search.solvers.matrix import UNBOUNDED, Program, read_program
from fleetplan.planner.search.solvers.relaxation import relax


def planning(seed: int = 1, *, periods: bool = False) -> PlanningModel:
    case = several_periods_case(seed) if periods else large_case(seed, 4, 2, 2)
    built = build_model(build_problem(case.fleet, case.candidates), allow_unmet=False)
    built.model.minimize(built.total_cost)
    return built


def read(built: PlanningModel) -> Program:
    return read_program(built.model)


def test_a_program_says_what_its_model_says() -> None:
    model = cp_model.CpModel()
    x, y = model.new_int_var(0, 7, "x"), model.new_int_var(-2, 3, "y")
    model.add(3 * x - 2 * y <= 8)
    model.add(x + y == 4)
    model.add(x >= y - 1)
    model.minimize(5 * x + y)
    program = read_program(model)
    assert program.rows.toarray().tolist() == [[3, -2], [1, 1], [1, -1]]
    assert program.row_upper.tolist()[:2] == [8, 4]
    assert program.row_lower.tolist()[1:] == [4, -1]
    assert program.row_lower[0] <= -UNBOUNDED
    assert (program.lower.tolist(), program.upper.tolist()) == ([0, -2], [7, 3])
    assert program.cost.tolist() == [5, 1]
    assert program.holds(np.array([3, 1]))
    assert not program.holds(np.array([3, 2]))
    assert not program.holds(np.array([1, 3]) + np.array([0, 1]))
    assert program.value(np.array([3, 1])) == 16


def test_values_beyond_the_precision_of_floats_are_exact() -> None:
    model = cp_model.CpModel()
    x = model.new_int_var(0, 2**31, "x")
    model.add(x * 3 <= 2**33)
    model.minimize(x * 2**30)
    program = read_program(model)
    assert program.value(np.array([2**31 - 1])) == 2**30 * (2**31 - 1)


def test_rows_that_are_not_linear_are_refused() -> None:
    model = cp_model.CpModel()
    x, b = model.new_int_var(0, 3, "x"), model.new_bool_var("b")
    model.add(x <= 1).only_enforce_if(b)
    with pytest.raises(ValueError, match="not a plain linear row"):
        read_program(model)


@pytest.mark.parametrize("periods", [False, True])
def test_every_row_and_variable_is_in_one_place(periods: bool) -> None:
    built = planning(periods=periods)
    program = read(built)
    parts = split(program, block_keys(built.problem, built.variables, len(program.cost)))
    columns = np.concatenate([*(block.variables for block in parts.blocks), parts.master_variables])
    rows = np.concatenate([*(block.rows for block in parts.blocks), parts.linking_rows])
    assert sorted(columns.tolist()) == list(range(len(program.cost)))
    assert sorted(rows.tolist()) == list(range(program.rows.shape[0]))
    for number, block in enumerate(parts.blocks):
        inside = program.rows[block.rows].tocsr()
        assert set(parts.block_of[inside.indices].tolist()) == {number}


def test_a_block_is_what_a_service_does_in_a_region_and_moment() -> None:
    built = planning()
    problem, variables = built.problem, built.variables
    program = read(built)
    parts = split(program, block_keys(problem, variables, len(program.cost)))
    assert len(parts.blocks) == len(problem.cells)
    for (c, p, m), replicas in variables.replicas.items():
        own = parts.block_of[replicas.index]
        for (c2, _, p2, cell), load in variables.load.items():
            if (problem.candidates[c2].service, problem.cells[cell].moment) == (
                problem.candidates[c].service,
                m,
            ):
                same_place = problem.pools[p2].region == problem.pools[p].region
                assert (parts.block_of[load.index] == own) == same_place
    for acquired in variables.acquired.values():
        assert parts.block_of[acquired.index] == MASTER


def test_a_row_that_couples_regions_makes_one_block_of_them() -> None:
    built = planning()
    first, second = (
        next(
            v
            for (c, p, _), v in built.variables.replicas.items()
            if built.problem.candidates[c].service == "s0" and built.problem.pools[p].region == region
        )
        for region in ("r0", "r1")
    )
    program = read(built)
    before = split(program, block_keys(built.problem, built.variables, len(program.cost)))
    built.model.add(first + second <= 5)
    program = read(built)
    after = split(program, block_keys(built.problem, built.variables, len(program.cost)))
    assert before.block_of[first.index] != before.block_of[second.index]
    assert after.block_of[first.index] == after.block_of[second.index]
    assert len(after.blocks) == len(before.blocks) - 1


def test_variables_that_nobody_knows_belong_to_the_master() -> None:
    built = planning()
    unknown = built.model.new_int_var(0, 3, "unknown")
    replicas = next(iter(built.variables.replicas.values()))
    built.model.add(unknown >= replicas)
    program = read(built)
    parts = split(program, block_keys(built.problem, built.variables, len(program.cost)))
    assert parts.block_of[unknown.index] == MASTER
    assert not parts.following[parts.master_variables.tolist().index(unknown.index)]


def test_a_relaxation_scales_and_loses_nothing() -> None:
    built = planning()
    program = read(built)
    relaxed = relax(program, continuous_indices(built.variables))
    back = relaxed.rows.toarray() * relaxed.row_scale[:, None] / relaxed.variable_scale[None, :]
    assert np.allclose(back, program.rows.toarray(), rtol=1e-12)
    filled = np.diff(relaxed.rows.indptr) > 0
    assert np.allclose(np.abs(relaxed.rows.toarray()).max(axis=1)[filled], 1.0)
    assert relaxed.whole.sum() == len(program.cost) - len(continuous_indices(built.variables))
