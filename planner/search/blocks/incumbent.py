"""Incumbent: the best plan so far, in whole numbers that satisfy every row exactly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from fleetplan.planner.search.blocks.columns import Column
from fleetplan.planner.search.blocks.exact_columns import ExactColumns
from fleetplan.planner.search.blocks.master import Selection
from fleetplan.planner.search.blocks.row_repair import RowRepair
from fleetplan.planner.search.blocks.split import MASTER, Split
from fleetplan.planner.search.solvers.matrix import FloatArray, IntArray
from fleetplan.planner.search.solvers.relaxation import Relaxation

FOLLOWING_TOLERANCE: Final = 1e-5
"""Largest excess over a whole number of a variable that only follows others. [variable units]"""

Completion = Callable[[IntArray], IntArray | None]
"""Function that makes values of the relaxation exact, given the whole ones among them."""


class Incumbent:
    """Best exact plan so far.

    Parameters
    ----------
    parts, relaxation
        Program in blocks, and its relaxation.
    complete : callable
        Called where columns are exact one by one but not together.
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
        self._exact = ExactColumns(parts, relaxation)
        self._follow = RowRepair(parts.program, (parts.block_of == MASTER) & ~relaxation.whole)
        self.selection: Selection | None = None
        self.values: IntArray | None = None
        self.objective: int | None = None

    def offer(self, selection: Selection) -> bool:
        """Keep a selection if it is exact and better than the incumbent; return whether it was kept.

        Neighbourhoods use the selection even if only `complete` made it exact.
        """
        # Rounding of loads costs far less than the difference of two plans.
        if self.objective is not None and selection.cost >= self.objective:
            return False
        values = self._whole_values(selection)
        if values is not None:
            # Blocks are rounded separately. The master's variables, such as load sent elsewhere, may then
            # miss the rows between blocks by a few units.
            values = self._follow.repaired(values)
        if values is None:
            if self.mended(selection):
                return False
            values = self._complete(self._rounded(selection))
            if values is None or not self._parts.program.holds(values):
                return False
        objective = self._parts.program.value(values)
        if self.objective is not None and objective >= self.objective:
            return False
        self.selection, self.values, self.objective = selection, values, objective
        return True

    def mended(self, selection: Selection) -> list[tuple[Column, FloatArray]]:
        """Return the selection's columns that lack replicas, with values that do not."""
        self._exact.find(selection.columns)
        found = ((column, self._exact.mended(column)) for column in selection.columns)
        return [(column, values) for column, values in found if values is not None]

    def _whole_values(self, selection: Selection) -> IntArray | None:
        """Return all variables from exact columns; None if a column has no exact values."""
        values = np.zeros(len(self._parts.program.cost), dtype=np.int64)
        self._exact.find(selection.columns)
        for column in selection.columns:
            exact = self._exact.values(column)
            if exact is None:
                return None
            values[self._parts.blocks[column.block].variables] = exact
        values[self._parts.master_variables] = self._master_values(selection)
        return values

    def _rounded(self, selection: Selection) -> IntArray:
        """Return all variables rounded; loads may then miss their rows by a unit."""
        values = np.zeros(len(self._parts.program.cost), dtype=np.int64)
        for column in selection.columns:
            variables = self._parts.blocks[column.block].variables
            values[variables] = np.round(column.values * self._relaxation.variable_scale[variables])
        values[self._parts.master_variables] = self._master_values(selection)
        return values

    def _master_values(self, selection: Selection) -> IntArray:
        unscaled = selection.master * self._relaxation.variable_scale[self._parts.master_variables]
        up = np.ceil(unscaled - FOLLOWING_TOLERANCE)
        return np.where(self._parts.following, up, np.round(unscaled)).astype(np.int64)
