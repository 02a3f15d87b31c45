"""What each variable decides, as arrays that the decomposition works on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fleetplan.planner.formulation import Variables, places
from fleetplan.planner.problem import Problem
from fleetplan.planner.problem.kv_pairs import KvPairs
from fleetplan.planner.search.blocks.split import MASTER
from fleetplan.planner.search.solvers.matrix import IntArray

NONE = -1
"""Number of a service, moment or slot where a variable has none."""


@dataclass(frozen=True, slots=True, eq=False)
class VariableRoles:
    """What each variable of a model decides, in its order; `NONE` where it has no such thing.

    A variable that is in no group of `Variables` has nothing.

    Attributes
    ----------
    service, moment, region : IntArray
        Number of the service that it places, index of the moment, and number of the region where it runs.
    slot : IntArray
        Number of the candidate and pool whose use it decides.
    home : IntArray
        Index of the moment whose offline work it leaves in that moment.
    growth : IntArray
        1 where more of it is more supply, -1 where less of it is, 0 where it is no supply.
    period_of : IntArray
        Index of the period by moment, shape (n_moments,).
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
        """Number of what one service does in one moment; `MASTER` for what belongs to no such block_key."""
        moments = int(self.moment.max(initial=0)) + 1
        placed = (self.service != NONE) & (self.moment != NONE)
        return np.where(placed, self.service * moments + self.moment, MASTER)


def roles(problem: Problem, variables: Variables, n_variables: int) -> VariableRoles:
    """Read what every variable of a model decides.

    Parameters
    ----------
    problem : Problem
        Gives the services of candidates and cells.
    variables : Variables
        Of the model.
    n_variables : int
        Variables of the model.
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
        # Requests of another region run where the replicas that they pass between are, as loads of theirs do.
        place_name = _region_of(problem, variables.kv_pairs[cell, k], pair)
        region[variable.index] = regions.setdefault(place_name, len(regions))
    periods = np.array([each.period for each in problem.moments], dtype=np.int64)
    return VariableRoles(service, moment, region, slot, home, growth, periods)


def _region_of(problem: Problem, known: KvPairs, pair: int) -> str:
    """Where the decode replicas of a pair are, the first of them where they are in several regions."""
    _, pool = known.decode[known.pairs[pair].decode].slots[0]
    return problem.pools[pool].region


def block_keys(problem: Problem, variables: Variables, n_variables: int) -> IntArray:
    """Theme of every variable of a model: what one service does in one moment.

    Parameters
    ----------
    problem, variables, n_variables
        As `roles` takes them.

    Returns
    -------
    IntArray
        Numbers of the block_keys, shape (n_variables,); `MASTER` where there is none.
    """
    return roles(problem, variables, n_variables).block_keys


def indicator_variables(variables: Variables) -> frozenset[int]:
    """Variables that only say which configurations run.

    A linear relaxation lets a tenth of a configuration run, so limits on their number say next to nothing in
    it, and the rows that hold them are up to half of its time.
    """
    return frozenset(variable.index for variable in variables.configuration.values())
