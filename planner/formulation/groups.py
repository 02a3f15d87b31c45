"""List of all decision groups, with queries over them.

`Decisions` defines the groups (planner/formulation/variables.py). Functions here return all variables, the
continuous ones, those that make up a plan, or the service and moment of each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ortools.sat.python import cp_model

from fleetplan.planner.formulation.registry import DecisionGroup, DecisionPlace, groups_of
from fleetplan.planner.formulation.variables import Decisions, Variables
from fleetplan.planner.problem import Problem

GROUPS: Final = tuple(groups_of(Decisions))
"""Every group, once."""

KEPT: Final = tuple(group for group in GROUPS if group.kept)
"""Groups whose values make up a plan."""


def members(group: DecisionGroup, variables: Variables) -> Mapping[Any, cp_model.IntVar]:
    """Return the variables of a group by key."""
    found: Mapping[Any, cp_model.IntVar] = getattr(variables, group.name)
    return found


def all_variables(variables: Variables) -> Iterator[cp_model.IntVar]:
    """Yield all variables of all groups."""
    for group in GROUPS:
        yield from members(group, variables).values()


def continuous_indices(variables: Variables) -> frozenset[int]:
    """Return the indices of variables that may be fractional in a relaxation."""
    return frozenset(
        variable.index
        for group in GROUPS
        if group.continuous
        for variable in members(group, variables).values()
    )


def places(
    problem: Problem, variables: Variables
) -> Iterator[tuple[DecisionGroup, DecisionPlace, cp_model.IntVar]]:
    """Yield every variable with its group and its place."""
    for group in GROUPS:
        place = group.placer(problem)
        for key, variable in members(group, variables).items():
            yield group, place(key), variable
