"""Merge the results of independent parts into one result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fleetplan.planner.formulation import ReachedGoal, Solution
from fleetplan.planner.problem import Problem
from fleetplan.planner.problem.independent_parts import Component
from fleetplan.planner.search.result import (
    CheapestPlan,
    LeastUnmet,
    SearchLimits,
    SearchResult,
    open_gap,
    status_of,
)
from fleetplan.planner.search.solvers.proofs import Proof
from fleetplan.planner.search.stages import NOTHING_PROVEN
from fleetplan.planner.units import USD_RESOLUTION, gap_of_cost


def proof_of(found: SearchResult, part: Component) -> Proof:
    """Return the bound of a part's result on its objective; none if a goal or unmet demand limits it."""
    if found.bound_usd is None or found.goal is not None or found.unmet:
        return NOTHING_PROVEN
    return Proof((found.bound_usd - part.fixed_usd) * USD_RESOLUTION, found.bound_source)


def known_of(part: Component, problem: Problem, elsewhere_usd: float) -> Proof:
    """Return the known bound of a problem as a bound on the objective of its only part."""
    if problem.bounded_by is None:
        return NOTHING_PROVEN
    usd = problem.bounded_by.usd - elsewhere_usd - part.fixed_usd
    return Proof(usd * USD_RESOLUTION, problem.bounded_by.source)


def merge_parts(
    parts: Sequence[Component],
    results: Sequence[SearchResult],
    elsewhere_usd: float,
    limits: SearchLimits,
    wall_s: float,
) -> SearchResult:
    """Merge the results of independent parts: costs and bounds add up.

    Parameters
    ----------
    parts, results : Sequence[Component], Sequence[SearchResult]
        The parts, and a result with a plan for each.
    elsewhere_usd : float
        Cost of existing hosts outside all parts. [USD]
    limits : SearchLimits
        The target gap.
    wall_s : float
        Wall time of the whole search. [s]
    """
    whole = Solution()
    for part, result in zip(parts, results, strict=True):
        solution = result.solution
        if solution is None:
            raise ValueError("a part without a plan cannot be merged")
        whole.add(solution, cells=part.cell_indices)
    objective = elsewhere_usd + sum(result.objective_usd or 0.0 for result in results)
    bound = elsewhere_usd + sum(result.bound_usd or 0.0 for result in results)
    gap = gap_of_cost(objective, bound)
    goal = _reached_together([result.goal for result in results if result.goal is not None])
    unmet = _unmet_together([result.unmet for result in results])
    return SearchResult(
        status=status_of(open_gap(gap, goal, unmet), limits),
        solution=whole,
        objective_usd=objective,
        bound_usd=bound,
        bound_source="; ".join(sorted({result.bound_source for result in results})),
        wall_s=wall_s,
        deterministic_time=sum(result.deterministic_time for result in results),
        goal=goal,
        unmet=unmet,
        cheapest=_cheapest_together(parts, results, elsewhere_usd),
    )


def _cheapest_together(
    parts: Sequence[Component], results: Sequence[SearchResult], elsewhere_usd: float
) -> CheapestPlan | None:
    """Merge the cheapest plans of the parts; None where no part chose a simpler plan."""
    if all(result.cheapest is None for result in results):
        return None
    whole, usd, home_usd = Solution(), elsewhere_usd, 0.0
    for part, result in zip(parts, results, strict=True):
        solution = result.solution if result.cheapest is None else result.cheapest.solution
        usd += (result.objective_usd if result.cheapest is None else result.cheapest.usd) or 0.0
        home_usd += 0.0 if result.cheapest is None else result.cheapest.home_usd
        if solution is not None:
            whole.add(solution, cells=part.cell_indices)
    return CheapestPlan(usd, whole, home_usd)


def _unmet_together(parts: Sequence[Mapping[int, LeastUnmet]]) -> dict[int, LeastUnmet]:
    """Add up the parts' unmet demand and its bounds by priority."""
    return {
        priority: LeastUnmet(
            sum(part[priority].value for part in parts if priority in part),
            sum(part[priority].bound for part in parts if priority in part),
        )
        for priority in sorted({priority for part in parts for priority in part})
    }


def _reached_together(parts: Sequence[ReachedGoal]) -> ReachedGoal | None:
    """Add up the parts' goal values and bounds."""
    if not parts:
        return None
    return ReachedGoal(parts[0].goal, sum(part.value for part in parts), sum(part.bound for part in parts))
