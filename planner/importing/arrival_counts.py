"""Arrivals of a trace of any length in bounded memory: rates, burstiness and daily profile."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from fleetplan.fleet.units import MS_PER_HOUR, MS_PER_MINUTE, MS_PER_S
from fleetplan.perfmodel.operators import FloatArray, IntArray

EXACT_ARRIVALS: Final = 1 << 20
"""Maximum number of requests whose times are all kept (8 MB); beyond it they are counted in bins."""

MOST_BINS: Final = 1 << 21
"""Maximum number of time bins (16 MB); those of one week are 0.47 s wide."""

FINEST_MS: Final = MS_PER_MINUTE / 4096
"""Initial width of bins; it doubles for longer traces, so that a minute is a whole number of bins. [ms]"""

WINDOW_REQUESTS: Final = 20
"""Mean requests per window for estimating burstiness."""

WINDOWS_TOGETHER: Final = 16
"""Number of windows with an assumed constant rate, so that the daily profile does not count as bursts."""


@dataclass(frozen=True, slots=True)
class ArrivalTimes:
    """Arrival times of requests, or their counts in equal bins.

    Attributes
    ----------
    times_ms : FloatArray
        Rising times from the first request, shape (n_requests,); empty with bins. [ms]
    bins : IntArray
        Requests per bin from that of the first request, shape (n_bins,); empty without bins.
    bin_ms : float
        Width of the bins; 0 without. [ms]
    """

    times_ms: FloatArray
    bins: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    bin_ms: float = 0.0

    @property
    def requests(self) -> int:
        """Number of requests."""
        return int(self.bins.sum()) if self.bins.size else self.times_ms.size

    @property
    def span_ms(self) -> float:
        """Time from the first to the last request. [ms]"""
        return self.bins.size * self.bin_ms if self.bins.size else float(self.times_ms[-1])

    def counts(self, window_ms: float) -> FloatArray:
        """Return the requests of each window from the first request on, shape (n_windows,).

        Parameters
        ----------
        window_ms : float
            Width of a window; a whole number of bins, if there are bins. [ms]
        """
        if self.bins.size:
            starts = np.arange(0, self.bins.size, round(window_ms / self.bin_ms))
            found: FloatArray = np.add.reduceat(self.bins, starts).astype(np.float64)
        else:
            found = np.bincount((self.times_ms / window_ms).astype(np.int64)).astype(np.float64)
        return found


class ArrivalCounts:
    """Arrival times of requests in any order, in bounded memory.

    Up to `EXACT_ARRIVALS` times are kept. Beyond that, they are counted in at most `MOST_BINS` equal bins,
    and minutes, hours and windows begin up to one bin before the first request.
    """

    def __init__(self) -> None:
        self.requests = 0
        self._earliest_s, self._latest_s = math.inf, -math.inf
        self._kept: list[FloatArray] = []
        # Bin i after `_zero_s` is stored at i modulo the number of bins, which leaves room for earlier ones.
        self._bins: IntArray = np.zeros(0, dtype=np.int64)
        self._zero_s = 0.0
        self._bin_ms = FINEST_MS
        self._first, self._last = 0, 0

    @property
    def span_ms(self) -> float:
        """Time from the first to the last request. [ms]"""
        return (self._latest_s - self._earliest_s) * MS_PER_S

    def add(self, arrival_s: Sequence[float]) -> None:
        """Add the times of requests.

        Parameters
        ----------
        arrival_s : Sequence[float]
            At least one time. [s]
        """
        times = np.array(arrival_s)
        self.requests += times.size
        self._earliest_s = min(self._earliest_s, float(times.min()))
        self._latest_s = max(self._latest_s, float(times.max()))
        if self._bins.size:
            self._count(times)
            return
        self._kept.append(times)
        if self.requests > EXACT_ARRIVALS:
            self._bins = np.zeros(MOST_BINS, dtype=np.int64)
            self._zero_s = self._earliest_s
            self._count(np.concatenate(self._kept))
            self._kept.clear()

    def _count(self, times: FloatArray) -> None:
        while True:
            numbers = np.floor((times - self._zero_s) * (MS_PER_S / self._bin_ms)).astype(np.int64)
            first, last = min(self._first, int(numbers.min())), max(self._last, int(numbers.max()))
            if last - first < MOST_BINS:
                break
            self._widen()
        self._first, self._last = first, last
        np.add.at(self._bins, numbers % MOST_BINS, 1)

    def _widen(self) -> None:
        """Double the width of the bins."""
        bins, first = self._in_order(), self._first
        self._first, self._last = self._first // 2, self._last // 2
        pairs = np.zeros((self._last - self._first + 1, 2), dtype=np.int64)
        pairs.reshape(-1)[first % 2 : first % 2 + bins.size] = bins
        self._bins[:] = 0
        start = self._first % MOST_BINS
        head, tail = np.split(pairs.sum(axis=1), [MOST_BINS - start])
        self._bins[start : start + head.size] = head
        self._bins[: tail.size] = tail
        self._bin_ms *= 2

    def _in_order(self) -> IntArray:
        """Return the bins from that of the first request on."""
        start, size = self._first % MOST_BINS, self._last - self._first + 1
        return np.concatenate(
            [self._bins[start : start + size], self._bins[: max(0, start + size - MOST_BINS)]]
        )

    def times(self) -> ArrivalTimes:
        """Return the times of at least one request."""
        if not self._bins.size:
            times: FloatArray = np.sort(np.concatenate(self._kept))
            return ArrivalTimes((times - times[0]) * MS_PER_S)
        return ArrivalTimes(np.zeros(0), self._in_order(), self._bin_ms)


def peak_per_s(arrivals: ArrivalTimes) -> float:
    """Return the rate of the busiest full minute, or of the whole time if it is shorter. [requests/s]

    Parameters
    ----------
    arrivals : ArrivalTimes
        At least two requests at different times.
    """
    # For traces of several years, bins exceed a minute.
    window_ms = max(MS_PER_MINUTE, arrivals.bin_ms)
    minutes = arrivals.counts(window_ms)
    whole = minutes[:-1] if minutes.size > 1 else minutes
    return float(whole.max()) / min(window_ms, arrivals.span_ms) * MS_PER_S


def by_hour(arrivals: ArrivalTimes, mean_per_s: float) -> tuple[float, ...]:
    """Return the rate of each full hour over the mean rate; empty for less than two hours.

    Parameters
    ----------
    arrivals : ArrivalTimes
        At least one request.
    mean_per_s : float
        Mean rate over the whole time. [requests/s]
    """
    hours = arrivals.counts(MS_PER_HOUR)
    if hours.size < 3:
        return ()
    return tuple((hours[:-1] / (MS_PER_HOUR / MS_PER_S) / mean_per_s).tolist())


def burstiness_of(arrivals: ArrivalTimes) -> float:
    """Return the variance over the mean of counts in equal windows, within groups of `WINDOWS_TOGETHER`.

    Rounding of times to seconds has no effect while windows are longer. 1 if there are too few requests.

    Parameters
    ----------
    arrivals : ArrivalTimes
        Arrivals of the requests.
    """
    windows = arrivals.requests // WINDOW_REQUESTS
    if windows < WINDOWS_TOGETHER:
        return 1.0
    window_ms = arrivals.span_ms / windows
    if arrivals.bin_ms:
        # Windows with different numbers of bins would look like bursts.
        window_ms = max(1, round(window_ms / arrivals.bin_ms)) * arrivals.bin_ms
        windows = int(arrivals.span_ms / window_ms)
    counts = arrivals.counts(window_ms)
    if not arrivals.bin_ms:
        # The last request ends the last window.
        counts[windows - 1] += counts[windows:].sum()
    spells = windows // WINDOWS_TOGETHER
    grouped = counts[: spells * WINDOWS_TOGETHER].reshape(spells, WINDOWS_TOGETHER)
    return float(grouped.var(axis=1, ddof=1).sum() / grouped.mean(axis=1).sum())
