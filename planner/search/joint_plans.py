"""Plans for all demand scenarios, merged from plans for each scenario under the same purchases.

The best purchases for one scenario, with their placements in every scenario, are a plan for uncertain demand.
The expected cost of the scenarios' own optima is a lower bound: knowing the demand in advance never costs
more. Both follow from the costs of wrong forecasts without another solve.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from fleetplan.planner.formulation import Goal, ReachedGoal, Solution, goal_of
from fleetplan.planner.problem import Problem
from fleetplan.planner.search.result import SearchLimits, SearchResult, SolveStatus, open_gap, status_of
from fleetplan.planner.search.solvers.proofs import VARIABLES, Proof, contradicted
from fleetplan.planner.units import gap_of_cost

LEAST_REGRET: Final = "least-regret"

GOAL_ROUNDING_RATIO: Final = 1e-4
"""Relative difference of a goal that counts as equal: energy is counted in whole load units."""

ByScenario = Mapping[str, SearchResult]
"""Results by scenario, all with the same purchases."""


def best_of(
    problem: Problem, result: SearchResult, found: Sequence[ByScenario], limits: SearchLimits
) -> SearchResult:
    """Return the best of a joint result and of merged plans that serve every scenario in full.

    Parameters
    ----------
    problem : Problem
        Demand scenarios, with the optimum of each.
    result : SearchResult
        Result of the search over all scenarios together.
    found : Sequence[ByScenario]
        Results by scenario, each set under the same purchases.
    limits : SearchLimits
        The target gap.
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
    """Return the better of two plans of one problem, with the best bound of both.

    Parameters
    ----------
    one, other : SearchResult
        Results in order of time; `other` has a plan.
    limits : SearchLimits
        The target gap.
    """
    if one.solution is None:
        return other
    proofs = [Proof(each.bound_usd or 0.0, each.bound_source) for each in (one, other)]
    return _bounded(one if _better(one, other) else other, proofs, limits)


def _bounded(result: SearchResult, proofs: Sequence[Proof], limits: SearchLimits) -> SearchResult:
    """Return a plan with the highest of the bounds that it does not contradict."""
    objective = result.objective_usd or 0.0
    holding = [each for each in proofs if not contradicted(each.bound, objective)]
    told = max(holding, key=lambda each: each.bound, default=Proof(0.0, VARIABLES))
    bound = min(told.bound, objective)
    gap = gap_of_cost(objective, bound)
    status = status_of(open_gap(gap, result.goal, result.unmet), limits)
    return replace(result, bound_usd=bound, bound_source=told.source, status=status)


def _within_tco(problem: Problem, merged: SearchResult) -> bool:
    """Return whether a plan keeps the TCO limit, which applies to the mean of the scenarios."""
    most_usd = problem.fleet.budget.tco_usd
    return most_usd is None or (merged.objective_usd or 0.0) <= most_usd


def _serves_all(part: SearchResult, goal: Goal | None) -> bool:
    """Return whether a scenario's plan serves all demand and reports a value of the goal, if there is one."""
    if part.solution is None or part.solution.unmet:
        return False
    return goal is None or goal.name == LEAST_REGRET or part.goal is not None


def _cost_alone_decides(problem: Problem) -> bool:
    """Return whether the scenarios' optima minimise cost; a goal such as energy would come first."""
    goal = goal_of(problem)
    return goal is None or goal.name == LEAST_REGRET


def _better(one: SearchResult, other: SearchResult) -> bool:
    """Return whether a plan is better: in served demand, then in the goal, then in cost.

    If the goal values differ only by rounding, or the other plan meets the target gap, cost decides between
    plans that reach no less: a little more of the goal may cost much.
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
    """Return a lower bound on the expected cost under known demand; 0 where unknown. [USD]"""
    best = problem.scenario_optima or {}
    if not problem.bound_by_scenarios or any(each.unmet_requests_per_s > 0 for each in best.values()):
        return 0.0
    return sum(
        scenario.probability * best[scenario.name].bound_usd
        for scenario in problem.fleet.demand_scenarios
        if scenario.name in best
    )


def _merged(problem: Problem, result: SearchResult, parts: ByScenario) -> SearchResult:
    """Merge one plan per scenario into a plan for all scenarios."""
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
        # A joint search without a plan proved nothing about the goal either.
        reached = _reached(problem, reached or ReachedGoal(goal, goal.most, goal.most), parts)
    return replace(result, solution=solution, objective_usd=expected, goal=reached, cheapest=None)


def _reached(problem: Problem, together: ReachedGoal, parts: ByScenario) -> ReachedGoal:
    """Return the goal value of merged plans: the largest regret, or the expected value.

    Parameters
    ----------
    problem : Problem
        Demand scenarios, with the optimum of each.
    together : ReachedGoal
        Goal value and bound of the joint search.
    parts : ByScenario
        Results by scenario.
    """
    goal = together.goal
    if goal.name == LEAST_REGRET:
        best = problem.scenario_optima or {}
        value = max((part.objective_usd or 0.0) - best[name].usd for name, part in parts.items())
    else:
        reached = {name: part.goal.value for name, part in parts.items() if part.goal is not None}
        value = sum(each.probability * reached[each.name] for each in problem.fleet.demand_scenarios)
    bound = max(together.bound, value) if goal.rising else min(together.bound, value)
    return ReachedGoal(goal, value, bound)
