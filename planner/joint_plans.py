"""Plans for all demand scenarios that follow from plans for each of them under the same purchases.

The best purchases for one scenario with their placements in every other are a plan for uncertain demand, and
the expected cost of the best plans alone is a bound on it: nobody does better without knowing what comes than
with. Both are at hand once the cost of being wrong is known.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from fleetplan.planner.goals import goal_of
from fleetplan.planner.problem import Problem
from fleetplan.planner.solution import Reached, SearchLimits, SearchResult, Solution, SolveStatus, status_of
from fleetplan.planner.solvers.proofs import VARIABLES, Proof, contradicted

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
    best = result
    for parts in found:
        if all(part.solution is not None and not part.solution.unmet for part in parts.values()):
            joined = _joined(problem, best, parts)
            if _rank(joined) < _rank(best):
                best = joined
    if best.solution is None:
        return result
    objective = best.objective_usd or 0.0
    together = Proof(best.bound_usd or 0.0, best.bound_source)
    known = Proof(_known_demand_bound_usd(problem), "best plans of each scenario alone")
    holding = [each for each in (together, known) if not contradicted(each.bound, objective)]
    told = max(holding, key=lambda each: each.bound, default=Proof(0.0, VARIABLES))
    bound = min(told.bound, objective)
    gap = (objective - bound) / objective if objective > 0 else 0.0
    if best.goal is not None:
        gap = max(gap, best.goal.gap)
    return replace(best, bound_usd=bound, bound_source=told.source, status=status_of(gap, limits))


def _rank(result: SearchResult) -> tuple[bool, float, float]:
    """What is better is smaller: served demand first, then a regret, then the expected cost."""
    solution = result.solution
    regret = 0.0 if result.goal is None else result.goal.value
    return bool(solution is None or solution.unmet), regret, result.objective_usd or 0.0


def _known_demand_bound_usd(problem: Problem) -> float:
    """Expected cost, at least, of who knows the demand; 0 where some of it may stay unmet. [USD]"""
    best = problem.best_alone or {}
    if any(each.unmet_requests_per_s > 0 for each in best.values()):
        return 0.0
    return sum(
        scenario.probability * best[scenario.name].bound_usd
        for scenario in problem.fleet.demand_scenarios
        if scenario.name in best
    )


def _joined(problem: Problem, result: SearchResult, parts: ByScenario) -> SearchResult:
    """Plans for each scenario as one plan for all of them."""
    usd = {name: part.objective_usd or 0.0 for name, part in parts.items()}
    expected = sum(each.probability * usd[each.name] for each in problem.fleet.demand_scenarios)
    goal, reached = goal_of(problem), result.goal
    if goal is not None and reached is not None:
        best = problem.best_alone or {}
        regret = max(usd[name] - best[name].usd for name in parts)
        reached = Reached(reached.goal, regret, min(reached.bound, regret))
    solution = Solution({}, {}, {}, {}, {})
    for name, part in parts.items():
        if part.solution is not None:
            _add(problem, solution, name, part.solution)
    return replace(result, solution=solution, objective_usd=expected, goal=reached)


def _add(problem: Problem, whole: Solution, scenario: str, part: Solution) -> None:
    """Put what is decided for one scenario where it stands in the whole problem."""
    moments = [m for m, moment in enumerate(problem.moments) if moment.scenario == scenario]
    cells = [i for i, cell in enumerate(problem.cells) if cell.moment in moments]
    whole.acquired.update(part.acquired)
    whole.retired.update(part.retired)
    whole.replicas.update({(c, p, moments[m]): n for (c, p, m), n in part.replicas.items()})
    whole.load.update({(c, k, p, cells[i]): n for (c, k, p, i), n in part.load.items()})
    whole.packed.update({(p, moments[m], each): n for (p, m, each), n in part.packed.items()})
    whole.disaggregated.update({(cells[i], k, g): n for (i, k, g), n in part.disaggregated.items()})
    whole.put_off.update({(cells[i], cells[j], k): n for (i, j, k), n in part.put_off.items()})
    whole.surviving_load.update(
        {(lost, c, k, p, moments[m]): n for (lost, c, k, p, m), n in part.surviving_load.items()}
    )
