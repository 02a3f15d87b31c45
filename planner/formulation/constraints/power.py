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
            terms = []
            for (c, p, when), replicas in variables.replicas.items():
                if when != m or problem.pools[p].region != region.name:
                    continue
                candidate = problem.candidates[c]
                if candidate.power_kw is not None:
                    watts = watts_per_accelerator(candidate.power_kw, candidate.accelerators)
                    terms.append(candidate.accelerators * watts * replicas)
            limit = watts_floor(region.power_kw[moment.period] / region.pue)
            model.add(sum(terms) <= limit).with_name(f"power[{region.name},{moment.label}]")
