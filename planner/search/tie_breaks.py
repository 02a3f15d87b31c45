"""Tie-break between plans of least cost: serve requests where they arise."""

from __future__ import annotations

from typing import Final

from ortools.sat.python import cp_model

from fleetplan.planner.formulation import PlanningModel, all_variables
from fleetplan.planner.search.solvers.cpsat import configured_solver

LOCAL_SERVING_TIME_LIMIT_S: Final = 3.0
"""Time limit of the tie-break. [s]"""


def prefer_local_serving(
    planning: PlanningModel, values: cp_model.CpSolver, seed: int
) -> cp_model.CpSolver | None:
    """Reroute requests between running replicas so that as few as possible are served in other regions.

    Two regions that serve each other's requests cost the same as each serving its own, so a least-cost plan
    may do either.

    Parameters
    ----------
    planning : PlanningModel
        Its model is changed: replicas and purchases are fixed.
    values : CpSolver
        Values of the plan.
    seed : int
        Random seed.

    Returns
    -------
    CpSolver or None
        Values of the new plan; None if no request was served elsewhere or time ran out.
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
    # With replicas fixed the model is nearly a linear program: more workers do not help.
    solver = configured_solver(LOCAL_SERVING_TIME_LIMIT_S, seed, 1)
    solver.parameters.linearization_level = 2
    return solver if solver.solve(model) in (cp_model.OPTIMAL, cp_model.FEASIBLE) else None
