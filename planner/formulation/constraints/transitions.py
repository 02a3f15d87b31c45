r"""Family 8, transitions: replicas that did not run in the period before are counted, and charged.

For each candidate c, pool p and moment m, with m' the same moment one period earlier, or n[c,p,m'] from the
plan in force::

    started[c,p,m] >= n[c,p,m] - n[c,p,m']                                transition[...]

Accelerators change hands when a replica starts; ending one is free. A replica may instead idle for a period
on reserved accelerators.
"""

from __future__ import annotations

from ortools.sat.python import cp_model

from fleetplan.planner.formulation.variables import Variables, replica_label
from fleetplan.planner.problem import Problem

FAMILY = 8


def add(model: cp_model.CpModel, problem: Problem, variables: Variables) -> None:
    """Add one row for every set of replicas with an earlier moment."""
    before = problem.running_before or {}
    for (c, p, m), started in variables.started.items():
        replicas, earlier = variables.replicas[c, p, m], problem.moments[m].before
        if earlier is None:
            row = started >= replicas - before.get((c, p, problem.moments[m].slice), 0)
        elif (c, p, earlier) in variables.replicas:
            row = started >= replicas - variables.replicas[c, p, earlier]
        else:
            row = started >= replicas
        model.add(row).with_name(f"transition[{replica_label(problem, (c, p, m))}]")
