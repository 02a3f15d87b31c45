"""Which of the plans of least cost is told: the simplest one, with requests served where they arise."""

from __future__ import annotations

from typing import Final

from ortools.sat.python import cp_model

from fleetplan.planner.formulation import PlanningModel, all_variables, started_accelerators
from fleetplan.planner.search.solvers.cpsat import configured_solver

LOCAL_SERVING_TIME_LIMIT_S: Final = 3.0
"""Time to send requests home. [s]"""


def prefer_local_serving(
    planning: PlanningModel, values: cp_model.CpSolver, seed: int
) -> cp_model.CpSolver | None:
    """Reassign requests to the replicas that run, so that as few as may be are served elsewhere.

    Regions that serve each other's requests cost no less than each its own, so a plan of least cost may well
    do the former.

    Parameters
    ----------
    planning : PlanningModel
        Its model is used up: what runs and what was bought is fixed in it.
    values : CpSolver
        The plan.
    seed : int
        Of the solver.

    Returns
    -------
    CpSolver or None
        The values of such a plan; None where no request is served elsewhere, or the time was too short.
    """
    problem, model, variables = planning.problem, planning.model, planning.variables
    away = [
        load
        for (_, _, p, index), load in variables.load.items()
        if problem.pools[p].region != problem.cells[index].region
    ]
    if not any(values.value(load) for load in away):
        return None
    routing = {
        variable.index
        for group in (variables.load.values(), variables.disaggregated.values())
        for variable in group
    }
    model.clear_hints()  # type: ignore[no-untyped-call]
    for variable in all_variables(variables):
        decided = values.value(variable)
        if variable.index in routing:
            model.add_hint(variable, decided)
        else:
            model.add(variable == decided)
    model.minimize(cp_model.LinearExpr.sum(away))
    # With the replicas fixed it is all but a linear program; more workers only wait for each other.
    solver = configured_solver(LOCAL_SERVING_TIME_LIMIT_S, seed, 1)
    solver.parameters.linearization_level = 2
    return solver if solver.solve(model) in (cp_model.OPTIMAL, cp_model.FEASIBLE) else None


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
