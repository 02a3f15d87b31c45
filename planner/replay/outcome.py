"""Records of a replay: latencies with limits, and utilisation over time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict

from fleetplan.fleet.inventory import LatencyLimit
from fleetplan.fleet.units import MS_PER_S
from fleetplan.perfmodel.operators import FloatArray
from fleetplan.perfmodel.replay import GroupUse, ServiceRun, running_over_time
from fleetplan.perfmodel.serving import Requests
from fleetplan.planner.candidates import front_end_of
from fleetplan.planner.replay.deployment import ServedPlace

PERCENTILES: Final = (50, 90, 95, 99)
"""Percentiles in the outcome."""

TIMELINE_STEPS: Final = 120
"""Number of times at which queues and utilisation are recorded."""

WARM_UP_SHARE: Final = 0.1
"""Initial share of the simulated time that does not count, while pools fill."""


class _RequestRecord(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Latency(_RequestRecord):
    """Distribution of a latency. [ms]"""

    mean_ms: float
    p50_ms: float
    p90_ms: float
    p95_ms: float
    p99_ms: float


class LimitCheck(_RequestRecord):
    """A limit of the service, and the latency reached."""

    latency: str
    """ttft or tpot"""
    share: float | None
    """Share of the requests that must keep the limit; None for a limit on the mean."""
    limit_ms: float
    reached_ms: float
    """Mean, or quantile at that share, including the time outside inference. [ms]"""
    kept_ratio: float
    """Share of the requests that kept the limit."""
    holds: bool
    planned_under_load: bool
    """Whether the plan ensures it under load; otherwise it is a limit on means without queueing."""


class GroupOutcome(_RequestRecord):
    """Outcome of one configuration in one pool."""

    label: str
    phase: str
    requests: int
    wait_mean_ms: float
    wait_p99_ms: float
    busy_ratio: float
    """Requests in service over available places, averaged over time."""


class TimePoint(_RequestRecord):
    """Requests of a group at one time."""

    time_s: float
    label: str
    phase: str
    waiting: int
    running: int
    places: int


class PlaceOutcome(_RequestRecord):
    """A service in a region."""

    service: str
    region: str
    requests: int
    requests_per_s: float
    ttft: Latency
    tpot: Latency | None
    """None if every request has one token."""
    end_to_end: Latency
    limits: tuple[LimitCheck, ...]
    preempted_ratio: float
    cached_prompt_ratio: float
    """Prompt tokens found in the session cache over all new prompt tokens."""
    groups: tuple[GroupOutcome, ...]
    timeline: tuple[TimePoint, ...]

    @property
    def holds(self) -> bool:
        """Return whether every limit holds that the plan ensures under load."""
        return all(check.holds for check in self.limits if check.planned_under_load)


class ReplayOutcome(_RequestRecord):
    """Outcome of a plan under simulated traffic."""

    fleet: str
    period: str
    slice: str | None
    """Slice of the day; None if there is only one."""
    arrivals: str
    duration_s: float
    load_ratio: float
    seed: int
    requests: int
    cpu_s: float
    """Processor time of the simulation alone. [s]"""
    places: tuple[PlaceOutcome, ...]
    not_simulated: tuple[str, ...]
    """Services with their own rates."""

    @property
    def holds(self) -> bool:
        """Return whether every limit holds everywhere that the plan ensures under load."""
        return all(place.holds for place in self.places)


def place_outcome(place: ServedPlace, run: ServiceRun, duration_s: float, seed: int = 1) -> PlaceOutcome:
    """Return the statistics of one service in one region, without the warm-up.

    Parameters
    ----------
    place : ServedPlace
        Service and region, with the origins of its requests.
    run : ServiceRun
        Times of the requests in the region.
    duration_s : float
        Simulated time. [s]
    seed : int
        Seed of the draw of origins.
    """
    counted = after_warm_up(run.requests, duration_s)
    front_end = front_end_of(place.service)
    outside_ms = front_end.prompt_ms(run.requests.input_tokens[counted])
    outside_ms = outside_ms + front_end.request_ms + place.service.outside_ms.total_ms
    outside_ms = outside_ms + place.ways_ms(run, seed)[counted]
    ttft = run.ttft_ms[counted] + outside_ms
    tpot = run.tpot_ms[counted]
    tpot = tpot[~np.isnan(tpot)]
    new_tokens = run.requests.input_tokens[counted].sum()
    return PlaceOutcome(
        service=place.service.name,
        region=place.region,
        requests=int(counted.sum()),
        requests_per_s=len(run.requests) / duration_s,
        ttft=_latency(ttft),
        tpot=_latency(tpot) if tpot.size else None,
        end_to_end=_latency(run.latency_ms[counted] + outside_ms),
        limits=tuple(_checks(place, ttft, tpot)),
        preempted_ratio=float((run.preemptions[counted] > 0).mean()),
        cached_prompt_ratio=float(run.cached_tokens[counted].sum() / max(1, new_tokens)),
        groups=tuple(_group(use, duration_s) for use in run.groups if use.requests),
        timeline=tuple(point for use in run.groups if use.requests for point in _timeline(use, duration_s)),
    )


def after_warm_up(requests: Requests, duration_s: float) -> NDArray[np.bool_]:
    """Return a mask of the requests after the warm-up, which do not find an empty system."""
    counted: NDArray[np.bool_] = requests.arrival_ms >= WARM_UP_SHARE * duration_s * MS_PER_S
    return counted


def _latency(times_ms: FloatArray) -> Latency:
    p50, p90, p95, p99 = (float(value) for value in np.percentile(times_ms, PERCENTILES))
    return Latency(mean_ms=float(times_ms.mean()), p50_ms=p50, p90_ms=p90, p95_ms=p95, p99_ms=p99)


def _checks(place: ServedPlace, ttft: FloatArray, tpot: FloatArray) -> Iterator[LimitCheck]:
    service = place.service
    for name, times, plain_ms in (("ttft", ttft, service.ttft_ms), ("tpot", tpot, service.tpot_ms)):
        if not times.size:
            continue
        planned = () if service.traffic is None else getattr(service.traffic, name)
        limits: tuple[LatencyLimit, ...] = planned
        if not planned and plain_ms is not None:
            limits = (LatencyLimit(None, plain_ms),)
        for limit in limits:
            reached = times.mean() if limit.share is None else np.quantile(times, limit.share)
            yield LimitCheck(
                latency=name,
                share=limit.share,
                limit_ms=limit.limit_ms,
                reached_ms=float(reached),
                kept_ratio=float((times <= limit.limit_ms).mean()),
                holds=bool(reached <= limit.limit_ms),
                planned_under_load=bool(planned),
            )


def _group(use: GroupUse, duration_s: float) -> GroupOutcome:
    waits = use.start_ms - use.arrival_ms
    served_ms = float((np.minimum(use.finish_ms, duration_s * MS_PER_S) - use.start_ms).clip(0).sum())
    return GroupOutcome(
        label=use.label,
        phase=use.phase,
        requests=use.requests,
        wait_mean_ms=float(waits.mean()),
        wait_p99_ms=float(np.percentile(waits, 99)),
        busy_ratio=served_ms / (use.places * duration_s * MS_PER_S),
    )


def _timeline(use: GroupUse, duration_s: float) -> Iterator[TimePoint]:
    times = (np.arange(TIMELINE_STEPS) + 0.5) / TIMELINE_STEPS * duration_s
    waiting, running = running_over_time(use, times * MS_PER_S)
    for time_s, waits, runs in zip(times, waiting, running, strict=True):
        yield TimePoint(
            time_s=float(time_s),
            label=use.label,
            phase=use.phase,
            waiting=int(waits),
            running=int(runs),
            places=use.places,
        )
