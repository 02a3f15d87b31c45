"""Feasibility: whether a problem has any plan, at any cost."""

from __future__ import annotations

from enum import StrEnum

from fleetplan.planner.formulation import build_model
from fleetplan.planner.problem import Problem
from fleetplan.planner.problem.independent_parts import components
from fleetplan.planner.search.blocks.solve import solve_planning
from fleetplan.planner.search.result import LEAST_S, SearchLimits
from fleetplan.planner.search.solvers.interrupt import Stop
from fleetplan.planner.search.solvers.request import ModelStatus, SolverLimits


class Verdict(StrEnum):
    """Answer to a feasibility question."""

    YES = "a plan was found"
    NO = "proven infeasible"
    UNKNOWN = "undecided within the time"


def feasibility(problem: Problem, limits: SearchLimits) -> Verdict:
    """Look for any plan that serves all demand.

    Parameters
    ----------
    problem : Problem
        Sets and data.
    limits : SearchLimits
        Time limit of all parts together; the gap is ignored.

    Returns
    -------
    Verdict
        NO only if proven; NO for one part is NO for the whole.
    """
    limits = limits.from_now()
    ends = limits.latest.within(limits.time_limit_s)
    parts = [component.problem for component in components(problem)] or [problem]
    verdict = Verdict.YES
    for done, part in enumerate(parts):
        left_s = max(ends.left_s / (len(parts) - done), LEAST_S)
        # A solve that times out leaves the verdict unknown.
        own_limits = SolverLimits(
            left_s, limits.seed, limits.workers, Stop(), latest=limits.latest.within(left_s)
        )
        planning = build_model(part, allow_unmet=False)
        planning.model.minimize(planning.guiding_cost)
        outcome = solve_planning(planning, own_limits, lambda *_: True)
        if outcome.status is ModelStatus.INFEASIBLE:
            return Verdict.NO
        if outcome.values is None:
            verdict = Verdict.UNKNOWN
    return verdict
