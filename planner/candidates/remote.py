"""Ways to other regions that requests and KV caches of a service may take, and the time that they add."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from fleetplan.fleet.errors import InputError
from fleetplan.fleet.inventory import Fleet, Service
from fleetplan.planner.problem import Candidate, Phase
from fleetplan.planner.problem.places_in_file import service_issue


def ways_ms(fleet: Fleet, service: Service) -> tuple[float, ...]:
    """Times that count against TTFT where a service is served or decoded elsewhere, in rising order. [ms]

    Candidates are looked for at each of them: a faster one may serve over a way that others are too slow for.
    """
    trips = {0.0}
    for region in fleet.regions:
        for other in service.serve_from.get(region.name, ()):
            trips.add(region.round_trip_ms[other])
    sums = {trip + added for trip in trips for added in (0.0, *_added_ms(fleet))}
    return tuple(sorted(time for time in sums if time > 0))


def _added_ms(fleet: Fleet) -> Iterator[float]:
    """Latency that links add between any two places: a region, or a pool within one."""
    places = [(region.name, region.name) for region in fleet.regions]
    places += [(pool.name, pool.region) for pool in fleet.pools]
    for sender in places:
        for receiver in places:
            if sender[1] != receiver[1]:
                yield sum(link.added_ms for link in fleet.kv_links if link.joins(sender, receiver))


def ways_in_time(service: Service, ways: tuple[float, ...]) -> Callable[[Candidate, int], int]:
    """How many of the ways, from the shortest on, a candidate can serve a class over in time."""

    def count(candidate: Candidate, k: int) -> int:
        if candidate.phase is Phase.DECODE:
            return len(ways)
        spare_ms = candidate.spare_ms(k, service.inner_ttft_ms)
        return sum(way <= spare_ms for way in ways)

    return count


def require_caches(fleet: Fleet, candidates: list[Candidate]) -> None:
    """Refuse a service whose KV caches have no size, where links count them.

    Raises
    ------
    InputError
        With every such service.
    """
    if not fleet.kv_links:
        return
    unknown = dict.fromkeys(
        candidate.service
        for candidate in candidates
        if candidate.phase is Phase.PREFILL
        for k, rate in enumerate(candidate.requests_per_s)
        if rate > 0 and (not candidate.kv_gb or candidate.kv_gb[k] is None)
    )
    if unknown:
        message = "has no column kv_gb_per_request, which kv_links need for its prefill rows"
        raise InputError([service_issue(fleet, name, "engines", message) for name in unknown])
