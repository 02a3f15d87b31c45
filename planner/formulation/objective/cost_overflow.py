"""Error for costs beyond 64-bit integers, placed at the item in the fleet file."""

from __future__ import annotations

from ortools.sat.python import cp_model

from fleetplan.fleet.errors import InputError
from fleetplan.planner.formulation.groups import GROUPS, members
from fleetplan.planner.formulation.scaling import LARGEST_SUM
from fleetplan.planner.formulation.variables import Variables
from fleetplan.planner.problem import Problem
from fleetplan.planner.problem.file_positions import item_issue
from fleetplan.planner.units import USD_RESOLUTION


class CostOverflowError(InputError):
    """Decisions of a fleet may cost more than 64-bit integers hold."""


def too_dear(
    problem: Problem, variables: Variables, dearest: cp_model.IntVar, units: tuple[int, int]
) -> CostOverflowError:
    """Return the error that names the most expensive decision, at its place in the fleet file.

    Parameters
    ----------
    problem, variables : Problem, Variables
        Problem and its model.
    dearest : IntVar
        Decision that may cost most.
    units : tuple[int, int]
        Its largest cost, and that of all decisions. [objective units]
    """
    most, every = (f"{each / USD_RESOLUTION:.2g} USD" for each in units)
    message = (
        f"it may cost up to {most}, and all decisions together {every}; "
        f"costs are computed up to {LARGEST_SUM / USD_RESOLUTION:.2g} USD"
    )
    hint = "lower the price, the available number, or the demand"
    block, name = _item(problem, variables, dearest)
    return CostOverflowError([item_issue(problem.fleet, block, name, "", message, hint)])


def _item(problem: Problem, variables: Variables, wanted: cp_model.IntVar) -> tuple[str, str]:
    """Return the block and name of the item that a decision is about."""
    group, key = next(
        (group.name, key)
        for group in GROUPS
        for key, variable in members(group, variables).items()
        if variable.index == wanted.index
    )
    if group == "acquired":
        return "offers", problem.pools[key[0]].acquisitions[key[1]].offer.name
    if group == "retired":
        return "pools", problem.pools[key[0]].name
    return "services", problem.candidates[key[0]].service
