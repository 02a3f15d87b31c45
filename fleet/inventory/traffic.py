"""Distributions of arrivals and lengths of requests, and latency limits under load."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate

POISSON_BURSTINESS = 1.0
"""Squared coefficient of variation of interarrival times of independent arrivals."""


@dataclass(frozen=True, slots=True)
class LengthBin:
    """A bin of prompt and output lengths, with requests spread evenly over it.

    Attributes
    ----------
    input_from, input_to : int
        New prompt tokens, upper end excluded. [tokens]
    output_from, output_to : int
        Generated tokens, upper end excluded. [tokens]
    share : float
        Share of all requests.
    """

    input_from: int
    input_to: int
    output_from: int
    output_to: int
    share: float

    @property
    def mean_input_tokens(self) -> float:
        """Mean new prompt tokens. [tokens]"""
        return (self.input_from + self.input_to - 1) / 2

    @property
    def mean_output_tokens(self) -> float:
        """Mean generated tokens. [tokens]"""
        return (self.output_from + self.output_to - 1) / 2


@dataclass(frozen=True, slots=True)
class LengthHistogram:
    """Joint distribution of prompt and output lengths.

    Attributes
    ----------
    bins : tuple[LengthBin, ...]
        At least one; their shares add up to one.
    """

    bins: tuple[LengthBin, ...]

    @property
    def mean_input_tokens(self) -> float:
        """Mean new prompt tokens. [tokens]"""
        return sum(each.share * each.mean_input_tokens for each in self.bins)

    @property
    def mean_output_tokens(self) -> float:
        """Mean generated tokens. [tokens]"""
        return sum(each.share * each.mean_output_tokens for each in self.bins)

    @property
    def longest_tokens(self) -> int:
        """Prompt and answer of the longest request. [tokens]"""
        return max(each.input_to + each.output_to - 2 for each in self.bins)

    @property
    def output_variation(self) -> float:
        """Squared coefficient of variation of the generated tokens."""
        second = sum(each.share * _second_moment(each.output_from, each.output_to) for each in self.bins)
        return second / self.mean_output_tokens**2 - 1.0

    def input_quantile(self, share: float) -> float:
        """Return the new prompt tokens that `share` of the requests do not exceed. [tokens]

        Assumes that bins of prompt lengths do not overlap.
        """
        shares: dict[tuple[int, int], float] = {}
        for each in self.bins:
            edges = (each.input_from, each.input_to)
            shares[edges] = shares.get(edges, 0.0) + each.share
        ordered = sorted(shares.items())
        for (edges, here), reached in zip(ordered, accumulate(part for _, part in ordered), strict=True):
            if reached >= share and here > 0:
                part = 1.0 - (reached - share) / here
                return edges[0] + part * (edges[1] - 1 - edges[0])
        return float(ordered[-1][0][1] - 1)


def _second_moment(start: int, end: int) -> float:
    """Return the mean square of the whole numbers from `start` up to but not including `end`."""
    count, mean = end - start, (start + end - 1) / 2
    return mean**2 + (count**2 - 1) / 12


@dataclass(frozen=True, slots=True)
class LatencyLimit:
    """A latency limit under load.

    Attributes
    ----------
    share : float or None
        Share of the requests that must meet it; None limits their mean.
    limit_ms : float
        The limit. [ms]
    """

    share: float | None
    limit_ms: float


@dataclass(frozen=True, slots=True)
class Traffic:
    """Distributions of a service's requests.

    Attributes
    ----------
    burstiness : float
        Squared coefficient of variation of interarrival times; 1 is Poisson.
    ttft, tpot : tuple[LatencyLimit, ...]
        Limits under load, queueing included.
    lengths : tuple[tuple[str, LengthHistogram], ...]
        Distribution of lengths by request class, scaled to the means of the class. Other classes have
        requests of one length.
    derives_headroom : bool
        Whether the headroom follows from the variation of the traffic because the service states none.
    """

    burstiness: float = POISSON_BURSTINESS
    ttft: tuple[LatencyLimit, ...] = ()
    tpot: tuple[LatencyLimit, ...] = ()
    lengths: tuple[tuple[str, LengthHistogram], ...] = ()
    derives_headroom: bool = False

    @property
    def limits_load(self) -> bool:
        """Whether any latency has a limit under load."""
        return bool(self.ttft or self.tpot)

    def lengths_of(self, request_class: str) -> LengthHistogram | None:
        """Return the distribution of lengths of a class; None if all its requests have one length."""
        return dict(self.lengths).get(request_class)
