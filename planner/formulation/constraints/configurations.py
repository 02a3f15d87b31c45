r"""Family 9, configurations: a service runs at most K distinct configurations per region and moment.

For each service s, region r and moment m::

    n[c,p,m] <= U configuration[c,r,m]                                    runs[...]
    sum_{c of s} configuration[c,r,m] <= K                                configurations[...]

A prefill and a decode configuration count as two.
"""

from __future__ import annotations

from ortools.sat.python import cp_model

from fleetplan.planner.formulation.bounds import served_cells
from fleetplan.planner.formulation.variables import Variables, replica_label
from fleetplan.planner.problem import Problem

FAMILY = 9


def add(model: cp_model.CpModel, problem: Problem, variables: Variables) -> None:
    """Add the rows if the policy limits the number of configurations."""
    limit = problem.fleet.policy.max_configs_per_service_region
    if limit is None:
        return
    for (c, p, m), replicas in variables.replicas.items():
        region = problem.pools[p].region
        bound = replicas.proto.domain[1]
        model.add(replicas <= bound * variables.configuration[c, region, m]).with_name(
            f"runs[{replica_label(problem, (c, p, m))}]"
        )
    for service, region, m in served_cells(problem):
        running = [
            variables.configuration[c, region, m]
            for c in problem.candidates_of(service)
            if (c, region, m) in variables.configuration
        ]
        model.add(sum(running) <= limit).with_name(
            f"configurations[{service},{region},{problem.moments[m].label}]"
        )
