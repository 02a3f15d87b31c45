"""Repair of rows that rounding broke, by small changes of continuous variables."""

from __future__ import annotations

from typing import Final

import numpy as np

from fleetplan.planner.search.solvers.matrix import BoolArray, IntArray, Program

MOST_PASSES: Final = 20
"""Passes over broken rows: a repair may break other rows."""

LEAST_ROWS, ROWS_SHARE = 1000, 0.01
"""Broken rows above which, and share of all rows above which, rounding is not the cause."""


class RowRepair:
    """Repairs values of a program.

    Parameters
    ----------
    program : Program
        Rows and bounds.
    free : BoolArray
        Which variables may change.
    part_of_row : IntArray, optional
        Part number by row. Rows of different parts share no variable, and a row that cannot be repaired fails
        its own part only. One part if missing.
    """

    def __init__(self, program: Program, free: BoolArray, part_of_row: IntArray | None = None) -> None:
        self._program = program
        self._free = free
        n_rows = program.rows.shape[0]
        self._part = np.zeros(n_rows, dtype=np.int64) if part_of_row is None else part_of_row
        size = np.bincount(self._part, minlength=1)
        self._most_rows = np.maximum(LEAST_ROWS, np.round(ROWS_SHARE * size))

    def repaired(self, values: IntArray) -> IntArray | None:
        """Return values that satisfy all rows and bounds, near these; None if that fails."""
        found, failed = self.repaired_parts(values)
        return None if failed.any() else found

    def repaired_parts(self, values: IntArray) -> tuple[IntArray, BoolArray]:
        """Repair part by part.

        Returns
        -------
        tuple[IntArray, BoolArray]
            Values, and by part whether the repair failed; values of failed parts are unusable.
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
        """Return the broken rows of parts that have not failed."""
        used = self._program.rows @ values
        broken = (used < self._program.row_lower) | (used > self._program.row_upper)
        found: IntArray = np.flatnonzero(broken & ~failed[self._part])
        return found

    def _keep(self, row: int, values: IntArray, changes: IntArray) -> bool:
        """Change a row's variables as little as needed; return False if that fails.

        Variables changed least often come first, so that two rows do not alternate over one variable.
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
    """Divide an amount by a coefficient, rounding away from zero."""
    often = -(-abs(amount) // abs(coefficient))
    return often if (amount > 0) == (coefficient > 0) else -often
