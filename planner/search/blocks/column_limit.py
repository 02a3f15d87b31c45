"""Adapt how many columns an integer master over all blocks may use, so that it solves in its time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from fleetplan.planner.search.blocks.effort import MASTER_GAP
from fleetplan.planner.search.solvers.highs_jobs import Answer

FIRST_EXTRA: Final = 0.8
"""Columns per block that the widest integer master adds, at first, to those of the master LP and of the plan.
Without any, HiGHS solves it in 1 s; with one per block its root may take more than 3.4 s and yield nothing.
The best plans lie in between: 348.3 with half a column, 351.4 with none, 360.9 with one (1e12 objective
units, medium fleet)."""

LEAST_EXTRA, MOST_EXTRA = 0.1, 3.0
"""Smallest and largest extra columns per block."""

GROWTH: Final = 1.5
"""Factor on the extra columns from one master to the next, up or down."""

SOLVED_RATIO: Final = 1.5
"""Gap of a master that counts as solved, as a multiple of its target gap."""

LEAST_GAIN: Final = 1e-9
"""Share of its cost by which a plan must be cheaper to count as better, beyond rounding."""


class ColumnLimit:
    """Adaptive limit of extra columns, learned from one integer master for the next.

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
            Extra columns of the widest master.
        start : float
            Cost of the plan they started from; infinite if none. [objective units]
        answers : Sequence[Answer]
            Answers of masters with the same starting plan, widest last.
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
    """Return whether a master ended by its gap, not by its time limit."""
    gap = answer.objective - answer.bound
    return math.isfinite(answer.objective) and gap <= SOLVED_RATIO * MASTER_GAP * abs(answer.objective)
