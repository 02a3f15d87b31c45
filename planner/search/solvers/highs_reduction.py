"""Programs for HiGHS without what is decided: fixed variables, and rows with at most one other variable.

HiGHS's own presolve is off for integer programs (benchmarks/highs-presolve.md). Most of what it gains
is this.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, cast

import numpy as np

from fleetplan.planner.search.solvers.highs_jobs import Array, CompressedRows, Indices, Mask, Rows

if TYPE_CHECKING:
    import scipy.sparse as sp

MOST_PASSES: Final = 5
"""Largest number of passes: each may fix more variables."""

ROUNDING: Final = 1e-6
"""Amount by which a limit may be missed, and by which the bound of an integer gives way before it is rounded:
the reduction never excludes what HiGHS would allow. [scaled units]"""


@dataclass(frozen=True, slots=True, eq=False)
class ReducedRows:
    """Program without decided variables and rows.

    Attributes
    ----------
    rows : Rows
        What is left; one variable at least.
    kept : Indices
        Its variables, by their positions in the whole program.
    fixed : Array
        Values of the other variables of the whole program; 0 for those kept.
    """

    rows: Rows
    kept: Indices
    fixed: Array

    def constant(self, cost: Array) -> float:
        """Return the cost of the variables that are decided. [objective units]"""
        return float(cost @ self.fixed)

    def whole(self, values: Array) -> Array:
        """Return the values of all variables."""
        found = self.fixed.copy()
        found[self.kept] = values
        return found


def reduced_rows(rows: Rows) -> ReducedRows | None:
    """Return a program without fixed variables and rows of one variable; None if limits contradict.

    Parameters
    ----------
    rows : Rows
        Any program, with or without scipy.
    """
    matrix = _Entries.of(rows)
    lower, upper = rows.lower, rows.upper
    open_rows = np.ones(len(rows.row_lower), dtype=bool)
    for _ in range(MOST_PASSES):
        if (lower > upper + ROUNDING).any():
            return None
        upper = np.maximum(lower, upper)
        live = matrix.live(lower < upper)
        alone = open_rows & (matrix.count(live) == 1)
        if not alone.any():
            break
        open_rows &= ~alone
        lower, upper = _bounded(rows, matrix, live & alone[matrix.row], (lower, upper))
    if (lower > upper + ROUNDING).any():
        return None
    upper = np.maximum(lower, upper)
    return _rest(rows, matrix, open_rows, lower, upper)


@dataclass(frozen=True, slots=True, eq=False)
class _Entries:
    """Coefficients of a program, with the row and the variable of each."""

    row: Indices
    variable: Indices
    coefficient: Array
    rows: int

    @classmethod
    def of(cls, rows: Rows) -> _Entries:
        matrix = rows.rows
        row = np.repeat(np.arange(len(rows.row_lower)), np.diff(matrix.indptr))
        return cls(row, matrix.indices.astype(np.int64), matrix.data, len(rows.row_lower))

    def live(self, is_open: Mask) -> Mask:
        """Return which coefficients count: those of variables that are open."""
        live: Mask = is_open[self.variable] & (self.coefficient != 0)
        return live

    def count(self, picked: Mask) -> Indices:
        """Count the picked coefficients of each row."""
        return np.bincount(self.row[picked], minlength=self.rows)

    def used(self, values: Array) -> Array:
        """Return what values of the variables add to each row."""
        terms = self.coefficient * values[self.variable]
        return np.bincount(self.row, weights=terms, minlength=self.rows).astype(float)


def _bounded(rows: Rows, matrix: _Entries, alone: Mask, bounds: tuple[Array, Array]) -> tuple[Array, Array]:
    """Return the bounds of variables with those that rows of one variable give."""
    lower, upper = bounds[0].copy(), bounds[1].copy()
    row, variable, coefficient = matrix.row[alone], matrix.variable[alone], matrix.coefficient[alone]
    decided = matrix.used(np.where(lower < upper, 0.0, lower))[row]
    one, other = (rows.row_lower[row] - decided) / coefficient, (rows.row_upper[row] - decided) / coefficient
    least, most = np.where(coefficient > 0, one, other), np.where(coefficient > 0, other, one)
    whole = rows.whole[variable]
    np.maximum.at(lower, variable, np.where(whole, np.ceil(least - ROUNDING), least))
    np.minimum.at(upper, variable, np.where(whole, np.floor(most + ROUNDING), most))
    return lower, upper


def _rest(rows: Rows, matrix: _Entries, open_rows: Mask, lower: Array, upper: Array) -> ReducedRows | None:
    """Return the open variables in the open rows, with limits less what is decided."""
    is_open = lower < upper
    # HiGHS has no answer for a program without variables.
    is_open[:1] |= not is_open.any()
    live = matrix.live(is_open)
    fixed = np.where(is_open, 0.0, lower)
    decided = matrix.used(fixed)
    row_lower, row_upper = rows.row_lower - decided, rows.row_upper - decided
    counts = matrix.count(live)
    nothing_left = open_rows & (counts == 0)
    if (row_lower[nothing_left] > ROUNDING).any() or (row_upper[nothing_left] < -ROUNDING).any():
        return None
    kept_rows = np.flatnonzero(open_rows & (counts > 0))
    picked = live & open_rows[matrix.row]
    kept = np.flatnonzero(is_open)
    place = np.cumsum(is_open) - 1
    left = CompressedRows(
        shape=(len(kept_rows), len(kept)),
        indptr=np.concatenate([[0], np.cumsum(counts[kept_rows])]),
        indices=place[matrix.variable[picked]],
        data=matrix.coefficient[picked],
    )
    return ReducedRows(
        Rows(
            rows=cast("sp.csr_array", left),
            row_lower=row_lower[kept_rows],
            row_upper=row_upper[kept_rows],
            lower=lower[kept],
            upper=upper[kept],
            whole=rows.whole[kept],
        ),
        kept,
        fixed,
    )
