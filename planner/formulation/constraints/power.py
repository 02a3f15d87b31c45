r"""Family 5, power: what runs in a region stays within its facility power.

For each region r and moment m of a period q with a limit, in whole watts a[c]·kw a replica, PUE and limit L::

    sum_{c,p in r} a[c] watts[c] n[c,p,m] <= L / PUE                      power[...]

Replicas count at full load, because the site must carry their peak; hosts that run nothing are off.
"""

from __future__ import annotations

from ortools.sat.python import cp_model

from fleetplan.planner.formulation.scaling import watts_floor, watts_per_accelerator
from fleetplan.planner.formulation.variables import Variables
from fleetplan.planner.problem import Problem


def add(model: cp_model.CpModel, problem: Problem, variables: Variables) -> None:
    """Add one row for every region and moment with a power limit."""
    for region in problem.regions.values():
        if region.power_kw is None:
            continue
        for m, moment in enumerate(problem.moments):
            limit = watts_floor(region.power_kw[moment.period] / region.pue)
            used = watts(problem, variables, region.name, m)
            model.add(used <= limit).with_name(f"power[{region.name},{moment.label}]")


def watts(problem: Problem, variables: Variables, region: str, m: int) -> cp_model.LinearExprT:
    """What runs in a region in a moment draws, without PUE. [W]"""
    return sum(
        replica_watts(problem, c) * replicas
        for (c, p, when), replicas in variables.replicas.items()
        if when == m and problem.pools[p].region == region and replica_watts(problem, c)
    )


def replica_watts(problem: Problem, c: int) -> int:
    """What a replica draws, 0 where that is unknown. [W]"""
    candidate = problem.candidates[c]
    if candidate.power_kw is None:
        return 0
    return candidate.accelerators * watts_per_accelerator(candidate.power_kw, candidate.accelerators)
