"""Plans for all demand scenarios that follow from plans for each of them under the same purchases.

The best purchases for one scenario with their placements in every other are a plan for uncertain demand, and
the expected cost of the best plans alone is a bound on it: nobody does better without knowing what comes than
with. Both are at hand once the cost of being wrong is known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from fleetplan.planner.formulation import Goal, Reached, Solution, goal_of
from fleetplan.planner.problem import Problem
from fleetplan.planner.search.result import SearchLimits, SearchResult, SolveStatus, open_gap, status_of
from fleetplan.planner.search.solvers.proofs import VARIABLES, Proof, contradicted
from fleetplan.planner.units import gap_of_cost

LEAST_REGRET: Final = "least-regret"

GOAL_ROUNDING_RATIO: Final = 1e-4
"""Share of a goal within which two plans are alike: energy is counted by whole load units."""

ByScenario = Mapping[str, SearchResult]
"""What was found for every demand scenario alone, all with the same purchases."""


def best_of(
    problem: Problem, result: SearchResult, found: Sequence[ByScenario], limits: SearchLimits
) -> SearchResult:
    """The best of what was found for all scenarios together, and of plans that serve each of them in full.

    Parameters
    ----------
    problem : Problem
        With demand scenarios, and the best of each alone.
    result : SearchResult
        Found for all of them together.
    found : Sequence[ByScenario]
        Plans by scenario under the same purchases.
    limits : SearchLimits
        Says which gap is good enough.
    """
    if result.status is SolveStatus.INFEASIBLE:
        return result
    best, goal = result, goal_of(problem)
    for parts in found:
        if all(_serves_all(part, goal) for part in parts.values()):
            merged = _merged(problem, best, parts)
            if _within_tco(problem, merged) and _better(merged, best):
                best = merged
    if best.solution is None:
        return result
    together = Proof(best.bound_usd or 0.0, best.bound_source)
    alone_usd = _known_demand_bound_usd(problem) if _cost_alone_decides(problem) else 0.0
    return _bounded(best, (together, Proof(alone_usd, "best plans of each scenario alone")), limits)


def better_of(one: SearchResult, other: SearchResult, limits: SearchLimits) -> SearchResult:
    """The better of two plans of the same problem, with what is proven of both.

    Parameters
    ----------
    one, other : SearchResult
        Found one after the other; the latter has a plan.
    limits : SearchLimits
        Says which gap is good enough.
    """
    if one.solution is None:
        return other
    proofs = [Proof(each.bound_usd or 0.0, each.bound_source) for each in (one, other)]
    return _bounded(one if _better(one, other) else other, proofs, limits)


def _bounded(result: SearchResult, proofs: Sequence[Proof], limits: SearchLimits) -> SearchResult:
    """A plan with the best of several bounds that it does not contradict."""
    objective = result.objective_usd or 0.0
    holding = [each for each in proofs if not contradicted(each.bound, objective)]
    told = max(holding, key=lambda each: each.bound, default=Proof(0.0, VARIABLES))
    bound = min(told.bound, objective)
    gap = gap_of_cost(objective, bound)
    status = status_of(open_gap(gap, result.goal, result.unmet), limits)
    return replace(result, bound_usd=bound, bound_source=told.source, status=status)


def _within_tco(problem: Problem, merged: SearchResult) -> bool:
    """Whether a plan keeps the limit of TCO, which holds in the mean of the scenarios."""
    most_usd = problem.fleet.budget.tco_usd
    return most_usd is None or (merged.objective_usd or 0.0) <= most_usd


def _serves_all(part: SearchResult, goal: Goal | None) -> bool:
    """Whether a plan for one scenario leaves nothing unmet, and says what it reaches of the goal."""
    if part.solution is None or part.solution.unmet:
        return False
    return goal is None or goal.name == LEAST_REGRET or part.goal is not None


def _cost_alone_decides(problem: Problem) -> bool:
    """Whether the best plans alone are the cheapest ones: not those that come first in energy, say."""
    goal = goal_of(problem)
    return goal is None or goal.name == LEAST_REGRET


def _better(one: SearchResult, other: SearchResult) -> bool:
    """Whether a plan serves what another one does not, or reaches more of the goal, or costs less.

    Of two plans that reach the same but for rounding, the cheaper one is better, if it reaches no less; so it
    is where the other one is good enough, goal and cost: a little more of the goal may cost much.
    """
    if _unserved(one) != _unserved(other):
        return _unserved(other)
    cheaper = (one.objective_usd or 0.0) < (other.objective_usd or 0.0)
    if one.goal is None or other.goal is None:
        return cheaper
    goal = one.goal.goal
    gained = (one.goal.value - other.goal.value) * (1 if goal.rising else -1)
    enough = other.status in (SolveStatus.OPTIMAL, SolveStatus.WITHIN_GAP)
    if not enough and goal.gap(one.goal.value, other.goal.value) > GOAL_ROUNDING_RATIO:
        return gained > 0
    return cheaper and gained >= 0


def _unserved(result: SearchResult) -> bool:
    return result.solution is None or bool(result.solution.unmet)


def _known_demand_bound_usd(problem: Problem) -> float:
    """Expected cost, at least, of who knows the demand; 0 where that is not known. [USD]"""
    best = problem.scenario_optima or {}
    if not problem.bound_by_scenarios or any(each.unmet_requests_per_s > 0 for each in best.values()):
        return 0.0
    return sum(
        scenario.probability * best[scenario.name].bound_usd
        for scenario in problem.fleet.demand_scenarios
        if scenario.name in best
    )


def _merged(problem: Problem, result: SearchResult, parts: ByScenario) -> SearchResult:
    """Plans for each scenario as one plan for all of them."""
    usd = {name: part.objective_usd or 0.0 for name, part in parts.items()}
    expected = sum(each.probability * usd[each.name] for each in problem.fleet.demand_scenarios)
    solution = Solution()
    for name, part in parts.items():
        if part.solution is not None:
            moments = [m for m, moment in enumerate(problem.moments) if moment.scenario == name]
            cells = [i for i, cell in enumerate(problem.cells) if cell.moment in moments]
            solution.add(part.solution, moments, cells)
    reached, goal = result.goal, goal_of(problem)
    if goal is not None:
        # Where the search for all of them found nothing, it proved nothing of the goal either.
        reached = _reached(problem, reached or Reached(goal, goal.most, goal.most), parts)
    return replace(result, solution=solution, objective_usd=expected, goal=reached, cheapest=None)


def _reached(problem: Problem, together: Reached, parts: ByScenario) -> Reached:
    """What plans for each scenario reach of the goal: the largest regret, or the expected value.

    Parameters
    ----------
    problem : Problem
        With demand scenarios, and the best of each alone.
    together : Reached
        What was reached for all of them together, with its bound.
    parts : ByScenario
        The plans.
    """
    goal = together.goal
    if goal.name == LEAST_REGRET:
        best = problem.scenario_optima or {}
        value = max((part.objective_usd or 0.0) - best[name].usd for name, part in parts.items())
    else:
        reached = {name: part.goal.value for name, part in parts.items() if part.goal is not None}
        value = sum(each.probability * reached[each.name] for each in problem.fleet.demand_scenarios)
    bound = max(together.bound, value) if goal.rising else min(together.bound, value)
    return Reached(goal, value, bound)
