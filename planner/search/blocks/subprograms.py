"""Parts of a program in which most variables are fixed. Independent of the solvers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import scipy.sparse as sp

from fleetplan.planner.search.solvers.highs_jobs import Array, Indices, Mask, Rows

USED: Final = 1e-7
"""Value above which a solution uses a variable, and the slot it decides. [scaled units]"""

FEW_STAGES: Final = 2
"""Largest number of stages in a row that joins neighbouring stages; rows of more stages limit a sum."""


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Undecided part of a program.

    Attributes
    ----------
    program : Rows
        Its rows and variables; limits of rows less the fixed values.
    variables, rows : Indices
        Positions of its variables and rows in the whole program.
    """

    program: Rows
    variables: Indices
    rows: Indices


class Parts:
    """Extracts parts of one program.

    Parameters
    ----------
    program : Rows
        Whole program.
    """

    def __init__(self, program: Rows) -> None:
        self.program = program
        self._by_variable: sp.csc_array = program.rows.tocsc()

    def rows_of(self, variables: Indices) -> Mask:
        """Return which rows contain any of these variables."""
        touched = np.zeros(self.program.rows.shape[0], dtype=bool)
        touched[self._by_variable[:, variables].indices] = True
        return touched

    def apart(self, variables: Indices, others: Indices) -> Mask:
        """Return which variables share no row with the others."""
        together = abs(self._by_variable[:, variables][self.rows_of(others)]).sum(axis=0) > 0
        return ~np.asarray(together)

    def part(self, variables: Indices, held: Array, rows: Mask | None = None) -> Part:
        """Return the part that decides some variables, with the others fixed.

        Parameters
        ----------
        variables : Indices
            Variables to decide.
        held : Array
            Values of all variables; ignored for `variables`.
        rows : Mask, optional
            Rows to keep; all that contain any of the variables if missing.
        """
        whole = self.program
        kept = np.flatnonzero(self.rows_of(variables) if rows is None else rows & self.rows_of(variables))
        others = held.copy()
        others[variables] = 0.0
        used = whole.rows[kept] @ others
        own = whole.among(variables, kept)
        left = replace(own, row_lower=own.row_lower - used, row_upper=own.row_upper - used)
        return Part(left, variables, kept)


def in_order(numbers: Indices) -> Indices:
    """Return the distinct numbers in the order of first occurrence."""
    return numbers[np.sort(np.unique(numbers, return_index=True)[1])]


def with_slack(program: Rows, cost: Array, elastic: Mask, penalty: Array) -> tuple[Rows, Array]:
    """Return a program in which some rows may violate their limits at a penalty.

    Parameters
    ----------
    program : Rows
        The program.
    cost : Array
        Costs of its variables.
    elastic : Mask
        Rows that may be violated.
    penalty : Array
        Penalty by row of violating its limit by one. [objective units per scaled unit]

    Returns
    -------
    tuple[Rows, Array]
        The program with one slack variable per limit of these rows, and its costs.
    """
    n_rows = program.rows.shape[0]
    below, above = _elastic_limits(program, elastic)
    where, more = np.concatenate([below, above]), len(below) + len(above)
    signs = np.concatenate([np.ones(len(below)), -np.ones(len(above))])
    slack = sp.csr_array((signs, (where, np.arange(more))), shape=(n_rows, more))
    wide = Rows(
        rows=sp.hstack([program.rows, slack], format="csr"),
        row_lower=program.row_lower,
        row_upper=program.row_upper,
        lower=np.concatenate([program.lower, np.zeros(more)]),
        upper=np.concatenate([program.upper, np.full(more, np.inf)]),
        whole=np.concatenate([program.whole, np.zeros(more, dtype=bool)]),
    )
    return wide, np.concatenate([cost, penalty[where]])


def slack_of(program: Rows, elastic: Mask, values: Array) -> Array:
    """Return the values of the slack variables of `with_slack`, in its order."""
    below, above = _elastic_limits(program, elastic)
    used = program.rows @ values
    short = np.maximum(program.row_lower[below] - used[below], 0.0)
    over = np.maximum(used[above] - program.row_upper[above], 0.0)
    return np.concatenate([short, over])


def _elastic_limits(program: Rows, elastic: Mask) -> tuple[Indices, Indices]:
    """Return the elastic rows with a lower limit, and those with an upper limit."""
    return (
        np.flatnonzero(elastic & np.isfinite(program.row_lower)),
        np.flatnonzero(elastic & np.isfinite(program.row_upper)),
    )


def spans(program: Rows, stage: Indices) -> Indices:
    """Count the stages of each row's variables; stage -1 counts as none."""
    entries = program.rows.tocoo()
    staged = stage[entries.coords[1]]
    inside = staged >= 0
    shape = (program.rows.shape[0], int(stage.max(initial=0)) + 1)
    once = sp.coo_array((inside[inside], (entries.coords[0][inside], staged[inside])), shape).tocsr()
    return np.diff(once.indptr).astype(np.int64)


class SlotPrices:
    """Prices of slots: what each would cost or save at prices of the rows.

    Loads of a slot need replicas, as the row that ties them states; a full load costs its own reduced cost
    plus that of its replicas. If several rows tie it, the most expensive counts. Limits on percentiles tie
    loads by two rows: one through the line that limits a replica's load, which costs nothing, and one through
    the largest load of a replica. By the first alone, every slot would seem worth opening.

    Parameters
    ----------
    program : Rows
        Whole program.
    slot : Indices
        Slot by variable; -1 for none.
    """

    def __init__(self, program: Rows, slot: Indices) -> None:
        # One dummy slot if there are none: variables without a slot index the last one.
        self._count = int(slot.max(initial=0)) + 1
        entries = program.rows.tocoo()
        row, variable = entries.coords
        size = np.abs(entries.data)
        n_rows = program.rows.shape[0]
        own = slot[variable]
        filled = np.diff(program.rows.indptr) > 0
        begins = program.rows.indptr[:-1][filled]
        alike, largest = np.zeros(n_rows, dtype=bool), np.zeros(n_rows)
        alike[filled] = np.minimum.reduceat(own, begins) == np.maximum.reduceat(own, begins)
        tied = alike[row] & (own >= 0)
        whole = tied & program.whole[variable]
        # The largest coefficients of a row are its replicas'; its other whole variables are indicators.
        largest[filled] = np.maximum.reduceat(np.where(whole, size, 0.0), begins)
        replicas = np.full(n_rows, -1, dtype=np.int64)
        biggest = whole & (size == largest[row])
        replicas[row[biggest]] = variable[biggest]
        tying = tied & ~program.whole[variable] & (replicas[row] >= 0)
        self._loads, self._load = np.unique(variable[tying], return_inverse=True)
        self._replicas = replicas[row[tying]]
        self._needed = size[tying] / largest[row[tying]]
        self._slot = slot[self._loads]

    def at(self, reduced: Array) -> Array:
        """Return each slot's least price from the reduced costs of all variables; infinite without loads."""
        prices = np.full(self._count, np.inf)
        replicas = np.full(len(self._loads), -np.inf)
        np.maximum.at(replicas, self._load, reduced[self._replicas] * self._needed)
        full = reduced[self._loads] + replicas
        np.minimum.at(prices, self._slot, full)
        return prices
