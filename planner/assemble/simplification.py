"""How much simpler a plan is than the cheapest one found, and what it costs more."""

from __future__ import annotations

from collections.abc import Iterable

from fleetplan.planner.assemble.costs import cost_breakdown
from fleetplan.planner.assemble.placements import placements
from fleetplan.planner.assemble.traffic import spread_traffic
from fleetplan.planner.formulation import ReplicaKey
from fleetplan.planner.plan import Simplification
from fleetplan.planner.problem import Problem
from fleetplan.planner.search import SearchResult


def simplification(
    problem: Problem, result: SearchResult, replicas: Iterable[ReplicaKey], objective_usd: float
) -> Simplification | None:
    """Return what was paid for a simpler plan; None where none was looked for.

    Parameters
    ----------
    problem, result : Problem, SearchResult
        What was searched, and what was found.
    replicas : Iterable[ReplicaKey]
        Of the simpler plan.
    objective_usd : float
        What it costs, recomputed without rounding. [USD]
    """
    if result.cheapest is None or result.objective_usd is None:
        return None
    cheapest = result.cheapest.solution
    traffic = spread_traffic(problem, cheapest)
    before, after = list(traffic.replicas), list(replicas)
    cheapest_usd = sum(cost_breakdown(problem, cheapest, placements(problem, traffic, cheapest)).values())
    # A solution may waste load that its plan leaves out, either of them: the smaller difference leaves the
    # cheapest plan above the bound, and the price within the policy, by which the search went.
    usd = min(objective_usd - cheapest_usd, result.objective_usd - result.cheapest.usd)
    return Simplification(
        usd=max(usd, 0.0),
        hardware_kinds=_kinds(problem, after),
        hardware_kinds_before=_kinds(problem, before),
        configurations=_configurations(problem, after),
        configurations_before=_configurations(problem, before),
    )


def _kinds(problem: Problem, replicas: Iterable[ReplicaKey]) -> int:
    runs = ((problem.candidates[c], problem.pools[p].region) for c, p, _ in replicas)
    return len({(candidate.service, region, candidate.hardware) for candidate, region in runs})


def _configurations(problem: Problem, replicas: Iterable[ReplicaKey]) -> int:
    return len({(problem.candidates[c].key, problem.pools[p].region) for c, p, _ in replicas})
