"""Repeat a kernel until its time is stable."""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean, median, quantiles
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from fleetplan.perfmodel.microbench.device import Device
    from fleetplan.perfmodel.microbench.operands import Kernel

WARM_UPS: Final = 3
"""Executions before the first that counts: libraries choose kernels, clocks rise."""

BLOCK_S: Final = 0.05
"""Duration of a block of executions: about a step of a small decoder. [s]"""

MOST_BLOCK_REPEATS: Final = 64
"""Executions of a block at most."""

LEAST_BLOCKS: Final = 6
"""Blocks before the first check of the median."""

STABLE_RATIO: Final = 0.01
"""The time is known when a further block changes it by less."""

STABLE_BLOCKS: Final = 2
"""So many blocks in a row have to change it by less."""


@dataclass(frozen=True, slots=True)
class TimingEffort:
    """Effort per point.

    Attributes
    ----------
    most_s : float
        Time after which the current result is used. [s]
    block_s : float
        Duration of a block. [s]
    """

    most_s: float = 2.0
    block_s: float = BLOCK_S


@dataclass(frozen=True, slots=True)
class Timing:
    """The time of a kernel.

    Attributes
    ----------
    latency_us : float
        Median over blocks of executions of their means. [us]
    spread_ratio : float
        Half the distance between the quartiles of the blocks, over their median.
    repeats : int
        Executions.
    """

    latency_us: float
    spread_ratio: float
    repeats: int


def stable_timing(kernel: Kernel, device: Device, effort: TimingEffort) -> Timing:
    """Run a kernel until its time is stable.

    Within a block the mean counts: times of operators have to add up to that of a step, as means do, and as
    least values or medians of single executions do not. Over the blocks the median counts, so that spells in
    which others use the machine are left out.
    """
    started = time.perf_counter()
    device.times_us(kernel, WARM_UPS)
    warm_up_s = device.agreed(time.perf_counter() - started)
    execution_s = max(warm_up_s / WARM_UPS, effort.block_s / MOST_BLOCK_REPEATS)
    repeats = max(1, round(effort.block_s / execution_s))
    means: list[float] = []
    begun, elapsed_s = time.perf_counter(), 0.0
    # Quartiles need two blocks.
    while len(means) < 2 or not (is_known(means) or elapsed_s >= effort.most_s):
        means.append(fmean(device.times_us(kernel, repeats)))
        elapsed_s = device.agreed(time.perf_counter() - begun)
    quarter, middle, three_quarters = quantiles(means, n=4)
    return Timing(middle, (three_quarters - quarter) / 2 / middle, repeats * len(means))


def is_known(means: list[float]) -> bool:
    """Whether the last blocks have hardly changed the median of the means."""
    if len(means) < LEAST_BLOCKS + STABLE_BLOCKS:
        return False
    medians = [median(means[:end]) for end in range(len(means) - STABLE_BLOCKS, len(means) + 1)]
    return all(abs(later - earlier) < STABLE_RATIO * earlier for earlier, later in pairwise(medians))


def quantile_of(values: list[float], quantile: float) -> float:
    """Return the value below which that share of them stays; 0 is the least."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(quantile * len(ordered)))]
