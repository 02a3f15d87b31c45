"""The registry of variables: nothing is forgotten, and keys say what they name."""

from __future__ import annotations

from dataclasses import fields

import pytest
from ortools.sat.python import cp_model
from tests.planner.family_examples import EXAMPLES
from tests.planner.random_fleets import several_periods_case

from fleetplan.planner.formulation import (
    GROUPS,
    PlanningModel,
    Variables,
    all_variables,
    build_model,
    values_of,
)
from fleetplan.planner.formulation.groups import KEPT, members
from fleetplan.planner.formulation.registry import KeyPart
from fleetplan.planner.problem import build_problem


def built() -> list[PlanningModel]:
    """The models of every family's example, and one of several periods."""
    case = several_periods_case(3)
    problems = [build_problem(case.fleet, case.candidates), *(each().problem() for each in EXAMPLES.values())]
    return [build_model(problem, allow_unmet=True) for problem in problems]


def test_no_group_of_variables_is_forgotten() -> None:
    names = {field.name for field in fields(Variables)} - {"kv_pairs"}
    assert names == {group.name for group in GROUPS}
    assert len(GROUPS) == len(names)


def test_a_solution_keeps_what_makes_a_plan_and_nothing_else() -> None:
    planning = build_model(EXAMPLES["coverage"]().problem(), allow_unmet=False)
    planning.model.minimize(planning.total_cost)
    solver = cp_model.CpSolver()
    assert solver.solve(planning.model) == cp_model.OPTIMAL
    values = values_of(planning.variables, solver)
    for group in GROUPS:
        wanted = {
            key: solver.value(variable)
            for key, variable in members(group, planning.variables).items()
            if group.kept and solver.value(variable)
        }
        assert getattr(values, group.name) == wanted
    assert values.replicas


def test_the_groups_hold_every_variable_of_a_model_once() -> None:
    for planning in built():
        indices = [variable.index for variable in all_variables(planning.variables)]
        # Rows make some of their own: of a question that must be used, say.
        assert len(set(indices)) == len(indices)
        assert set(indices) <= set(range(len(planning.model.proto.variables)))


def test_keys_have_the_parts_that_their_group_says() -> None:
    seen = set()
    for planning in built():
        problem = planning.problem
        sizes = {
            KeyPart.CANDIDATE: len(problem.candidates),
            KeyPart.POOL: len(problem.pools),
            KeyPart.MOMENT: len(problem.moments),
            KeyPart.CELL: len(problem.cells),
        }
        for group in GROUPS:
            for key in members(group, planning.variables):
                parts = key if isinstance(key, tuple) else (key,)
                assert len(parts) == len(group.key), group.name
                for part, value in zip(group.key, parts, strict=True):
                    if part in sizes:
                        assert 0 <= value < sizes[part], (group.name, key)
                    elif part is KeyPart.SERVICE:
                        assert value in problem.services
                seen.add(group.name)
    # Every group but those of no example is looked at.
    assert {"replicas", "load", "unmet", "acquired", "packed", "surviving_load"} <= seen


@pytest.mark.parametrize("group", KEPT, ids=lambda group: group.name)
def test_parts_are_renumbered_by_moment_and_cell(group: object) -> None:
    assert group in GROUPS
    assert isinstance(group, type(GROUPS[0]))
    key = tuple(0 for _ in group.key)
    moved = group.renumbered({key: 5}, moments=[7], cells=[9])
    expected = {KeyPart.MOMENT: 7, KeyPart.CELL: 9}
    assert moved == {tuple(expected.get(part, 0) for part in group.key): 5}
    assert group.renumbered({key: 5}) == {key: 5}


@pytest.mark.parametrize("group", KEPT, ids=lambda group: group.name)
def test_a_part_has_what_is_decided_in_its_cells(group: object) -> None:
    assert isinstance(group, type(GROUPS[0]))
    key = tuple(0 for _ in group.key)
    cells = [4, 9]
    for own in range(len(cells)):
        of_part = {tuple(own if part is KeyPart.CELL else 0 for part in group.key): 5}
        assert group.of_part(group.renumbered(of_part, cells=cells), cells) == of_part
    assert group.of_part({key: 5}, cells) == ({} if KeyPart.CELL in group.key else {key: 5})
