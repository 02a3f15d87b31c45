"""Requests that arrive in a replay: generated from statistics, or taken from a trace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np

from fleetplan.fleet.units import MS_PER_S
from fleetplan.perfmodel.operators import FloatArray, IntArray
from fleetplan.perfmodel.serving import (
    Regimes,
    RequestKind,
    Requests,
    regime_times_ms,
    renewal_times_ms,
    requests_of,
)
from fleetplan.planner.replay.deployment import ServedPlace


class Arrivals(StrEnum):
    """Kind of arrivals."""

    AS_PLANNED = "as planned"
    """With the burstiness in the fleet file; Poisson without one."""
    POISSON = "Poisson"
    REGIMES = "Markov-modulated Poisson"
    TRACE = "trace"


@dataclass(frozen=True, slots=True)
class TrafficChoice:
    """Traffic to simulate.

    Attributes
    ----------
    arrivals : Arrivals
        Kind of arrivals.
    duration_s : float
        Simulated time. [s]
    load_ratio : float
        Factor on the traffic in the plan.
    seed : int
        Seed of all random draws.
    regimes : Regimes
        Parameters of `Arrivals.REGIMES`.
    trace : Requests or None
        Trace of `Arrivals.TRACE`; its arrivals are repeated and stretched to the planned rate.
    """

    arrivals: Arrivals
    duration_s: float
    load_ratio: float = 1.0
    seed: int = 1
    regimes: Regimes = field(default_factory=Regimes)
    trace: Requests | None = None


def arriving(place: ServedPlace, choice: TrafficChoice, number: int) -> Requests:
    """Return the requests of a place.

    Parameters
    ----------
    place : ServedPlace
        Service, region and planned traffic.
    choice : TrafficChoice
        Traffic to simulate.
    number : int
        Number of the place, for independent random draws.
    """
    random = np.random.default_rng([choice.seed, number])
    rate = sum(place.rates_per_s) * choice.load_ratio
    if choice.arrivals is Arrivals.TRACE:
        if choice.trace is None:
            raise ValueError("a replay of a trace needs one")
        return _from_trace(choice.trace, rate, choice.duration_s, place.kinds)
    burstiness = 1.0
    if choice.arrivals is Arrivals.AS_PLANNED and place.service.traffic is not None:
        burstiness = place.service.traffic.burstiness
    if choice.arrivals is Arrivals.REGIMES:
        times = regime_times_ms(rate, choice.regimes, choice.duration_s, random)
    else:
        # Draw 10 % more than expected plus a margin for bursts, enough to reach the end of the time.
        count = int(rate * choice.duration_s * 1.1 + 40 * burstiness)
        times = renewal_times_ms(rate, burstiness, count, random)
        times = times[times < choice.duration_s * MS_PER_S]
    shares = np.array(place.rates_per_s)
    classes = random.choice(shares.size, size=times.size, p=shares / shares.sum())
    return _with_lost_sessions(place, requests_of(times, place.kinds, classes, random), random)


def _with_lost_sessions(place: ServedPlace, requests: Requests, random: np.random.Generator) -> Requests:
    """Recompute prompts of lost sessions from the end of the shared prefix."""
    techniques = place.service.techniques
    if techniques.persistent_kv is None:
        return requests
    lost = random.random(len(requests)) >= techniques.persistent_kv.hit_ratio
    own = np.maximum(0, requests.prefix_tokens - techniques.shared_prefix_tokens)
    moved: IntArray = np.where(lost, own, 0)
    return Requests(
        requests.arrival_ms,
        requests.input_tokens + moved,
        requests.prefix_tokens - moved,
        requests.output_tokens,
        request_class=requests.request_class,
    )


def _from_trace(
    trace: Requests, rate_per_s: float, duration_s: float, kinds: Sequence[RequestKind]
) -> Requests:
    """Return a trace at a given rate: order, bursts and lengths stay, time is stretched, the end repeats.

    With several classes, each request goes to the class with the nearest mean lengths, in ratios.
    """
    span_ms = float(trace.arrival_ms[-1] - trace.arrival_ms[0])
    # Place one mean gap between the last request and the first of the next round.
    round_ms = span_ms * len(trace) / max(1, len(trace) - 1) or 1.0
    stretch = len(trace) / (rate_per_s / MS_PER_S) / round_ms
    rounds = int(np.ceil(duration_s * MS_PER_S / (round_ms * stretch)))
    offsets: FloatArray = np.repeat(np.arange(rounds) * round_ms, len(trace))
    times = (np.tile(trace.arrival_ms - trace.arrival_ms[0], rounds) + offsets) * stretch
    kept = np.flatnonzero(times < duration_s * MS_PER_S)
    rows = kept % len(trace)
    sessions = trace.sessions[rows]
    # A session in another round is a different session.
    apart = np.where(sessions >= 0, sessions + (kept // len(trace)) * (trace.sessions.max() + 1), sessions)
    return Requests(
        times[kept],
        trace.input_tokens[rows],
        trace.prefix_tokens[rows],
        trace.output_tokens[rows],
        session=apart if trace.session.size else trace.session,
        request_class=_nearest_class(trace, kinds)[rows],
    )


def _nearest_class(trace: Requests, kinds: Sequence[RequestKind]) -> IntArray:
    lengths = np.log(np.column_stack([trace.input_tokens, trace.output_tokens]))
    means = np.log(np.array([[kind.input_tokens, kind.output_tokens] for kind in kinds]))
    distance = np.abs(lengths[:, None, :] - means[None, :, :]).sum(axis=2)
    nearest: IntArray = distance.argmin(axis=1)
    return nearest
