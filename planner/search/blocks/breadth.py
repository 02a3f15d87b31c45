"""How many patterns an integer master over all blocks looks at, as far as it can be solved in its time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from fleetplan.planner.search.blocks.effort import MASTER_GAP
from fleetplan.planner.search.blocks.highs_jobs import Answer

FIRST_MORE: Final = 0.8
"""Patterns a block that the widest looks at first beside those that are mixed and the plan's. Among these
alone HiGHS solves it in a second; with one more a block it may not end its root in 3.4 s, and finds nothing.
In between are the best plans: 348.3 with half a pattern more, where none more have 351.4 and one more 360.9
(1e12; medium fleet of hundreds of replicas, seed 1, third round)."""

LEAST_MORE, MOST_MORE = 0.1, 3.0
"""Their least and their most, a block."""

GROWTH: Final = 1.5
"""Factor of them from one master to the next, up or down."""

SOLVED_RATIO: Final = 1.5
"""Gap of a master that counts as solved, over the one that is asked of it."""

LEAST_GAIN: Final = 1e-9
"""Share of its cost by which a plan is better than another, and not the same but for rounding."""


class Breadth:
    """Learns it from one master for the next.

    Parameters
    ----------
    n_blocks : int
        Blocks of the program.

    Attributes
    ----------
    more : float
        Patterns to look at beside those that are mixed and the plan's.
    """

    def __init__(self, n_blocks: int) -> None:
        self.more = FIRST_MORE * n_blocks
        self._least, self._most = LEAST_MORE * n_blocks, MOST_MORE * n_blocks

    def learn(self, more: int, start: float, answers: Sequence[Answer]) -> None:
        """Look at more after a master that was solved, or found a better plan than a narrower one.

        At fewer after one that found nothing, or no better; at as many after a lone one that found something.

        Parameters
        ----------
        more : int
            What the widest of some masters looked at.
        start : float
            Cost of the plan that it began with; infinite without one. [objective units]
        answers : Sequence[Answer]
            Of masters that began with the same plan, the widest last.
        """
        if not more:
            return
        found, narrower = answers[-1], [each.objective for each in answers[:-1]]
        better = found.objective < min(narrower, default=start) - abs(LEAST_GAIN * found.objective)
        if _solved(found) or (narrower and better):
            self.more = max(self.more, GROWTH * more)
        elif not better:
            self.more = min(self.more, more / GROWTH)
        self.more = min(max(self.more, self._least), self._most)


def _solved(answer: Answer) -> bool:
    """Whether a master ended because it was content, and not because its time was over."""
    gap = answer.objective - answer.bound
    return math.isfinite(answer.objective) and gap <= SOLVED_RATIO * MASTER_GAP * abs(answer.objective)
