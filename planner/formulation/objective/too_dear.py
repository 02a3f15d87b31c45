"""What is said of prices times numbers beyond what 64-bit integers hold, and where in the file they stand."""

from __future__ import annotations

from ortools.sat.python import cp_model

from fleetplan.fleet.errors import InputError
from fleetplan.planner.formulation.groups import GROUPS, members
from fleetplan.planner.formulation.scaling import LARGEST_SUM
from fleetplan.planner.formulation.variables import Variables
from fleetplan.planner.problem import Problem
from fleetplan.planner.problem.places_in_file import item_issue
from fleetplan.planner.units import USD_RESOLUTION


def too_dear(
    problem: Problem, variables: Variables, dearest: cp_model.IntVar, units: tuple[int, int]
) -> InputError:
    """Return the error that names what costs most, at its place in the fleet file.

    Parameters
    ----------
    problem, variables : Problem, Variables
        The fleet and its model.
    dearest : IntVar
        The decision that may cost most.
    units : tuple[int, int]
        What it may cost, and what all decisions may. [objective units]
    """
    most, every = (f"{each / USD_RESOLUTION:.2g} USD" for each in units)
    message = (
        f"its price times the number that may be needed is {most}, of {every} in all; "
        f"a fleet's prices times its numbers are computed up to {LARGEST_SUM / USD_RESOLUTION:.2g} USD"
    )
    hint = "lower the price, the number that may be had, or the demand"
    block, name = _item(problem, variables, dearest)
    return InputError([item_issue(problem.fleet, block, name, "", message, hint)])


def _item(problem: Problem, variables: Variables, wanted: cp_model.IntVar) -> tuple[str, str]:
    """Block and name of what a decision is about."""
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
