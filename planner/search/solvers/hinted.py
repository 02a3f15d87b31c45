"""Plan from the hints of a model, completed before the search begins."""

from __future__ import annotations

import math
from typing import Final

from ortools.sat.python import cp_model

from fleetplan.planner.search.solvers.best import BestFound
from fleetplan.planner.search.solvers.cpsat import configured_solver, hint, solve_by_work
from fleetplan.planner.search.solvers.proofs import CPSAT
from fleetplan.planner.search.solvers.request import SolverLimits

LIMIT_S: Final = 1.0
"""Time limit to complete the plan, and at most half of the available time: most take hundredths. [s]"""

WORK_LIMIT: Final = 0.5
"""Work limit in reproducible runs. [deterministic units of CP-SAT]"""


def offer_hinted_plan(
    model: cp_model.CpModel, limits: SolverLimits, best: BestFound, reproducible: bool = False
) -> float:
    """Offer the best plan with all hinted values, and hint all its variables.

    CP-SAT follows hints, but its searches may lose the plan behind them, and HiGHS gets no hints. If no plan
    has these values, or none is found soon, the hints stay.

    Parameters
    ----------
    model : CpModel
        Model with an objective.
    limits : SolverLimits
        Limits of the search that follows.
    best : BestFound
        Receives the plan.
    reproducible : bool
        Whether to limit work instead of time.

    Returns
    -------
    float
        Work done. [deterministic units of CP-SAT]
    """
    if not len(model.proto.solution_hint.vars) or limits.stop.requested:
        return 0.0
    seconds = math.inf if reproducible else min(LIMIT_S, limits.time_limit_s / 2)
    solver = configured_solver(seconds, limits.seed, workers=1)
    solver.parameters.fix_variables_to_their_hinted_value = True
    with limits.stop.reaches(solver):
        if reproducible:
            amount = min(WORK_LIMIT, limits.time_limit_s)
            status, spent = solve_by_work(solver, model, amount, over=lambda: limits.stop.requested)
        else:
            status = solver.solve(model)
            spent = solver.response_proto.deterministic_time
    if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        best.offer_plan(solver, CPSAT)
        hint(model, solver)
    return spent
