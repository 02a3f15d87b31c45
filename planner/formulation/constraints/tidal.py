r"""Family 8, transitions within a day: starts of replicas from slice to slice cost money, or are limited.

For each candidate c, pool p and moment m, with m' the slice before it (the last slice precedes the first),
the policy's share, H accelerators per unit, and the units installed in the pool in period q::

    switched[c,p,m] >= n[c,p,m] - n[c,p,m']                               tide[...]
    sum_c a[c] switched[c,p,m] <= share H units[p,q]                      tide_limit[...]

Kinds of days with one slice have no such rows. One representative day per kind repeats through the period, so
a replica that starts in a slice starts every day. Without cost and limit, replicas change freely and no row
exists.
"""

from __future__ import annotations

from collections import defaultdict

from ortools.sat.python import cp_model

from fleetplan.planner.formulation.constraints.capacity import installed_units
from fleetplan.planner.formulation.variables import Variables, replica_label
from fleetplan.planner.problem import Problem
from fleetplan.planner.units import exact

FAMILY = 8


def add(model: cp_model.CpModel, problem: Problem, variables: Variables) -> None:
    """Add one row for every set of replicas, and one for every pool and moment where changes are limited."""
    starting: dict[tuple[int, int], list[cp_model.LinearExprT]] = defaultdict(list)
    for (c, p, m), switched in variables.switched.items():
        starting[p, m].append(problem.candidates[c].accelerators * switched)
        before = problem.moments[m].slice_before
        earlier = None if before is None else variables.replicas.get((c, p, before))
        replicas = variables.replicas[c, p, m]
        row = switched >= (replicas if earlier is None else replicas - earlier)
        model.add(row).with_name(f"tide[{replica_label(problem, (c, p, m))}]")
    share = exact(problem.fleet.policy.tidal.max_share_per_pool)
    if share == 1:
        return
    for (p, m), accelerators in starting.items():
        pool, moment = problem.pools[p], problem.moments[m]
        held = pool.accelerators_per_unit * installed_units(problem, variables, p, moment.period)
        model.add(share.denominator * sum(accelerators) <= share.numerator * held).with_name(
            f"tide_limit[{pool.name},{moment.label}]"
        )
