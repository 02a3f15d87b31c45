"""Compare a simplified plan with the cheapest plan found, in simplicity and cost."""

from __future__ import annotations

from collections.abc import Iterable

from fleetplan.planner.assemble.costs import cost_breakdown
from fleetplan.planner.assemble.placements import placements
from fleetplan.planner.assemble.traffic import ServedTraffic, spread_traffic
from fleetplan.planner.formulation import ReplicaKey
from fleetplan.planner.plan import HomePreference, Simplification
from fleetplan.planner.problem import Phase, Problem
from fleetplan.planner.search import SearchResult


def simplification(
    problem: Problem, result: SearchResult, chosen: ServedTraffic, objective_usd: float
) -> Simplification | None:
    """Return the price of the simpler plan, or None if no simpler plan was searched.

    Parameters
    ----------
    problem, result : Problem, SearchResult
        Problem and result of the search.
    chosen : ServedTraffic
        Traffic of the simpler plan.
    objective_usd : float
        Cost of the simpler plan, recomputed without rounding. [USD]
    """
    if result.cheapest is None or result.objective_usd is None:
        return None
    cheapest = result.cheapest.solution
    traffic = spread_traffic(problem, cheapest)
    before, after = list(traffic.replicas), list(chosen.replicas)
    cheapest_usd = sum(cost_breakdown(problem, cheapest, placements(problem, traffic, cheapest)).values())
    # Either solution may contain load that its plan drops. The smaller difference keeps the cheapest plan
    # above the bound, and the price within the policy that the search used.
    usd = max(min(objective_usd - cheapest_usd, result.objective_usd - result.cheapest.usd), 0.0)
    home: HomePreference | None = None
    away, before_away = _away_requests_per_s(problem, chosen), _away_requests_per_s(problem, traffic)
    # Dropped load counts in neither plan; if no fewer requests are served away, none moved home.
    if any(service.home_percent for service in problem.fleet.services) and away <= before_away:
        home = HomePreference(
            usd=min(max(result.cheapest.home_usd, 0.0), usd),
            away_requests_per_s=away,
            away_requests_per_s_before=before_away,
        )
    return Simplification(
        usd=usd,
        hardware_kinds=_kinds(problem, after),
        hardware_kinds_before=_kinds(problem, before),
        configurations=_configurations(problem, after),
        configurations_before=_configurations(problem, before),
        flows=_flows(problem, chosen),
        flows_before=_flows(problem, traffic),
        home=home,
    )


def _away_requests_per_s(problem: Problem, traffic: ServedTraffic) -> float:
    """Return the rate served away from home for services that may pay for home service. [requests/s]"""
    paying = {service.name for service in problem.fleet.services if service.home_percent}
    total = 0.0
    for (c, _, p, i), rate in traffic.rates.items():
        cell, candidate = problem.cells[i], problem.candidates[c]
        if cell.service in paying and problem.pools[p].region != cell.region:
            share = 1.0 if candidate.phase is Phase.AGGREGATED else 0.5
            total += share * rate * problem.moments[cell.moment].weight
    return total / len(problem.periods)


def _flows(problem: Problem, traffic: ServedTraffic) -> int:
    """Return the number of pairs of regions between which requests pass, summed over services."""
    ways = {
        (problem.cells[i].service, problem.cells[i].region, problem.pools[p].region)
        for (_, _, p, i), rate in traffic.rates.items()
        if rate > 0
    }
    return sum(origin != region for _, origin, region in ways)


def _kinds(problem: Problem, replicas: Iterable[ReplicaKey]) -> int:
    runs = ((problem.candidates[c], problem.pools[p].region) for c, p, _ in replicas)
    return len({(candidate.service, region, candidate.hardware) for candidate, region in runs})


def _configurations(problem: Problem, replicas: Iterable[ReplicaKey]) -> int:
    return len({(problem.candidates[c].key, problem.pools[p].region) for c, p, _ in replicas})
