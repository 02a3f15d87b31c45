"""Search for a plan that keeps its budgets in unrounded numbers.

The model's budget rows allow for whole load units (planner/formulation/constraints/budgets.py), so that a
budget equal to the cost of a plan admits that plan. A plan within the target gap may then exceed its budget
by this allowance. The cheapest plan of the same model rarely does. The last resort is a model without the
allowance, which excludes some plans that keep the budget.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Final

from fleetplan.planner.problem import Problem
from fleetplan.planner.search.result import (
    OPTIMAL_GAP,
    LeastUnmet,
    SearchLimits,
    SearchResult,
    SolveStatus,
    Watcher,
    open_gap,
    status_of,
)
from fleetplan.planner.search.run import search_parts
from fleetplan.planner.search.solvers.interrupt import Stop
from fleetplan.planner.units import gap_of_cost

LEAST_STRICT_S: Final = 5.0
"""Least time, within the limit, to search again after a plan exceeded a budget. [s]"""

CHEAPEST_SHARE_OF_TIME: Final = 0.5
"""Share of the remaining time for the cheapest plan, before the model without the allowance is solved."""

Holds = Callable[[Problem, SearchResult], bool]
"""Function that checks whether a result keeps the budgets in unrounded numbers."""


def search(
    problem: Problem,
    limits: SearchLimits,
    watch: Watcher | None = None,
    stop: Stop | None = None,
    holds: Holds | None = None,
) -> SearchResult:
    """Find the cheapest plan that leaves the least demand unmet.

    Parameters
    ----------
    problem : Problem
        Sets and data.
    limits : SearchLimits
        Time limit and target gap.
    watch : callable, optional
        Called on every improvement of plan or bound.
    stop : Stop, optional
        Ends the search at the best plan so far.
    holds : callable, optional
        Checks a result against the budgets. If the first plan exceeds one, the search continues as described
        above.

    Returns
    -------
    SearchResult
        Infeasible only if proven. Bounds are those of the model with the allowance.
    """
    first = search_parts(problem, limits, watch, stop)
    if first.solution is None or holds is None or holds(problem, first):
        return first
    found = first
    if first.status is not SolveStatus.LIMIT:
        cheapest = replace(limits, gap_ratio=min(OPTIMAL_GAP, limits.gap_ratio))
        found = _again(problem, cheapest, CHEAPEST_SHARE_OF_TIME, found, watch, stop)
    if found is first or found.solution is None or not holds(problem, found):
        found = _again(replace(problem, strict_budgets=True), limits, 1.0, found, watch, stop)
    return found if found.solution is None else _with_bounds(found, first, limits)


def _again(
    problem: Problem,
    limits: SearchLimits,
    share_of_time: float,
    earlier: SearchResult,
    watch: Watcher | None,
    stop: Stop | None,
) -> SearchResult:
    """Search again in a share of the remaining time, and add the time of earlier searches."""
    spent = earlier.deterministic_time if limits.reproducible else earlier.wall_s
    left = max(limits.time_limit_s - spent, min(LEAST_STRICT_S, limits.time_limit_s))
    found = search_parts(problem, replace(limits, time_limit_s=share_of_time * left), watch, stop)
    return replace(
        found,
        wall_s=earlier.wall_s + found.wall_s,
        deterministic_time=earlier.deterministic_time + found.deterministic_time,
    )


def _with_bounds(found: SearchResult, first: SearchResult, limits: SearchLimits) -> SearchResult:
    """Replace bounds on unmet demand and goal by those of the model with the allowance; update the gap."""
    unmet, goal = _unmet(found.unmet, first.unmet), found.goal
    if goal is not None and first.goal is not None:
        bounds = (goal.bound, first.goal.bound)
        goal = replace(goal, bound=max(bounds, key=partial(goal.goal.told_gap, goal.value)))
    gap = gap_of_cost(found.objective_usd or 0.0, found.bound_usd or 0.0)
    return replace(found, unmet=unmet, goal=goal, status=status_of(open_gap(gap, goal, unmet), limits))


def _unmet(found: Mapping[int, LeastUnmet], first: Mapping[int, LeastUnmet]) -> dict[int, LeastUnmet]:
    """Return unmet demand with the lower bound of both searches; 0 where the first plan serves in full."""
    return {
        priority: replace(least, bound=min(least.bound, first[priority].bound if priority in first else 0.0))
        for priority, least in found.items()
    }
