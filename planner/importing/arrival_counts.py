"""Arrivals of a trace of any length in bounded memory: rates, bursts, the course of the day."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from fleetplan.fleet.units import MS_PER_HOUR, MS_PER_MINUTE, MS_PER_S
from fleetplan.perfmodel.operators import FloatArray, IntArray

EXACT_ARRIVALS: Final = 1 << 20
"""Requests whose times are all kept, in 8 MB; more of them are counted in bins."""

MOST_BINS: Final = 1 << 21
"""Bins of time, in 16 MB: those of a week are 0.47 s wide."""

FINEST_MS: Final = MS_PER_MINUTE / 4096
"""Width of the first bins; it doubles for longer traces, so that a minute is whole bins. [ms]"""

WINDOW_REQUESTS: Final = 20
"""Requests of the windows whose counts tell bursts, in the mean."""

WINDOWS_TOGETHER: Final = 16
"""Windows over which the rate is taken as constant, so that the course of the day is no burst."""


@dataclass(frozen=True, slots=True)
class ArrivalTimes:
    """When requests came: their times, or how many came in each of many bins.

    Attributes
    ----------
    times_ms : FloatArray
        Rising, from the first request, shape (n_requests,); empty with bins. [ms]
    bins : IntArray
        Requests of each bin from that of the first request on, shape (n_bins,); empty without bins.
    bin_ms : float
        Width of the bins; 0 without. [ms]
    """

    times_ms: FloatArray
    bins: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    bin_ms: float = 0.0

    @property
    def requests(self) -> int:
        """How many."""
        return int(self.bins.sum()) if self.bins.size else self.times_ms.size

    @property
    def span_ms(self) -> float:
        """From the first to the last request. [ms]"""
        return self.bins.size * self.bin_ms if self.bins.size else float(self.times_ms[-1])

    def counts(self, window_ms: float) -> FloatArray:
        """Return the requests of each window from the first request on, shape (n_windows,).

        Parameters
        ----------
        window_ms : float
            Width of a window, of whole bins where there are bins. [ms]
        """
        if self.bins.size:
            starts = np.arange(0, self.bins.size, round(window_ms / self.bin_ms))
            found: FloatArray = np.add.reduceat(self.bins, starts).astype(np.float64)
        else:
            found = np.bincount((self.times_ms / window_ms).astype(np.int64)).astype(np.float64)
        return found


class ArrivalCounts:
    """Times of requests that come in any order, in bounded memory.

    Up to `EXACT_ARRIVALS` requests they are kept. After that they are counted in at most `MOST_BINS` bins of
    equal width, and minutes, hours and windows begin up to a bin before the first request.
    """

    def __init__(self) -> None:
        self.requests = 0
        self._earliest_s, self._latest_s = math.inf, -math.inf
        self._kept: list[FloatArray] = []
        # Bin i after the time `_zero_s` has place i modulo their number: earlier ones find room as well.
        self._bins: IntArray = np.zeros(0, dtype=np.int64)
        self._zero_s = 0.0
        self._bin_ms = FINEST_MS
        self._first, self._last = 0, 0

    @property
    def span_ms(self) -> float:
        """From the first to the last request. [ms]"""
        return (self._latest_s - self._earliest_s) * MS_PER_S

    def add(self, arrival_s: Sequence[float]) -> None:
        """Take the times of some requests.

        Parameters
        ----------
        arrival_s : Sequence[float]
            At least one. [s]
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
        """Make bins twice as wide."""
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
        """Bins from that of the first request on."""
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
    """Return the rate of the busiest whole minute, or of the whole time where that is shorter. [1/s].

    Parameters
    ----------
    arrivals : ArrivalTimes
        Of at least two requests at different times.
    """
    # Bins of years are longer than a minute.
    window_ms = max(MS_PER_MINUTE, arrivals.bin_ms)
    minutes = arrivals.counts(window_ms)
    whole = minutes[:-1] if minutes.size > 1 else minutes
    return float(whole.max()) / min(window_ms, arrivals.span_ms) * MS_PER_S


def by_hour(arrivals: ArrivalTimes, mean_per_s: float) -> tuple[float, ...]:
    """Return the rate of each whole hour over the mean rate; empty for less than two hours.

    Parameters
    ----------
    arrivals : ArrivalTimes
        Of at least one request.
    mean_per_s : float
        Over the whole time. [1/s]
    """
    hours = arrivals.counts(MS_PER_HOUR)
    if hours.size < 3:
        return ()
    return tuple((hours[:-1] / (MS_PER_HOUR / MS_PER_S) / mean_per_s).tolist())


def burstiness_of(arrivals: ArrivalTimes) -> float:
    """Variance over mean of the counts in equal windows, within spells of `WINDOWS_TOGETHER` of them.

    Times that are rounded to seconds do not disturb it as long as windows are longer. 1 where there are too
    few requests to tell.

    Parameters
    ----------
    arrivals : ArrivalTimes
        Of the requests.
    """
    windows = arrivals.requests // WINDOW_REQUESTS
    if windows < WINDOWS_TOGETHER:
        return 1.0
    window_ms = arrivals.span_ms / windows
    if arrivals.bin_ms:
        # Windows of unequal numbers of bins would look like bursts.
        window_ms = max(1, round(window_ms / arrivals.bin_ms)) * arrivals.bin_ms
        windows = int(arrivals.span_ms / window_ms)
    counts = arrivals.counts(window_ms)
    if not arrivals.bin_ms:
        # The last request ends the last window.
        counts[windows - 1] += counts[windows:].sum()
    spells = windows // WINDOWS_TOGETHER
    grouped = counts[: spells * WINDOWS_TOGETHER].reshape(spells, WINDOWS_TOGETHER)
    return float(grouped.var(axis=1, ddof=1).sum() / grouped.mean(axis=1).sum())
