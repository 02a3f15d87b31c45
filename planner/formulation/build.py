"""Assembly of the CP-SAT model: variables, one module per constraint family, then the objective."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType
from typing import Final

from ortools.sat.python import cp_model

from fleetplan.planner.formulation import constraints
from fleetplan.planner.formulation.constraints import capacity
from fleetplan.planner.formulation.create import create_variables
from fleetplan.planner.formulation.groups import continuous_indices
from fleetplan.planner.formulation.objective.tco import guiding_cost, total_cost
from fleetplan.planner.formulation.variables import Variables
from fleetplan.planner.problem import Problem


def _families() -> tuple[ModuleType, ...]:
    found = (
        import_module(f"{constraints.__name__}.{each.name}") for each in iter_modules(constraints.__path__)
    )
    families = [module for module in found if hasattr(module, "FAMILY")]
    return tuple(sorted(families, key=lambda family: (family.FAMILY, family.__name__)))


FAMILIES: Final = _families()
"""The constraint families: modules of their folder that have a number, `FAMILY`, in its order; those of one
number by name. The rows of planner/formulation/FORMULATION.md have the same order."""


@dataclass(frozen=True)
class PlanningModel:
    """CP-SAT model with its problem and variables."""

    problem: Problem
    model: cp_model.CpModel
    variables: Variables

    @cached_property
    def continuous(self) -> frozenset[int]:
        """Return the indices of variables that may be fractional in a relaxation."""
        return continuous_indices(self.variables)

    @cached_property
    def total_cost(self) -> cp_model.LinearExprT:
        """Return the variable part of the expected TCO. [objective units]"""
        return total_cost(self.problem, self.variables)

    @cached_property
    def guiding_cost(self) -> cp_model.LinearExprT:
        """Return an objective that leads to a cheap plan where any plan is enough."""
        return guiding_cost(self.problem, self.variables)


def build_model(problem: Problem, allow_unmet: bool, without: Collection[ModuleType] = ()) -> PlanningModel:
    """Build all constraints of a problem, without an objective.

    Parameters
    ----------
    problem : Problem
        Sets and data.
    allow_unmet : bool
        Whether demand may stay unmet.
    without : Collection[ModuleType]
        Families to leave out, for example to measure what they cost.
    """
    model = cp_model.CpModel()
    variables = create_variables(model, problem, allow_unmet, bounded_by_supply=capacity not in without)
    families = [family for family in FAMILIES if family not in without]
    decide(families, model, problem, variables)
    for family in families:
        family.add(model, problem, variables)
    state_linearly(model)
    return PlanningModel(problem, model, variables)


def decide(
    families: Iterable[ModuleType], model: cp_model.CpModel, problem: Problem, variables: Variables
) -> None:
    """Call `decide` of families that have it: they create their variables before any row is added.

    The rows of budgets and of regret sum the costs of all families.
    """
    for family in families:
        if hasattr(family, "decide"):
            family.decide(model, problem, variables)


def state_linearly(model: cp_model.CpModel) -> None:
    """Turn rows without variables into linear rows; OR-Tools states them as clauses.

    A limit on no variable, such as the power of a region without pools, is true or false at once: Python sums
    no terms to 0, so OR-Tools receives a truth value. Code that reads rows expects linear ones, and reading
    `constraint.linear` of a clause makes it an unsatisfiable row.
    """
    proto = model.proto
    for constraint in proto.constraints:
        if constraint.has_linear():
            continue
        if not constraint.has_bool_or():
            raise ValueError(f"row {constraint.name!r} is neither linear nor a truth value")
        holds = any(proto.variables[literal].domain[0] == 1 for literal in constraint.bool_or.literals)
        constraint.linear.domain.extend([0, 0] if holds else [1, 1])
