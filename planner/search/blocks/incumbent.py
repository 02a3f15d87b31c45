"""The best plan so far, in whole numbers that keep every row of the program exactly."""

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
        Asked where columns that are exact each are not so together.
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
        """Keep a selection if it is exact and better than the best; True if it was kept.

        The selection is kept for neighbourhoods even where only `complete` made it exact.
        """
        # The rounding of loads costs far less than what separates two plans.
        if self.objective is not None and selection.cost >= self.objective:
            return False
        values = self._whole_values(selection)
        if values is not None:
            # Blocks are rounded each by itself. What the master has beside them, such as the load that would
            # go elsewhere, is then a few units from what the rows between them ask for.
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
        """Columns of a selection that lack replicas, each with values that do not."""
        self._exact.find(selection.columns)
        found = ((column, self._exact.mended(column)) for column in selection.columns)
        return [(column, values) for column, values in found if values is not None]

    def _whole_values(self, selection: Selection) -> IntArray | None:
        """All variables from exact columns; None where a column has none."""
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
        """All variables rounded; loads may then miss their rows by a unit."""
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
