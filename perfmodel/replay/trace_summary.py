"""Statistics of a trace: rates, bursts, the course of the day, lengths, prefixes, sessions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from fleetplan.fleet.units import MS_PER_HOUR, MS_PER_MINUTE, MS_PER_S
from fleetplan.perfmodel.operators import FloatArray, IntArray
from fleetplan.perfmodel.replay.traces import Trace
from fleetplan.perfmodel.serving import Requests

WINDOW_REQUESTS: Final = 20
"""Requests of the windows whose counts tell bursts, in the mean."""

WINDOWS_TOGETHER: Final = 16
"""Windows over which the rate is taken as constant, so that the course of the day is no burst."""


@dataclass(frozen=True, slots=True)
class TokenStatistics:
    """Lengths of prompts or outputs. [tokens].

    Attributes
    ----------
    mean, p50, p95, p99 : float
        Mean and percentiles.
    variation : float
        Squared coefficient of variation.
    """

    mean: float
    p50: float
    p95: float
    p99: float
    variation: float


@dataclass(frozen=True, slots=True)
class TraceStatistics:
    """Statistics of a trace.

    Attributes
    ----------
    requests : int
        Their number.
    span_s : float
        From the first to the last. [s]
    mean_per_s, peak_per_s : float
        Rate over the whole trace, and in its busiest minute. [1/s]
    burstiness : float
        Index of dispersion of counts around their slow changes: 1 is Poisson. It takes the place of the
        squared coefficient of variation of the times between arrivals, to which it is equal for renewals.
    by_hour : tuple[float, ...]
        Rate of each hour from the start over the mean rate; empty for less than two hours.
    input_tokens, output_tokens : TokenStatistics
        Lengths.
    common_prefix_tokens : int or None
        Tokens that most prompts begin with; None where the trace does not tell. [tokens]
    seen_prompt_ratio : float or None
        Prompt tokens that an earlier prompt began with as well, over all; None where the trace does not tell.
    sessions : int
        Sessions of at least two requests.
    requests_per_session : float
        Of those; 0 without any.
    """

    requests: int
    span_s: float
    mean_per_s: float
    peak_per_s: float
    burstiness: float
    by_hour: tuple[float, ...]
    input_tokens: TokenStatistics
    output_tokens: TokenStatistics
    common_prefix_tokens: int | None
    seen_prompt_ratio: float | None
    sessions: int
    requests_per_session: float


def trace_statistics(trace: Trace) -> TraceStatistics:
    """Return the statistics of a trace of at least two requests at different times.

    Raises
    ------
    ValueError
        There are none.
    """
    requests = trace.requests
    times = requests.arrival_ms
    span_ms = float(times[-1])
    if span_ms <= 0:
        raise ValueError(f"{trace.path} has no two requests at different times")
    minutes = np.bincount((times // MS_PER_MINUTE).astype(np.int64))
    # The last minute is not whole, unless it is the only one.
    whole = minutes[:-1] if minutes.size > 1 else minutes
    mean_per_s = len(requests) / span_ms * MS_PER_S
    peak = max(mean_per_s, float(whole.max()) / min(MS_PER_MINUTE, span_ms) * MS_PER_S)
    sizes = _session_sizes(requests)
    prefixes = trace.prefixes
    return TraceStatistics(
        requests=len(requests),
        span_s=span_ms / MS_PER_S,
        mean_per_s=mean_per_s,
        peak_per_s=peak,
        burstiness=burstiness_of(times),
        by_hour=_by_hour(times, mean_per_s),
        input_tokens=_tokens(requests.input_tokens),
        output_tokens=_tokens(requests.output_tokens),
        common_prefix_tokens=None if prefixes is None else prefixes.common_tokens,
        seen_prompt_ratio=None
        if prefixes is None
        else float(
            np.minimum(prefixes.seen_tokens, requests.input_tokens).sum() / requests.input_tokens.sum()
        ),
        sessions=int(sizes.size),
        requests_per_session=float(sizes.mean()) if sizes.size else 0.0,
    )


def burstiness_of(arrival_ms: FloatArray) -> float:
    """Variance over mean of the counts in equal windows, within spells of `WINDOWS_TOGETHER` of them.

    Times that are rounded to seconds do not disturb it as long as windows are longer. 1 where there are too
    few requests to tell.

    Parameters
    ----------
    arrival_ms : FloatArray
        In rising order from 0, shape (n_requests,). [ms]
    """
    windows = arrival_ms.size // WINDOW_REQUESTS
    spells = windows // WINDOWS_TOGETHER
    if spells < 1:
        return 1.0
    window_ms = float(arrival_ms[-1]) / windows
    numbers = np.minimum((arrival_ms / window_ms).astype(np.int64), windows - 1)
    counts = np.bincount(numbers, minlength=windows)[: spells * WINDOWS_TOGETHER]
    grouped = counts.reshape(spells, WINDOWS_TOGETHER)
    return float(grouped.var(axis=1, ddof=1).sum() / grouped.mean(axis=1).sum())


def _by_hour(arrival_ms: FloatArray, mean_per_s: float) -> tuple[float, ...]:
    hours = np.bincount((arrival_ms // MS_PER_HOUR).astype(np.int64))
    if hours.size < 3:
        return ()
    # The last hour is not whole.
    return tuple((hours[:-1] / (MS_PER_HOUR / MS_PER_S) / mean_per_s).tolist())


def _tokens(tokens: IntArray) -> TokenStatistics:
    mean = float(tokens.mean())
    p50, p95, p99 = (float(value) for value in np.percentile(tokens, (50, 95, 99)))
    return TokenStatistics(mean, p50, p95, p99, float(tokens.var()) / mean**2)


def _session_sizes(requests: Requests) -> IntArray:
    """Requests of each session that has at least two."""
    known = requests.sessions[requests.sessions >= 0]
    _, counts = np.unique(known, return_counts=True)
    found: IntArray = counts[counts > 1]
    return found


def length_classes(requests: Requests, classes: int) -> IntArray:
    """Split requests by the length of their prompts, shape (n_requests,), 0 for the shortest.

    Classes are found by k-means on the logarithm of the prompt length: requests of a class are as near in
    ratio as they can be. Where fewer lengths occur than classes are asked for, there are fewer classes.

    Parameters
    ----------
    requests : Requests
        To be split.
    classes : int
        How many.
    """
    logs = np.log(requests.input_tokens.astype(np.float64))
    centres = np.unique(np.quantile(logs, (np.arange(classes) + 0.5) / classes))
    for _ in range(100):
        members = np.abs(logs[:, None] - centres[None, :]).argmin(axis=1)
        found = np.array([logs[members == k].mean() for k in np.unique(members)])
        if found.size == centres.size and np.allclose(found, centres):
            break
        centres = found
    nearest: IntArray = np.abs(logs[:, None] - centres[None, :]).argmin(axis=1)
    return nearest
