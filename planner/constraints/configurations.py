r"""Family 9, configurations: a service runs at most K distinct configurations in a region and period.

For each service s, region r and period q, with y[c] telling whether candidate c runs::

    n[c,p,q] <= U y[c,r,q]                                                runs[...]
    sum_{c of s} y[c,r,q] <= K                                            configurations[...]

A prefill and a decode configuration count as two.
"""

from __future__ import annotations

from ortools.sat.python import cp_model

from fleetplan.planner.problem import Problem
from fleetplan.planner.variables import Variables


def add(model: cp_model.CpModel, problem: Problem, variables: Variables) -> None:
    """Add the rows where the policy limits the number of configurations."""
    limit = problem.fleet.policy.max_configs_per_service_region
    if limit is None:
        return
    for (c, p, q), replicas in variables.replicas.items():
        region = problem.pools[p].region
        bound = replicas.proto.domain[1]
        model.add(replicas <= bound * variables.configuration[c, region, q]).with_name(
            f"runs[{problem.candidates[c].label},{problem.pools[p].name},{problem.periods[q]}]"
        )
    for cell in problem.cells:
        running = [
            variables.configuration[c, cell.region, cell.period]
            for c in problem.candidates_of(cell.service)
            if (c, cell.region, cell.period) in variables.configuration
        ]
        model.add(sum(running) <= limit).with_name(
            f"configurations[{cell.service},{cell.region},{problem.periods[cell.period]}]"
        )
