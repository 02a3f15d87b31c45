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
    part_of_row : IntArray, optional
        By row: number of its part. Rows of different parts have no variable in common, and one that cannot
        be kept is no matter to other parts. All rows are one part without it.
    """

    def __init__(self, program: Program, free: BoolArray, part_of_row: IntArray | None = None) -> None:
        self._program = program
        self._free = free
        n_rows = program.rows.shape[0]
        self._part = np.zeros(n_rows, dtype=np.int64) if part_of_row is None else part_of_row
        size = np.bincount(self._part, minlength=1)
        self._most_rows = np.maximum(LEAST_ROWS, np.round(ROWS_SHARE * size))

    def repaired(self, values: IntArray) -> IntArray | None:
        """Values that keep every row and bound, near some that nearly do; None where that is not enough."""
        found, failed = self.repaired_parts(values)
        return None if failed.any() else found

    def repaired_parts(self, values: IntArray) -> tuple[IntArray, BoolArray]:
        """The same part by part.

        Returns
        -------
        tuple[IntArray, BoolArray]
            Values, and by part whether that is not enough: its values are not to be used.
        """
        program, values, changes = self._program, values.copy(), np.zeros(len(values), dtype=np.int64)
        failed = np.zeros(len(self._most_rows), dtype=bool)
        outside = (values < program.lower) | (values > program.upper)
        if outside.any():
            failed[self._part[abs(program.rows) @ outside > 0]] = True
        for _ in range(MOST_PASSES):
            broken = self._broken(values, failed)
            if not len(broken):
                return values, failed
            failed |= np.bincount(self._part[broken], minlength=len(failed)) > self._most_rows
            for row, part in zip(broken.tolist(), self._part[broken].tolist(), strict=True):
                if not failed[part] and not self._keep(row, values, changes):
                    failed[part] = True
        failed[self._part[self._broken(values, failed)]] = True
        return values, failed

    def _broken(self, values: IntArray, failed: BoolArray) -> IntArray:
        """Rows that values break, but those of some parts."""
        used = self._program.rows @ values
        broken = (used < self._program.row_lower) | (used > self._program.row_upper)
        found: IntArray = np.flatnonzero(broken & ~failed[self._part])
        return found

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
