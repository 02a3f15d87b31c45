"""How long the parts of a search work: by the clock, or by work that is the same on every machine."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from fleetplan.planner.search.solvers.highs_jobs import Answer, Effort

ROUGHEST_GAP: Final = 1e-2
"""Gap of a block where prices are far from the last."""

FINEST_GAP: Final = 1e-4
"""Gap of a block once prices settle: the bound loses as much."""

SPREAD_SHARE: Final = 0.02
"""Gap of a block over the distance of the bound from the master LP, of which it then loses little. Most
blocks are solved in a few nodes, and the few that are not end by their time, whatever the gap: blocks of the
early rounds of a medium fleet lose 0.063 of a bound of 8.8 (1e12) in 26 ms each at the gaps that a share of
0.1 asks for, 0.032 in 25 ms at a tenth of these (plain, seed 2; more in benchmarks/RESULTS.md)."""

FEWEST_S, MOST_S = 0.15, 2.0
"""Limits of one block at the roughest and the finest gap. Half of them take 10 to 25 ms; in later rounds of a
scarce fleet the longest tenth takes 0.6 of the time (benchmarks/RESULTS.md). [s]"""

FEW_BLOCKS_SHARE, FEW_BLOCKS_S = 0.5, 1.0
"""Share of the time limit that a round would take if every block took its limit, and most that it gives one.
Blocks of companies, with services that other regions serve, are few and large: a fifth of 108 take longer
than 0.3 s. At the prices of the relaxation a round proves 7,217 after 0.15 s each, 7,382 after 1 s and 7,492
after 5 s (7, 19 and 46 s of a core; thousand USD above the fixed cost; company, seed 1), and its columns cost
3,300, 310 and 30 too much. [s]"""

FEWEST_NODES, MOST_NODES = 60, 2000
"""The same where work is counted in nodes."""

CUTS_BELOW: Final = 2e-3
"""Gap below which cuts pay for themselves."""

ANY_GAP: Final = 1e6
"""Gap at which the first solution ends a search."""

MASTER_GAP: Final = 5e-4
"""Gap at which an integer master is content."""

MASTER_NODES_A_SECOND: Final = 40
"""Nodes of an integer master that stand for a second where work is counted."""

SECONDS_A_JOB: Final = 0.02
"""What a job counts for besides its iterations where work is counted; about what it takes on a core. [s]"""

COUNTED_CORES: Final = 2
"""Cores that counted work is shared by, whatever the machine has: a limit must mean the same everywhere."""


NEW_RATE_WEIGHT: Final = 0.5
"""Weight of the last neighbourhoods in what they are known to gain: many find nothing."""

LEAST_MEASURED_S: Final = 1e-3
"""Shorter times count as so much. [s]"""


def gain_rate(gain: float, took_s: float) -> float:
    """What a part of the search gained in its time. [objective units/s]"""
    return gain / max(took_s, LEAST_MEASURED_S)


@dataclass(slots=True)
class GainRate:
    """What neighbourhoods close of the gap in their time, the last ones above all.

    Attributes
    ----------
    per_s : float
        Infinite until the first are noted. [objective units/s]
    """

    per_s: float = math.inf

    def note(self, gain: float, took_s: float) -> None:
        """Count some that gained so much in so long."""
        rate = gain_rate(gain, took_s)
        known = self.per_s < math.inf
        self.per_s = NEW_RATE_WEIGHT * rate + (1 - NEW_RATE_WEIGHT) * self.per_s if known else rate


@dataclass(slots=True)
class Clock:
    """The time that a search has spent.

    Attributes
    ----------
    limit_s : float
        When it ends. [s]
    deterministic : bool
        Whether spent time is counted in work and jobs, so that every run takes the same steps.
    """

    limit_s: float
    deterministic: bool
    started: float = field(default_factory=time.monotonic)
    worked_s: float = 0.0

    def count(self, answers: Sequence[Answer]) -> None:
        """Note work that was done."""
        work_s = sum(SECONDS_A_JOB + answer.work_s for answer in answers)
        self.worked_s += work_s / COUNTED_CORES

    def sharing(self, seats: int) -> int:
        """Those that share the work, of so many seats; as many on every machine where work is counted."""
        return COUNTED_CORES if self.deterministic else seats

    def spent_s(self) -> float:
        """Time since the start, or work. [s]"""
        return self.worked_s if self.deterministic else time.monotonic() - self.started

    def left_s(self) -> float:
        """Time until the limit. [s]"""
        return self.limit_s - self.spent_s()

    def extend(self, seconds: float) -> None:
        """Put the limit off."""
        self.limit_s += seconds

    def pricing(self, spread: float, n_blocks: int | None = None) -> Effort:
        """Effort for one block.

        Parameters
        ----------
        spread : float
            Distance of the bound from the master LP, as a share of it.
        n_blocks : int, optional
            Blocks of a round: where they are few, each may take longer.
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
        """Effort for a block that has no column yet: whatever it takes, for any."""
        limit_s = None if self.deterministic else max(0.1, self.left_s())
        return Effort(limit_s, 1_000_000, ANY_GAP)

    def master(self, seconds: float, overtime_s: float = 0.0) -> Effort:
        """Effort for an integer master that may take so long, and so much longer than the limit. [s]"""
        if self.deterministic:
            return Effort(None, max(1, round(seconds * MASTER_NODES_A_SECOND)), MASTER_GAP)
        return Effort(max(0.1, min(seconds, self.left_s() + overtime_s)), 1_000_000, MASTER_GAP)
