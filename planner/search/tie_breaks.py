"""Which of the plans of least cost is told: one with requests served where they arise."""

from __future__ import annotations

from typing import Final

from ortools.sat.python import cp_model

from fleetplan.planner.formulation import PlanningModel, all_variables
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
