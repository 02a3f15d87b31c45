"""Rows that rounding has broken are kept again by small changes of variables that are not whole."""

from __future__ import annotations

from typing import Final

import numpy as np

from fleetplan.planner.search.solvers.matrix import BoolArray, IntArray, Program

MOST_PASSES: Final = 20
"""Passes over broken rows: what one changes may break rows of other variables."""

LEAST_ROWS, ROWS_SHARE = 1000, 0.01
"""Broken rows of which more, and more than a share of all, are not broken by rounding."""


class RowRepair:
    """Repairs values of a program.

    Parameters
    ----------
    program : Program
        Its rows and bounds.
    free : BoolArray
        By variable: whether it may change.
    """

    def __init__(self, program: Program, free: BoolArray) -> None:
        self._program = program
        self._free = free
        self._most_rows = max(LEAST_ROWS, round(ROWS_SHARE * program.rows.shape[0]))

    def repaired(self, values: IntArray) -> IntArray | None:
        """Values that keep every row and bound, near some that nearly do; None where that is not enough."""
        program, values, changes = self._program, values.copy(), np.zeros(len(values), dtype=np.int64)
        for _ in range(MOST_PASSES):
            used = program.rows @ values
            broken = np.flatnonzero((used < program.row_lower) | (used > program.row_upper))
            if not len(broken):
                return values if program.holds(values) else None
            if len(broken) > self._most_rows:
                return None
            if not all(self._keep(row, values, changes) for row in broken.tolist()):
                return None
        return None

    def _keep(self, row: int, values: IntArray, changes: IntArray) -> bool:
        """Change as little as keeps a row; False if that is not enough.

        What was changed least often is changed first: two rows do not ask one variable for both for ever.
        """
        program, rows = self._program, self._program.rows
        entries = slice(rows.indptr[row], rows.indptr[row + 1])
        variables, coefficients = rows.indices[entries], rows.data[entries]
        used = int(coefficients @ values[variables])
        missing = max(int(program.row_lower[row]) - used, 0) or min(int(program.row_upper[row]) - used, 0)
        free = np.flatnonzero(self._free[variables])
        order = free[np.argsort(changes[variables[free]], kind="stable")]
        for variable, coefficient in zip(
            variables[order].tolist(), coefficients[order].tolist(), strict=True
        ):
            if not missing:
                break
            changes[variable] += 1
            change = _quotient(missing, coefficient)
            low, high = int(program.lower[variable]), int(program.upper[variable])
            change = min(max(change, low - int(values[variable])), high - int(values[variable]))
            values[variable] += change
            left = missing - change * coefficient
            missing = max(left, 0) if missing > 0 else min(left, 0)
        return not missing


def _quotient(amount: int, coefficient: int) -> int:
    """How often a coefficient goes into an amount, rounded away from zero."""
    often = -(-abs(amount) // abs(coefficient))
    return often if (amount > 0) == (coefficient > 0) else -often
