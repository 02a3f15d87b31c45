"""Effort of search steps: clock time, or work that is the same on every machine."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from fleetplan.planner.search.solvers.highs_jobs import Answer, Effort

ROUGHEST_GAP: Final = 1e-2
"""Gap of a block while prices are far from settled."""

FINEST_GAP: Final = 1e-4
"""Gap of a block once prices settle; the bound loses as much."""

SPREAD_SHARE: Final = 0.02
"""Gap of a block as a share of the distance of bound and master LP. Most blocks take a few nodes, and the
others end by time whatever the gap. Early rounds of a medium fleet lose 0.063 of a bound of 8.8 (1e12
objective units) at a share of 0.1, and 0.032 at 0.01, in the same time (benchmarks/RESULTS.md)."""

FEWEST_S, MOST_S = 0.15, 2.0
"""Time limits of a block at the roughest and the finest gap. Half of the blocks take 10 to 25 ms; in later
rounds of a scarce fleet, the slowest tenth takes 0.6 of the time (benchmarks/RESULTS.md). [s]"""

FEW_BLOCKS_SHARE, FEW_BLOCKS_S = 0.5, 1.0
"""Share of the time limit that a round would take if every block used its limit, and the largest limit. [s]
Companies with services that several regions serve have few and large blocks: a fifth of 108 take longer than
0.3 s. At the relaxation's prices, a round proves 7,217 thousand USD above the fixed cost with 0.15 s per
block, 7,382 with 1 s, and 7,492 with 5 s, in 7, 19 and 46 s of a core."""

FEWEST_NODES, MOST_NODES = 60, 2000
"""Node limits of a block at the roughest and the finest gap, in reproducible runs."""

CUTS_BELOW: Final = 2e-3
"""Gap below which cuts pay for themselves."""

ANY_GAP: Final = 1e6
"""Gap at which the first solution ends a solve."""

MASTER_GAP: Final = 5e-4
"""Target gap of an integer master."""

MASTER_NODES_A_SECOND: Final = 40
"""Nodes of an integer master that count as one second in reproducible runs."""

SECONDS_A_JOB: Final = 0.02
"""Work of a job besides its iterations in reproducible runs, close to its time on a core. [s]"""

COUNTED_CORES: Final = 2
"""Cores among which reproducible runs share work, whatever the machine has: limits must mean the same
everywhere."""


NEW_RATE_WEIGHT: Final = 0.5
"""Weight of the latest neighbourhoods in the average gain: many gain nothing."""

LEAST_MEASURED_S: Final = 1e-3
"""Shorter times count as this. [s]"""


def gain_rate(gain: float, took_s: float) -> float:
    """Return the gain per time. [objective units/s]"""
    return gain / max(took_s, LEAST_MEASURED_S)


@dataclass(slots=True)
class GainRate:
    """Average gain of neighbourhoods per time, weighted towards the latest.

    Attributes
    ----------
    per_s : float
        Average gain; infinite before the first note. [objective units/s]
    """

    per_s: float = math.inf

    def note(self, gain: float, took_s: float) -> None:
        """Update the average with a gain and its time."""
        rate = gain_rate(gain, took_s)
        known = self.per_s < math.inf
        self.per_s = NEW_RATE_WEIGHT * rate + (1 - NEW_RATE_WEIGHT) * self.per_s if known else rate


@dataclass(slots=True)
class Clock:
    """Time budget of a search: clock time, or work in reproducible runs.

    Attributes
    ----------
    limit_s : float
        Time limit. [s]
    deterministic : bool
        Whether to count work and jobs instead of clock time, so that every run takes the same steps.
    """

    limit_s: float
    deterministic: bool
    started: float = field(default_factory=time.monotonic)
    worked_s: float = 0.0

    def count(self, answers: Sequence[Answer]) -> None:
        """Charge the work of jobs."""
        work_s = sum(SECONDS_A_JOB + answer.work_s for answer in answers)
        self.worked_s += work_s / COUNTED_CORES

    def sharing(self, seats: int) -> int:
        """Return among how many seats work is shared; the same on every machine in reproducible runs."""
        return COUNTED_CORES if self.deterministic else seats

    def spent_s(self) -> float:
        """Return the time, or work, since the start. [s]"""
        return self.worked_s if self.deterministic else time.monotonic() - self.started

    def left_s(self) -> float:
        """Return the time until the limit. [s]"""
        return self.limit_s - self.spent_s()

    def extend(self, seconds: float) -> None:
        """Extend the limit."""
        self.limit_s += seconds

    def pricing(self, spread: float, n_blocks: int | None = None) -> Effort:
        """Return the effort for one block.

        Parameters
        ----------
        spread : float
            Distance of bound and master LP, as a share of the latter.
        n_blocks : int, optional
            Blocks of a round: the fewer, the longer each may take.
        """
        gap = min(max(SPREAD_SHARE * spread, FINEST_GAP), ROUGHEST_GAP)
        even_s = 0.0 if n_blocks is None else FEW_BLOCKS_SHARE * COUNTED_CORES * self.limit_s / n_blocks
        cuts = gap < CUTS_BELOW
        share = max(FINEST_GAP / gap, min(even_s, FEW_BLOCKS_S) / MOST_S)
        if self.deterministic:
            return Effort(None, max(FEWEST_NODES, round(share * MOST_NODES)), gap, cuts)
        limit_s = max(FEWEST_S, share * MOST_S)
        return Effort(max(0.05, min(limit_s, self.left_s())), 1_000_000, gap, cuts)

    def first_column(self) -> Effort:
        """Return the effort for a block without a column: unlimited, and any column will do."""
        limit_s = None if self.deterministic else max(0.1, self.left_s())
        return Effort(limit_s, 1_000_000, ANY_GAP)

    def master(self, seconds: float, overtime_s: float = 0.0) -> Effort:
        """Return the effort for an integer master with this time limit and overtime. [s]"""
        if self.deterministic:
            return Effort(None, max(1, round(seconds * MASTER_NODES_A_SECOND)), MASTER_GAP)
        return Effort(max(0.1, min(seconds, self.left_s() + overtime_s)), 1_000_000, MASTER_GAP)
