"""Candidates for requests and KV caches that travel to other regions, and the time this adds."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace

from fleetplan.fleet.errors import InputError
from fleetplan.fleet.inventory import Fleet, Service
from fleetplan.planner.candidates.landscape import landscape_candidates
from fleetplan.planner.candidates.rejections import RejectionLog
from fleetplan.planner.candidates.waiting_service import WaitingService
from fleetplan.planner.plan import StatedTable
from fleetplan.planner.problem import Candidate, ConfigurationKey, Phase
from fleetplan.planner.problem.file_positions import service_issue
from fleetplan.planner.problem.memo import memoised


def ways_ms(fleet: Fleet, service: Service) -> tuple[float, ...]:
    """Return the distinct times that serving or decoding elsewhere adds to TTFT, ascending. [ms]

    Candidates are built for each: a faster one may serve over a distance that others cannot.
    """
    trips = {0.0}
    for region in fleet.regions:
        for other in service.serve_from.get(region.name, ()):
            trips.add(region.round_trip_ms[other])
    sums = {trip + added for trip in trips for added in (0.0, *_added_ms(fleet))}
    return tuple(sorted(time for time in sums if time > 0))


def candidates_over_ways(
    fleet: Fleet, waiting: WaitingService, log: RejectionLog, prunes: bool = False
) -> tuple[list[Candidate], tuple[StatedTable, ...]]:
    """Return candidates for local requests, and for every round trip to other regions.

    A round trip reduces the TTFT limit, which may need smaller batches or other layouts. Parameters and
    results are those of `landscape_candidates`; candidates with equal figures appear once.
    """
    ways = _bearable(waiting.service, ways_ms(fleet, waiting.service))
    found, tables = landscape_candidates(fleet, waiting, log, 0.0, prunes and not ways)
    if not ways:
        return found, tables
    known = {candidate.key: candidate for candidate in found}
    with_figures: dict[Candidate, list[ConfigurationKey]] = defaultdict(list)
    for candidate in found:
        with_figures[_figures(candidate)].append(candidate.key)
    for way_ms in ways:
        # Configurations too slow for a round trip do not count as rejected.
        farther, _ = landscape_candidates(fleet, waiting, RejectionLog(), way_ms)
        for candidate in farther:
            same = with_figures[_figures(candidate)]
            for key in same:
                if _same_layout(known[key], candidate):
                    known[key] = replace(known[key], reach_ms=candidate.reach_ms)
            if same:
                continue
            other = candidate
            if candidate.key in known and candidate.configuration is not None:
                # A layout with several classes has a batch per class, which its name does not state, and its
                # pools' load under latency limits depends on the round trip.
                other = candidate.running(replace(candidate.configuration, reach_ms=way_ms))
            known[other.key] = other
            same.append(other.key)
    return list(known.values()), tables


def _figures(candidate: Candidate) -> Candidate:
    """Return a candidate without names and reach, to compare figures."""
    return replace(candidate, config="", configuration=None, reach_ms=None)


def _same_layout(first: Candidate, second: Candidate) -> bool:
    """Return whether two candidates run the same layout with the same batch."""
    if first.configuration is None or second.configuration is None:
        return False
    return replace(first.configuration, reach_ms=None) == replace(second.configuration, reach_ms=None)


def _bearable(service: Service, ways: Sequence[float]) -> list[float]:
    """Return the round trips that leave part of each TTFT limit; none without a limit, as all do. [ms]"""
    limit_ms = service.least_inner_ttft_ms
    return [way_ms for way_ms in ways if way_ms < limit_ms < math.inf]


@memoised
def _added_ms(fleet: Fleet) -> frozenset[float]:
    """Return the latencies that links add between two places: regions, or pools within one. [ms]"""
    places = [(region.name, region.name) for region in fleet.regions]
    places += [(pool.name, pool.region) for pool in fleet.pools]
    return frozenset(
        sum(link.added_ms for link in fleet.kv_links if link.joins(sender, receiver))
        for sender in places
        for receiver in places
        if sender[1] != receiver[1]
    )


def ways_in_time(service: Service, ways: tuple[float, ...]) -> Callable[[Candidate, int], int]:
    """Return a function that counts the round trips, shortest first, over which a candidate meets TTFT."""

    def count(candidate: Candidate, k: int) -> int:
        if candidate.phase is Phase.DECODE:
            return len(ways)
        spare_ms = candidate.spare_ms(k, service.inner_ttft_ms)
        return sum(way <= spare_ms for way in ways)

    return count


def require_caches(fleet: Fleet, candidates: list[Candidate]) -> None:
    """Reject services whose KV caches have no size, if links count them.

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
