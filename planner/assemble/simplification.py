"""How much simpler a plan is than the cheapest one found, and what it costs more."""

from __future__ import annotations

from collections.abc import Iterable

from fleetplan.planner.assemble.traffic import spread_traffic
from fleetplan.planner.formulation import ReplicaKey
from fleetplan.planner.plan import Simplification
from fleetplan.planner.problem import Problem
from fleetplan.planner.search import SearchResult


def simplification(
    problem: Problem, result: SearchResult, replicas: Iterable[ReplicaKey]
) -> Simplification | None:
    """Return what was paid for a simpler plan with these replicas; None where none was looked for."""
    if result.cheapest is None or result.objective_usd is None:
        return None
    before = list(spread_traffic(problem, result.cheapest.solution).replicas)
    after = list(replicas)
    return Simplification(
        usd=max(result.objective_usd - result.cheapest.usd, 0.0),
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
