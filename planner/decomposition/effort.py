"""How long the parts of a search work: by the clock, or by work that is the same on every machine."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Final

from fleetplan.planner.decomposition.highs_jobs import Effort

ROUGH_PRICING_GAP: Final = 1e-2
"""Gap of a block in the first rounds, whose prices are far from the last."""

FINE_PRICING_GAP: Final = 3e-4
"""Gap of a block once prices settle: the bound loses as much."""

ROUGH_PRICING_S, FINE_PRICING_S = 0.15, 2.0
"""Limits of one block; nine of ten take less than a tenth of that. [s]"""

ROUGH_PRICING_NODES, FINE_PRICING_NODES = 60, 2000
"""The same where work is counted in nodes."""

ANY_GAP: Final = 1e6
"""Gap at which the first solution ends a search."""

MASTER_GAP: Final = 5e-4
"""Gap at which an integer master is content."""

MASTER_NODES_A_SECOND: Final = 40
"""Nodes of an integer master that stand for a second where work is counted."""

SECONDS_A_JOB: Final = 0.02
"""What a job without nodes counts for where work is counted; about what it takes on a core. [s]"""

SECONDS_A_NODE: Final = 0.002
"""What a node of a block counts for. [s]"""


COUNTED_CORES: Final = 2
"""Cores that counted work is shared by, whatever the machine has: a limit must mean the same everywhere."""


@dataclass(slots=True)
class Clock:
    """The time that a search has spent.

    Attributes
    ----------
    limit_s : float
        When it ends. [s]
    deterministic : bool
        Whether spent time is counted in nodes and jobs, so that every run takes the same steps.
    workers : int
        Processes that share the work.
    """

    limit_s: float
    deterministic: bool
    workers: int
    started: float = field(default_factory=time.monotonic)
    worked_s: float = 0.0

    def count(self, jobs: int, nodes: int, seconds_a_node: float = SECONDS_A_NODE) -> None:
        """Note work that was done."""
        self.worked_s += (SECONDS_A_JOB * jobs + seconds_a_node * nodes) / COUNTED_CORES

    def spent_s(self) -> float:
        """Time since the start, or work. [s]"""
        return self.worked_s if self.deterministic else time.monotonic() - self.started

    def left_s(self) -> float:
        """Time until the limit. [s]"""
        return self.limit_s - self.spent_s()

    def pricing(self, rough: bool) -> Effort:
        """Effort for one block."""
        gap = ROUGH_PRICING_GAP if rough else FINE_PRICING_GAP
        if self.deterministic:
            return Effort(None, ROUGH_PRICING_NODES if rough else FINE_PRICING_NODES, gap, cuts=not rough)
        limit_s = ROUGH_PRICING_S if rough else FINE_PRICING_S
        return Effort(max(0.05, min(limit_s, self.left_s())), 1_000_000, gap, cuts=not rough)

    def first_pattern(self) -> Effort:
        """Effort for a block that has no pattern yet: whatever it takes, for any."""
        limit_s = None if self.deterministic else max(0.1, self.left_s())
        return Effort(limit_s, 1_000_000, ANY_GAP)

    def master(self, seconds: float) -> Effort:
        """Effort for an integer master that may take so long."""
        if self.deterministic:
            return Effort(None, max(1, round(seconds * MASTER_NODES_A_SECOND)), MASTER_GAP)
        return Effort(max(0.1, min(seconds, self.left_s())), 1_000_000, MASTER_GAP)
