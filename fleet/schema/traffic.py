"""Schema of a service's traffic: latency limits with percentiles, burstiness."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from fleetplan.fleet.schema.values import Positive, Spec

Ratio = Annotated[float, Field(gt=0, lt=1)]


class SloSpec(Spec):
    """Latency limits; all are optional."""

    ttft_ms: Positive | None = None
    """Mean time to first token, without queueing unless `traffic` is given. [ms]"""
    tpot_ms: Positive | None = None
    """Mean time per output token, without queueing unless `traffic` is given. [ms]"""
    ttft_p50_ms: Positive | None = None
    """Time to first token that half of the requests must meet under load. [ms]"""
    ttft_p90_ms: Positive | None = None
    """Time to first token that 90 % of the requests must meet under load. [ms]"""
    ttft_p95_ms: Positive | None = None
    """Time to first token that 95 % of the requests must meet under load. [ms]"""
    ttft_p99_ms: Positive | None = None
    """Time to first token that 99 % of the requests must meet under load. [ms]"""
    tpot_p50_ms: Positive | None = None
    """Time per output token that half of the requests must meet under load. [ms]"""
    tpot_p90_ms: Positive | None = None
    """Time per output token that 90 % of the requests must meet under load. [ms]"""
    tpot_p95_ms: Positive | None = None
    """Time per output token that 95 % of the requests must meet under load. [ms]"""
    tpot_p99_ms: Positive | None = None
    """Time per output token that 99 % of the requests must meet under load. [ms]"""
    goodput_ratio: Ratio | None = None
    """Share of the requests that must meet both `ttft_ms` and `tpot_ms` under load; these then limit single
    requests instead of means."""


class TrafficSpec(Spec):
    """Arrival process of requests. With this block, limits on means include queueing."""

    burstiness: Positive = 1.0
    """Squared coefficient of variation of interarrival times: 1 is Poisson, bursts usually have 2 to 4. `plan
    import trace` measures it."""
