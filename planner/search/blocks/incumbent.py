"""The best plan so far, in whole numbers that keep every row of the program exactly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from fleetplan.planner.search.blocks.master import Choice
from fleetplan.planner.search.blocks.matrix import FloatArray, IntArray
from fleetplan.planner.search.blocks.patterns import ExactPatterns, Pattern
from fleetplan.planner.search.blocks.relaxation import Relaxation
from fleetplan.planner.search.blocks.split import Split

FOLLOWING_TOLERANCE: Final = 1e-5
"""How far above a whole number a variable may be that only follows others. [variable units]"""

Completion = Callable[[IntArray], IntArray | None]
"""Makes values of the relaxation exact, from the whole ones among them."""


class Incumbent:
    """Keeps the best exact plan.

    Parameters
    ----------
    parts, relaxation
        The program in blocks and its relaxation.
    complete : callable
        Asked where patterns that are exact each are not so together.
    """

    def __init__(
        self,
        parts: Split,
        relaxation: Relaxation,
        complete: Completion,
    ) -> None:
        self._parts = parts
        self._relaxation = relaxation
        self._complete = complete
        self._exact = ExactPatterns(parts, relaxation)
        self.choice: Choice | None = None
        self.values: IntArray | None = None
        self.objective: int | None = None

    def offer(self, choice: Choice) -> bool:
        """Keep a choice if it is exact and better than the best; True if it was kept.

        The choice is kept for neighbourhoods even where only `complete` made it exact.
        """
        # The rounding of loads costs far less than what separates two plans.
        if self.objective is not None and choice.cost >= self.objective:
            return False
        values = self._whole_values(choice)
        if values is None or not self._parts.program.holds(values):
            if self.mended(choice):
                return False
            values = self._complete(self._rounded(choice))
            if values is None or not self._parts.program.holds(values):
                return False
        objective = self._parts.program.value(values)
        if self.objective is not None and objective >= self.objective:
            return False
        self.choice, self.values, self.objective = choice, values, objective
        return True

    def mended(self, choice: Choice) -> list[tuple[Pattern, FloatArray]]:
        """Patterns of a choice that lack replicas, each with values that do not."""
        found = ((pattern, self._exact.mended(pattern)) for pattern in choice.patterns)
        return [(pattern, values) for pattern, values in found if values is not None]

    def _whole_values(self, choice: Choice) -> IntArray | None:
        """All variables from exact patterns; None where a pattern has none."""
        values = np.zeros(len(self._parts.program.cost), dtype=np.int64)
        for pattern in choice.patterns:
            exact = self._exact.values(pattern)
            if exact is None:
                return None
            values[self._parts.blocks[pattern.block].columns] = exact
        values[self._parts.master_columns] = self._master_values(choice)
        return values

    def _rounded(self, choice: Choice) -> IntArray:
        """All variables rounded; loads may then miss their rows by a unit."""
        values = np.zeros(len(self._parts.program.cost), dtype=np.int64)
        for pattern in choice.patterns:
            columns = self._parts.blocks[pattern.block].columns
            values[columns] = np.round(pattern.values * self._relaxation.column_scale[columns])
        values[self._parts.master_columns] = self._master_values(choice)
        return values

    def _master_values(self, choice: Choice) -> IntArray:
        unscaled = choice.master * self._relaxation.column_scale[self._parts.master_columns]
        up = np.ceil(unscaled - FOLLOWING_TOLERANCE)
        return np.where(self._parts.following, up, np.round(unscaled)).astype(np.int64)
