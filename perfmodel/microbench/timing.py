"""How often a kernel is run until its time is known."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import quantiles
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from fleetplan.perfmodel.microbench.device import Device, Run

WARM_UPS: Final = 3
"""Executions before the first that counts: libraries choose kernels, clocks rise."""

BLOCK_REPEATS: Final = 7
"""Executions between two looks at the quantile."""

STABLE_RATIO: Final = 0.01
"""The quantile is known when a further block changes it by less."""

STABLE_BLOCKS: Final = 2
"""So many blocks in a row have to change it by less."""


@dataclass(frozen=True, slots=True)
class Effort:
    """How much is spent on a point.

    Attributes
    ----------
    quantile : float
        Which of the executions counts: 0.5 is the median; 0 the fastest, for machines that others use.
    most_repeats : int
        Executions after which the time is taken as it is.
    most_s : float
        Time after which it is. [s]
    """

    quantile: float = 0.5
    most_repeats: int = 350
    most_s: float = 2.0


@dataclass(frozen=True, slots=True)
class Timing:
    """The time of a kernel.

    Attributes
    ----------
    latency_us : float
        The asked quantile. [us]
    spread_ratio : float
        Half the distance between the quartiles, over the median.
    repeats : int
        Executions.
    """

    latency_us: float
    spread_ratio: float
    repeats: int


def stable_timing(run: Run, device: Device, effort: Effort) -> Timing:
    """Run a kernel until the asked quantile of its times stands still."""
    device.times_us(run, WARM_UPS)
    times: list[float] = []
    known, still = None, 0
    while len(times) < effort.most_repeats and sum(times) < effort.most_s * 1e6 and still < STABLE_BLOCKS:
        times += device.times_us(run, BLOCK_REPEATS)
        found = quantile_of(times, effort.quantile)
        still = still + 1 if known is not None and abs(found - known) < STABLE_RATIO * known else 0
        known = found
    quarter, median, three_quarters = quantiles(times, n=4)
    return Timing(quantile_of(times, effort.quantile), (three_quarters - quarter) / 2 / median, len(times))


def quantile_of(times: list[float], quantile: float) -> float:
    """Return the time below which that share of the executions stayed; 0 is the fastest."""
    ordered = sorted(times)
    return ordered[min(len(ordered) - 1, int(quantile * len(ordered)))]
