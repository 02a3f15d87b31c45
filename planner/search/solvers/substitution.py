"""Substitute variables bounded below by a sum: write them as the sum plus an excess, and drop the row.

A replica carries at most its rate of load, `load <= rate * replicas`. If replicas may be fractional, their
excess over that is as good a variable as their number, and the row becomes its lower bound. HiGHS's presolve
keeps such rows. For a team's supply program, 1,100 of 2,500 rows remain, and it takes 3.4 to 4.1 s of a core
instead of 5.7 to 5.8 s.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse as sp

from fleetplan.planner.search.solvers.highs_jobs import Rows
from fleetplan.planner.search.solvers.matrix import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Substitution:
    """Program in which some variables are replaced by their excess over a sum of others.

    Upper bounds of these variables are dropped, so it is a relaxation of the original.

    Attributes
    ----------
    rows : Rows
        The program.
    cost : FloatArray
        Costs of its variables.
    sums : csr_array
        Lower bound of each substituted variable as a sum; zero rows for the others.
    """

    rows: Rows
    cost: FloatArray
    sums: sp.csr_array

    def values(self, found: FloatArray) -> FloatArray:
        """Return the values of the original variables."""
        values: FloatArray = found + self.sums @ found
        return values

    def found(self, values: FloatArray) -> FloatArray:
        """Return the values of its variables, from those of the original ones."""
        found: FloatArray = values - self.sums @ values
        return found


def substitute(rows: Rows, cost: FloatArray) -> Substitution:
    """Substitute every continuous variable that a row bounds below by a sum of continuous ones.

    Parameters
    ----------
    rows : Rows
        The program.
    cost : FloatArray
        Costs of its variables.
    """
    row, variable = _bounding(rows)
    matrix = rows.rows
    chosen = matrix[row].tocoo()
    others = chosen.col != variable[chosen.row]
    scale = np.zeros(len(row))
    scale[chosen.row[~others]] = chosen.data[~others]
    sums = sp.csr_array(
        (
            -chosen.data[others] / scale[chosen.row[others]],
            (variable[chosen.row[others]], chosen.col[others]),
        ),
        shape=(matrix.shape[1], matrix.shape[1]),
    )
    kept = np.ones(matrix.shape[0], dtype=bool)
    kept[row] = False
    left = matrix[np.flatnonzero(kept)]
    upper = rows.upper.copy()
    upper[variable] = np.inf
    program = replace(
        rows,
        rows=(left + left @ sums).tocsr(),
        row_lower=rows.row_lower[kept],
        row_upper=rows.row_upper[kept],
        upper=upper,
    )
    return Substitution(program, cost + sums.T @ cost, sums)


def _bounding(rows: Rows) -> tuple[IntArray, IntArray]:
    """Return rows `sum - scale * variable <= 0`, one per variable, none of which is in another's sum."""
    entries = rows.rows.tocoo()
    row, column = (each.astype(np.int64) for each in entries.coords)
    n_rows, n_variables = rows.rows.shape
    negative = entries.data < 0
    above = (rows.row_upper == 0) & np.isneginf(rows.row_lower)
    above &= np.bincount(row[negative], minlength=n_rows) == 1
    above &= np.bincount(row, rows.whole[column], minlength=n_rows) == 0
    # With values below zero, a sum might be less than its variable may be.
    above &= np.bincount(row, rows.lower[column] != 0, minlength=n_rows) == 0
    holding = negative & above[row]
    variable, first = np.unique(column[holding], return_index=True)
    chosen = row[holding][first]
    bounded = np.zeros(n_variables, dtype=bool)
    bounded[variable] = True
    mine = np.zeros(n_rows, dtype=bool)
    mine[chosen] = True
    free = ~_sums_hold(bounded, row, column, ~negative & mine[row], n_rows)[chosen]
    return chosen[free], variable[free].astype(np.int64)


def _sums_hold(
    bounded: BoolArray, row: IntArray, column: IntArray, in_sum: BoolArray, n_rows: int
) -> BoolArray:
    """Return the rows whose sums contain a variable bounded by another row."""
    found = np.zeros(n_rows, dtype=bool)
    found[row[in_sum & bounded[column]]] = True
    return found
