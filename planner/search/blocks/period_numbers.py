"""Period number of every variable and row of a program."""

from __future__ import annotations

from typing import Final

import numpy as np
import scipy.sparse as sp

from fleetplan.planner.search.blocks.roles import NONE, VariableRoles
from fleetplan.planner.search.solvers.matrix import IntArray

SHARED: Final = -1
"""Number of variables of several periods, and of rows with only such variables."""

JOINING: Final = -2
"""Number of rows that join several periods."""


def periods_of(roles: VariableRoles, rows: sp.csr_array) -> tuple[IntArray, IntArray]:
    """Return the period of every variable and row.

    A variable outside all moments belongs to the only period whose rows contain it.
    """
    moment = np.where(roles.moment != NONE, roles.moment, roles.home)
    placed = moment != NONE
    period = np.full(len(moment), SHARED, dtype=np.int64)
    period[placed] = roles.period_of[moment[placed]]
    entries = rows.tocoo()
    row, variable = (each.astype(np.int64) for each in entries.coords)
    least, most = _extremes(row, period[variable], rows.shape[0])
    # A variable without a moment, contained in one period's rows and in no joining row, is that period's own.
    inside = most[row] >= 0
    low, high = _extremes(variable[inside], least[row][inside], rows.shape[1])
    _, highest = _extremes(variable[inside], most[row][inside], rows.shape[1])
    own = ~placed & (highest >= 0) & (low == high) & (high == highest)
    period[own] = highest[own]
    least, most = _extremes(row, period[variable], rows.shape[0])
    of_row = np.where(most < 0, SHARED, np.where(least == most, most, JOINING))
    return period, of_row.astype(np.int64)


def _extremes(group: IntArray, number: IntArray, count: int) -> tuple[IntArray, IntArray]:
    """Return the least and the largest nonnegative number of each group; -1 if it has none."""
    counted = number >= 0
    large = np.iinfo(np.int64).max
    least, most = np.full(count, large), np.full(count, -1)
    np.minimum.at(least, group[counted], number[counted])
    np.maximum.at(most, group[counted], number[counted])
    return np.where(least == large, -1, least), most
