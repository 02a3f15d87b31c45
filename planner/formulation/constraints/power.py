r"""Family 5, power: accelerators in a region stay within its facility power.

For each region r with a limit L in moment m of period q, in whole watts of a busy accelerator (watts[c]) and
of an idle one (idle[p]), with H accelerators per unit::

    sum_{c,p in r} a[c] (watts[c] - idle[p]) n[c,p,m]
      + sum_{p in r} H idle[p] (E[p] - left[p,q] + arrived[p,q]) <= L / PUE                 power[...]

Replicas count at full load, because the site must carry their peak. All other accelerators count at idle
power, including those in reserve and out of service.
"""

from __future__ import annotations

from collections.abc import Mapping

from ortools.sat.python import cp_model

from fleetplan.planner.formulation.constraints.capacity import installed_units
from fleetplan.planner.formulation.scaling import watts_ceil, watts_floor, watts_per_accelerator
from fleetplan.planner.formulation.variables import Variables
from fleetplan.planner.problem import Problem

FAMILY = 5


def add(model: cp_model.CpModel, problem: Problem, variables: Variables) -> None:
    """Add one row for every region and moment with a power limit."""
    running: dict[tuple[str, int], dict[tuple[int, int], cp_model.IntVar]] = {}
    for (c, p, m), replicas in variables.replicas.items():
        running.setdefault((problem.pools[p].region, m), {})[c, p] = replicas
    for region in problem.regions.values():
        if region.power_kw is None:
            continue
        for m, moment in enumerate(problem.moments):
            here = running.get((region.name, m), {})
            drawn = watts_drawn(problem, variables, here, (region.name, moment.period))
            limit = watts_floor(region.power_kw[moment.period], region.pue)
            model.add(drawn <= limit).with_name(f"power[{region.name},{moment.label}]")


def watts_drawn(
    problem: Problem,
    variables: Variables,
    running: Mapping[tuple[int, int], cp_model.IntVar],
    place: tuple[str, int],
) -> cp_model.LinearExprT:
    """Return the IT power of a region in a period: replicas at full load, the rest at idle. [W]

    Parameters
    ----------
    problem : Problem
        Sets and data.
    variables : Variables
        Variables of the installed units.
    running : Mapping[tuple[int, int], IntVar]
        Replicas by candidate and pool index; those of other regions are ignored.
    place : tuple[str, int]
        Region and period index.
    """
    region, q = place
    idle = {}
    terms: list[cp_model.LinearExprT] = []
    for p, pool in enumerate(problem.pools):
        if pool.region == region:
            idle[p] = watts_ceil(problem.hardware[pool.hardware].idle_w_per_accelerator)
            if idle[p]:
                watts = idle[p] * pool.accelerators_per_unit
                terms.append(watts * installed_units(problem, variables, p, q))
    for (c, p), replicas in running.items():
        candidate = problem.candidates[c]
        if p in idle and candidate.power_kw is not None:
            watts = watts_per_accelerator(candidate.power_kw, candidate.accelerators)
            terms.append(candidate.accelerators * max(watts - idle[p], 0) * replicas)
    return sum(terms)
