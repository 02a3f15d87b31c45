r"""Family 2, replica load: the loads of all classes on a set of replicas add up to at most their number.

For each candidate c, pool p and period q, with S load units a replica::

    sum_k w[c,k,p,q] <= S n[c,p,q]                                        replica_load[...]

A class that takes mu[c,k] requests/s alone uses 1/mu of a replica for each request/s: replicas are
shared by classes, which is what lets small requests run on small accelerators.
"""

from __future__ import annotations

from ortools.sat.python import cp_model

from fleetplan.planner.problem import Problem
from fleetplan.planner.scaling import LOAD_UNITS_PER_REPLICA
from fleetplan.planner.variables import Variables


def add(model: cp_model.CpModel, problem: Problem, variables: Variables) -> None:
    """Add one row for every set of replicas."""
    for (c, p, q), replicas in variables.replicas.items():
        candidate = problem.candidates[c]
        loads = [
            variables.load[c, k, p, q]
            for k in range(len(candidate.requests_per_s))
            if (c, k, p, q) in variables.load
        ]
        model.add(sum(loads) <= LOAD_UNITS_PER_REPLICA * replicas).with_name(
            f"replica_load[{candidate.label},{problem.pools[p].name},{problem.periods[q]}]"
        )
