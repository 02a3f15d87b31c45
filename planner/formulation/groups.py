"""All groups of decision variables, and what is asked of them together.

`Decisions` is the one list of the groups (planner/formulation/variables.py). Whoever needs all variables, the
continuous ones, those whose values make a plan, or the service and moment of a variable asks here.
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
"""Those whose values make a plan."""


def members(group: DecisionGroup, variables: Variables) -> Mapping[Any, cp_model.IntVar]:
    """The variables of a group by their keys."""
    found: Mapping[Any, cp_model.IntVar] = getattr(variables, group.name)
    return found


def all_variables(variables: Variables) -> Iterator[cp_model.IntVar]:
    """Every variable of all groups."""
    for group in GROUPS:
        yield from members(group, variables).values()


def continuous_indices(variables: Variables) -> frozenset[int]:
    """Indices of the variables that a relaxation need not keep whole."""
    return frozenset(
        variable.index
        for group in GROUPS
        if group.continuous
        for variable in members(group, variables).values()
    )


def places(
    problem: Problem, variables: Variables
) -> Iterator[tuple[DecisionGroup, DecisionPlace, cp_model.IntVar]]:
    """Every variable with its group and its place."""
    for group in GROUPS:
        place = group.placer(problem)
        for key, variable in members(group, variables).items():
            yield group, place(key), variable
