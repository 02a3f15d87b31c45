"""Synthetic traffic from its statistics: arrival times and lengths of requests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fleetplan.fleet.inventory import LengthHistogram
from fleetplan.fleet.units import MS_PER_S
from fleetplan.perfmodel.operators import FloatArray, IntArray
from fleetplan.perfmodel.serving.requests import Requests


@dataclass(frozen=True, slots=True)
class RequestKind:
    """Requests of one class.

    Attributes
    ----------
    input_tokens, output_tokens : int
        Mean new prompt tokens and generated tokens. [tokens]
    prefix_tokens : int
        Prompt tokens that are always cached. [tokens]
    lengths : LengthHistogram or None
        Distribution of lengths, scaled to the means; None for equal lengths.
    """

    input_tokens: int
    output_tokens: int
    prefix_tokens: int = 0
    lengths: LengthHistogram | None = None

    def input_quantiles(self, shares: FloatArray) -> FloatArray:
        """Return the new prompt tokens that these shares of the requests do not exceed. [tokens]"""
        if self.lengths is None:
            return np.full(shares.shape, float(self.input_tokens))
        scale = self.input_tokens / self.lengths.mean_input_tokens
        return np.array([max(1.0, scale * self.lengths.input_quantile(float(share))) for share in shares])

    @property
    def output_variation(self) -> float:
        """Squared coefficient of variation of the generated tokens."""
        return 0.0 if self.lengths is None else self.lengths.output_variation

    @property
    def longest_tokens(self) -> int:
        """Tokens of the longest request, prefix and output included. [tokens]"""
        if self.lengths is None:
            return self.prefix_tokens + self.input_tokens + self.output_tokens
        inputs = max(each.input_to for each in self.lengths.bins) / self.lengths.mean_input_tokens
        outputs = max(each.output_to for each in self.lengths.bins) / self.lengths.mean_output_tokens
        longest = inputs * self.input_tokens + outputs * self.output_tokens
        return self.prefix_tokens + int(np.ceil(longest))


def drawn_lengths(kind: RequestKind, count: int, random: np.random.Generator) -> tuple[IntArray, IntArray]:
    """Draw new prompt tokens and generated tokens of `count` requests. [tokens]"""
    if kind.lengths is None:
        return np.full(count, kind.input_tokens), np.full(count, kind.output_tokens)
    bins = kind.lengths.bins
    shares = np.array([each.share for each in bins])
    chosen = random.choice(len(bins), size=count, p=shares / shares.sum())
    edges = np.array([(b.input_from, b.input_to, b.output_from, b.output_to) for b in bins])[chosen]
    inputs = random.integers(edges[:, 0], edges[:, 1])
    outputs = random.integers(edges[:, 2], edges[:, 3])
    input_scale = kind.input_tokens / kind.lengths.mean_input_tokens
    output_scale = kind.output_tokens / kind.lengths.mean_output_tokens
    return _scaled(inputs, input_scale), _scaled(outputs, output_scale)


def _scaled(tokens: IntArray, scale: float) -> IntArray:
    found: IntArray = np.maximum(1, np.rint(tokens * scale)).astype(np.int64)
    return found


def renewal_times_ms(
    requests_per_s: float, burstiness: float, count: int, random: np.random.Generator
) -> FloatArray:
    """Return the arrival times of a renewal process with gamma-distributed intervals, shape (count,). [ms]

    Parameters
    ----------
    requests_per_s : float
        Mean rate. [1/s]
    burstiness : float
        Squared coefficient of variation of the interarrival times; 1 is Poisson.
    count : int
        Number of requests.
    random : numpy.random.Generator
        Random generator.
    """
    mean_ms = MS_PER_S / requests_per_s
    gaps = random.gamma(1 / burstiness, burstiness * mean_ms, count)
    found: FloatArray = np.cumsum(gaps)
    return found


@dataclass(frozen=True, slots=True)
class Regimes:
    """A Poisson process whose rate switches between a calm and a busy regime.

    Attributes
    ----------
    busy_ratio : float
        Rate of the busy regime over the mean rate, above 1.
    busy_share : float
        Share of time in the busy regime; the calm rate follows from the mean.
    busy_s : float
        Mean duration of a busy regime; the durations of both are exponentially distributed. [s]
    """

    busy_ratio: float = 3.0
    busy_share: float = 0.2
    busy_s: float = 10.0

    def __post_init__(self) -> None:
        if not (0 < self.busy_share < 1 and 1 < self.busy_ratio <= 1 / self.busy_share and self.busy_s > 0):
            raise ValueError(f"the busy regime would carry more than all requests: {self}")

    @property
    def calm_ratio(self) -> float:
        """Rate of the calm regime over the mean rate."""
        return (1 - self.busy_share * self.busy_ratio) / (1 - self.busy_share)


def regime_times_ms(
    requests_per_s: float, regimes: Regimes, duration_s: float, random: np.random.Generator
) -> FloatArray:
    """Return the arrival times of a Markov-modulated Poisson process, shape (n,). [ms]

    Parameters
    ----------
    requests_per_s : float
        Mean rate. [1/s]
    regimes : Regimes
        Its two regimes.
    duration_s : float
        Length of the simulated time. [s]
    random : numpy.random.Generator
        Random generator.
    """
    calm_s = regimes.busy_s * (1 - regimes.busy_share) / regimes.busy_share
    found: list[FloatArray] = []
    now, busy = 0.0, bool(random.random() < regimes.busy_share)
    while now < duration_s:
        spell = min(random.exponential(regimes.busy_s if busy else calm_s), duration_s - now)
        rate = requests_per_s * (regimes.busy_ratio if busy else regimes.calm_ratio)
        found.append(now + spell * np.sort(random.random(random.poisson(rate * spell))))
        now, busy = now + spell, not busy
    return MS_PER_S * np.concatenate(found)


def requests_of(
    arrival_ms: FloatArray, kinds: Sequence[RequestKind], classes: IntArray, random: np.random.Generator
) -> Requests:
    """Draw lengths of arrivals by their classes.

    Parameters
    ----------
    arrival_ms : FloatArray
        In rising order, shape (n,). [ms]
    kinds : Sequence[RequestKind]
        By class.
    classes : IntArray
        Class of each arrival, shape (n,).
    random : numpy.random.Generator
        Random generator.
    """
    inputs, outputs = np.ones_like(classes), np.ones_like(classes)
    prefixes = np.array([kind.prefix_tokens for kind in kinds])[classes]
    for position, kind in enumerate(kinds):
        rows = np.flatnonzero(classes == position)
        inputs[rows], outputs[rows] = drawn_lengths(kind, rows.size, random)
    return Requests(arrival_ms, inputs, prefixes, outputs, request_class=classes)
