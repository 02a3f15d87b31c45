"""What each variable decides, read from its group: the one place that knows the groups of `Variables`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from ortools.sat.python import cp_model

from fleetplan.planner.decomposition.blocks import MASTER
from fleetplan.planner.decomposition.matrix import IntArray
from fleetplan.planner.problem import Problem
from fleetplan.planner.variables import Variables

Theme = tuple[str, int]
"""Service, moment index"""


def themes(problem: Problem, variables: Variables, n_variables: int) -> IntArray:
    """Theme of every variable of a model: what one service does in one moment.

    Parameters
    ----------
    problem : Problem
        Gives the services of candidates and cells.
    variables : Variables
        Of the model. A variable that is in none of its groups, and all supply, is left to the master.
    n_variables : int
        Variables of the model.

    Returns
    -------
    IntArray
        Numbers of the themes, shape (n_variables,); `MASTER` where there is none.
    """
    numbers: dict[Theme, int] = {}
    found = np.full(n_variables, MASTER, dtype=np.int64)
    for theme, variable in _placements(problem, variables):
        found[variable.index] = numbers.setdefault(theme, len(numbers))
    return found


def choices(variables: Variables) -> frozenset[int]:
    """Variables that only say which configurations run.

    A linear relaxation lets a tenth of a configuration run, so limits on their number say next to nothing in
    it, and the rows that hold them are up to half of its time.
    """
    return frozenset(variable.index for variable in variables.configuration.values())


def _placements(problem: Problem, variables: Variables) -> Iterator[tuple[Theme, cp_model.IntVar]]:
    """Variables that place a service, with what they decide."""
    service = [candidate.service for candidate in problem.candidates]
    cells = problem.cells
    for (c, _, m), variable in (
        *variables.replicas.items(),
        *variables.started.items(),
        *variables.switched.items(),
    ):
        yield (service[c], m), variable
    for (c, _, _, cell), variable in variables.load.items():
        yield (service[c], cells[cell].moment), variable
    for (cell, _, _), variable in variables.disaggregated.items():
        yield (cells[cell].service, cells[cell].moment), variable
    for (cell, _), variable in (*variables.unmet.items(), *variables.worked.items()):
        yield (cells[cell].service, cells[cell].moment), variable
    for (c, _, m), variable in variables.configuration.items():
        yield (service[c], m), variable
    for (c, _, m, _), variable in (*variables.pooled.items(), *variables.pooled_replicas.items()):
        yield (service[c], m), variable
    for (_, c, _, m), variable in variables.surviving.items():
        yield (service[c], m), variable
    for (_, c, _, _, m), variable in variables.surviving_load.items():
        yield (service[c], m), variable
    for (_, c, _, m, _), variable in (
        *variables.surviving_pooled.items(),
        *variables.surviving_pooled_replicas.items(),
    ):
        yield (service[c], m), variable
    for (_, name, _, _, m), variable in variables.surviving_separate.items():
        yield (name, m), variable
