"""Roles of variables, as arrays for the decomposition."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fleetplan.planner.formulation import Variables, places
from fleetplan.planner.problem import Problem
from fleetplan.planner.problem.kv_pairs import KvPairs
from fleetplan.planner.search.blocks.split import MASTER
from fleetplan.planner.search.solvers.matrix import IntArray

NONE = -1
"""Number of a missing service, moment, region or slot."""


@dataclass(frozen=True, slots=True, eq=False)
class VariableRoles:
    """Role of each variable of a model, in its order; `NONE` where it has none.

    A variable outside all groups of `Variables` has none.

    Attributes
    ----------
    service, moment, region : IntArray
        Numbers of the service it places, of its moment, and of the region where it runs.
    slot : IntArray
        Number of the slot (candidate and pool) whose use it decides.
    home : IntArray
        Moment from which it defers offline work.
    growth : IntArray
        1 if increasing it adds supply, -1 if decreasing it does, 0 if it is no supply.
    period_of : IntArray
        Period index by moment, shape (n_moments,).
    """

    service: IntArray
    moment: IntArray
    region: IntArray
    slot: IntArray
    home: IntArray
    growth: IntArray
    period_of: IntArray

    @property
    def block_keys(self) -> IntArray:
        """Return the block key of each variable, from its service and moment; `MASTER` without both."""
        moments = int(self.moment.max(initial=0)) + 1
        placed = (self.service != NONE) & (self.moment != NONE)
        return np.where(placed, self.service * moments + self.moment, MASTER)


def roles(problem: Problem, variables: Variables, n_variables: int) -> VariableRoles:
    """Return the role of every variable of a model.

    Parameters
    ----------
    problem : Problem
        Gives the services of candidates and cells.
    variables : Variables
        Variables of the model.
    n_variables : int
        Number of variables.
    """
    service, moment, region, slot, home = (np.full(n_variables, NONE, dtype=np.int64) for _ in range(5))
    growth = np.zeros(n_variables, dtype=np.int64)
    services: dict[str, int] = {}
    regions: dict[str, int] = {}
    slots: dict[tuple[int, int], int] = {}
    for group, place, variable in places(problem, variables):
        index = variable.index
        if place.service is not None:
            service[index] = services.setdefault(place.service, len(services))
        if place.moment is not None:
            moment[index] = place.moment
        if place.region is not None:
            region[index] = regions.setdefault(place.region, len(regions))
        if place.slot is not None:
            slot[index] = slots.setdefault(place.slot, len(slots))
        if place.home is not None:
            home[index] = place.home
        growth[index] = group.growth
    for (cell, k, pair), variable in variables.disaggregated.items():
        # Disaggregated requests run where their replicas are, like loads of other regions.
        place_name = _region_of(problem, variables.kv_pairs[cell, k], pair)
        region[variable.index] = regions.setdefault(place_name, len(regions))
    periods = np.array([each.period for each in problem.moments], dtype=np.int64)
    return VariableRoles(service, moment, region, slot, home, growth, periods)


def _region_of(problem: Problem, known: KvPairs, pair: int) -> str:
    """Return the region of a pair's decode replicas, the first if there are several."""
    _, pool = known.decode[known.pairs[pair].decode].slots[0]
    return problem.pools[pool].region


def block_keys(problem: Problem, variables: Variables, n_variables: int) -> IntArray:
    """Return the block key of every variable: its service and moment.

    Parameters
    ----------
    problem, variables, n_variables
        As in `roles`.

    Returns
    -------
    IntArray
        Block keys, shape (n_variables,); `MASTER` where there is none.
    """
    return roles(problem, variables, n_variables).block_keys


def indicator_variables(variables: Variables) -> frozenset[int]:
    """Return the variables that only indicate which configurations run.

    A linear relaxation may run a tenth of a configuration, so limits on their number barely bind there, and
    the rows with these variables take up to half of its time.
    """
    return frozenset(variable.index for variable in variables.configuration.values())
