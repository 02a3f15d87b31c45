"""Adapt how many columns an integer master over all blocks may use, so that it solves in its time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from fleetplan.planner.search.blocks.effort import MASTER_GAP
from fleetplan.planner.search.solvers.highs_jobs import Answer

FIRST_EXTRA: Final = 0.8
"""Columns a block that the widest master adds at first to those of the master LP and of the plan. With none
HiGHS solves it in a second; with one more a block it may not end its root in 3.4 s, and finds nothing.
In between are the best plans: 348.3 with half a column more, where none more have 351.4 and one more 360.9
(1e12; medium fleet of hundreds of replicas, seed 1, third round)."""

LEAST_EXTRA, MOST_EXTRA = 0.1, 3.0
"""Their least and their most, a block."""

GROWTH: Final = 1.5
"""Factor of them from one master to the next, up or down."""

SOLVED_RATIO: Final = 1.5
"""Gap of a master that counts as solved, over the one that is asked of it."""

LEAST_GAIN: Final = 1e-9
"""Share of its cost by which a plan is better than another, and not the same but for rounding."""


class ColumnLimit:
    """Learns the number of extra columns from one integer master for the next.

    Parameters
    ----------
    n_blocks : int
        Blocks of the program.

    Attributes
    ----------
    extra : float
        Columns to add to those of the master LP and of the plan.
    """

    def __init__(self, n_blocks: int) -> None:
        self.extra = FIRST_EXTRA * n_blocks
        self._least, self._most = LEAST_EXTRA * n_blocks, MOST_EXTRA * n_blocks

    def learn(self, extra: int, start: float, answers: Sequence[Answer]) -> None:
        """Raise the limit after a master that was solved or that beat a narrower one.

        Lower it after one that found nothing better; keep it after a lone one that found something.

        Parameters
        ----------
        extra : int
            Extra columns of the widest of some masters.
        start : float
            Cost of the plan that it began with; infinite without one. [objective units]
        answers : Sequence[Answer]
            Of masters that began with the same plan, the widest last.
        """
        if not extra:
            return
        found, narrower = answers[-1], [each.objective for each in answers[:-1]]
        better = found.objective < min(narrower, default=start) - abs(LEAST_GAIN * found.objective)
        if _solved(found) or (narrower and better):
            self.extra = max(self.extra, GROWTH * extra)
        elif not better:
            self.extra = min(self.extra, extra / GROWTH)
        self.extra = min(max(self.extra, self._least), self._most)


def _solved(answer: Answer) -> bool:
    """Whether a master ended because it was content, and not because its time was over."""
    gap = answer.objective - answer.bound
    return math.isfinite(answer.objective) and gap <= SOLVED_RATIO * MASTER_GAP * abs(answer.objective)
