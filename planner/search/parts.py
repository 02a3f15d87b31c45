"""One answer of the parts of a problem that share nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fleetplan.planner.formulation import Reached, Solution
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
    """The bound that a search of a part has proven of all its plans, as one on its objective."""
    if found.bound_usd is None or found.goal is not None or found.unmet:
        return NOTHING_PROVEN
    return Proof((found.bound_usd - part.fixed_usd) * USD_RESOLUTION, found.bound_source)


def known_of(part: Component, problem: Problem, elsewhere_usd: float) -> Proof:
    """The bound that is known of a problem, as one on the objective of its only part."""
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
    """One result of parts that share nothing: costs and bounds add up.

    Parameters
    ----------
    parts, results : Sequence[Component], Sequence[SearchResult]
        The parts, and what was found of each: a plan.
    elsewhere_usd : float
        Cost of what exists in no part.
    limits : SearchLimits
        With the gap that was asked for.
    wall_s : float
        The whole search. [s]
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
    """The cheapest plans of the parts, where a simpler one was taken for any of them."""
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
    """What the parts of a problem leave unmet: values and bounds add up."""
    return {
        priority: LeastUnmet(
            sum(part[priority].value for part in parts if priority in part),
            sum(part[priority].bound for part in parts if priority in part),
        )
        for priority in sorted({priority for part in parts for priority in part})
    }


def _reached_together(parts: Sequence[Reached]) -> Reached | None:
    """What the parts of a problem reach of its goal: values and bounds add up."""
    if not parts:
        return None
    return Reached(parts[0].goal, sum(part.value for part in parts), sum(part.bound for part in parts))
