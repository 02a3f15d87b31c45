"""The rate that engines of continuous batching sustain within limits, found by simulating them.

No formula holds where prompts fill much of the time and lengths spread widely; a simulation of some thousand
requests does, and takes hundredths of a second.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from fleetplan.fleet.inventory import LatencyLimit
from fleetplan.perfmodel.operators import FloatArray
from fleetplan.perfmodel.replay.engine_state import EngineLimits, RequestLog
from fleetplan.perfmodel.replay.pools import Router, run_engines
from fleetplan.perfmodel.serving import RequestKind, Requests, StepCosts, renewal_times_ms, requests_of

REQUESTS: Final = 6_000
"""Requests of a simulation: 60 of them lie above the 99th percentile."""

REQUESTS_PER_PLACE: Final = 4
"""Requests for each sequence that runs at once: a batch must fill and turn over several times."""

WARM_UP_SHARE: Final = 0.25
"""Share of the requests that finds a pool which is still filling, and does not count."""

RATE_MARGIN: Final = 0.03
"""Taken off the rate that is found. Source: twice the spread of that rate between seeds."""

RATES: Final = 64
"""Grid of rates, each under two per cent of the highest from the next."""

FEWER: Final = 8
"""Factor on the number of requests for the first estimate of a rate. For 10 of the 14 pools of
`scenarios/percentiles.yaml`, it equals the rate with all requests, for the others a neighbouring rate; the
search takes 54 % of the time of six halvings with all requests."""


@dataclass(frozen=True, slots=True)
class EnginePool:
    """Equal engines behind a router.

    Attributes
    ----------
    costs, limits
        Limits of each engine.
    engines : int
        Their number.
    router : Router
        Router of requests.
    """

    costs: StepCosts
    limits: EngineLimits
    engines: int
    router: Router = "least-loaded"


@dataclass(frozen=True, slots=True)
class LoadTarget:
    """Lengths of requests, and the latency targets that they must keep.

    Attributes
    ----------
    kind : RequestKind
        Lengths.
    burstiness : float
        Squared coefficient of variation of the times between arrivals.
    ttft, tpot : tuple[LatencyLimit, ...]
        Limits; times outside inference already taken off. [ms]
    """

    kind: RequestKind
    burstiness: float
    ttft: tuple[LatencyLimit, ...]
    tpot: tuple[LatencyLimit, ...]


def sustained_rate_per_s(pool: EnginePool, target: LoadTarget, most_per_s: float, seed: int = 1) -> float:
    """Return the arrival rate at which a pool meets its limits, less a margin; 0 if none does. [1/s].

    Parameters
    ----------
    pool : EnginePool
        The engines.
    target : LoadTarget
        Requests and limits.
    most_per_s : float
        Start of the search, above the expected rate. [1/s]
    seed : int
        Requests of the traffic, equal at all rates except for its time scale.
    """
    random = np.random.default_rng(seed)
    # Bursts bring their requests together, so it takes more of them to see as many bursts.
    count = round(REQUESTS * max(1.0, target.burstiness))
    count = max(count, REQUESTS_PER_PLACE * pool.engines * _running(pool, target))
    arrivals = renewal_times_ms(1.0, target.burstiness, count, random)
    drawn = requests_of(arrivals, [target.kind], np.zeros(count, dtype=np.int64), random)
    if (drawn.prefix_tokens + drawn.input_tokens + drawn.output_tokens).max() > pool.limits.kv_tokens:
        # A batch of mean lengths fits, but some request never ends.
        return 0.0

    def keeps(rate: int, requests: int) -> bool:
        scaled = arrivals[:requests] / (most_per_s * rate / RATES)
        lengths = (drawn.input_tokens, drawn.prefix_tokens, drawn.output_tokens)
        arriving = Requests(scaled, *(each[:requests] for each in lengths))
        log = run_engines(pool.costs, pool.limits, arriving, pool.engines, pool.router, seed)
        return within(arriving, log, target)

    guess = highest_rate(lambda rate: keeps(rate, count // FEWER), RATES // 2, RATES // 4)
    found = highest_rate(lambda rate: keeps(rate, count), guess, 1)
    return most_per_s * found / RATES * (1 - RATE_MARGIN)


def highest_rate(keeps: Callable[[int], bool], first: int, step: int) -> int:
    """Return the highest of `RATES` that meets the limits, with all lower ones; 0 if none does.

    Parameters
    ----------
    keeps : callable
        Whether a rate meets the limits; called only for rates above 0 and below `RATES`.
    first, step : int
        First rate to test, and the distance to the second; steps grow until the highest rate lies between two
        tested ones, and are halved from there.
    """
    low, high, middle = 0, RATES, min(max(first, 1), RATES - 1)
    while high - low > 1:
        if keeps(middle):
            low = middle
        else:
            high = middle
        if low == 0 or high == RATES:
            # Nothing bounds it on the one side yet but the ends.
            middle = low + step if high == RATES else high - step
            step *= 2
        if not low < middle < high:
            middle = (low + high) // 2
    return low


def _running(pool: EnginePool, target: LoadTarget) -> int:
    """Return the sequences of an engine that run at once, at most: as many as there is cache for."""
    kind = target.kind
    each = kind.prefix_tokens + kind.input_tokens + kind.output_tokens // 2
    return max(1, min(pool.limits.sequences, pool.limits.kv_tokens // each))


def within(requests: Requests, log: RequestLog, target: LoadTarget) -> bool:
    """Whether what a simulation logged keeps the limits, its warm-up left out."""
    counted = slice(int(len(requests) * WARM_UP_SHARE), None)
    first = log.first_ms
    ttft = (first - requests.arrival_ms)[counted]
    tokens = requests.output_tokens[counted] - 1
    later = tokens > 0
    tpot = (log.finish_ms - first)[counted][later] / tokens[later]
    return all(_kept(ttft, limit) for limit in target.ttft) and all(
        _kept(tpot, limit) for limit in target.tpot
    )


def _kept(times_ms: FloatArray, limit: LatencyLimit) -> bool:
    if not times_ms.size:
        return True
    reached = times_ms.mean() if limit.share is None else np.quantile(times_ms, limit.share)
    return bool(reached <= limit.limit_ms)
