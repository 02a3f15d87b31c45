r"""Family 8, transitions: replicas that did not run in the period before are counted, and charged.

For each candidate c, pool p and period q, with n[c,p,-1] from the plan in force where there is one::

    started[c,p,q] >= n[c,p,q] - n[c,p,q-1]                               transition[...]

Accelerators change hands where a replica starts; one that ends frees them at no cost. A replica may stand
idle for a period instead, on accelerators that are kept for it.
"""

from __future__ import annotations

from ortools.sat.python import cp_model

from fleetplan.planner.problem import Problem
from fleetplan.planner.variables import Variables


def add(model: cp_model.CpModel, problem: Problem, variables: Variables) -> None:
    """Add one row for every set of replicas that has a period before it."""
    before = problem.running_before or {}
    for (c, p, q), started in variables.started.items():
        replicas = variables.replicas[c, p, q]
        label = f"{problem.candidates[c].label},{problem.pools[p].name},{problem.periods[q]}"
        if (c, p, q - 1) in variables.replicas:
            row = started >= replicas - variables.replicas[c, p, q - 1]
        else:
            row = started >= replicas - (before.get((c, p), 0) if q == 0 else 0)
        model.add(row).with_name(f"transition[{label}]")
