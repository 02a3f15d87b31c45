"""What makes one plan simpler than another of the same cost."""

from __future__ import annotations

from ortools.sat.python import cp_model

from fleetplan.planner.formulation import PlanningModel, started_accelerators


def prefer_simple(planning: PlanningModel) -> None:
    """Let a model minimise changes, then distinct configurations in a region, then what is bought or rented.

    What is bought for no reason costs less than a simple plan may cost more.
    """
    problem, model, variables = planning.problem, planning.model, planning.variables
    running: dict[tuple[int, str], cp_model.IntVar] = {}
    for (c, p, _), replicas in variables.replicas.items():
        key = (c, problem.pools[p].region)
        if key not in running:
            running[key] = model.new_bool_var(f"distinct[{problem.candidates[c].label},{key[1]}]")
        model.add(replicas <= replicas.proto.domain[1] * running[key])
    units = list(variables.acquired.values())
    weight = 1 + sum(variable.proto.domain[1] for variable in units)
    above = weight * (len(running) + 1)
    changes = started_accelerators(problem, variables)
    model.minimize(above * changes + weight * sum(running.values()) + sum(units))
