"""A program in which most variables are held: the part that is left to decide. Knows neither solver."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import scipy.sparse as sp

from fleetplan.planner.search.blocks.highs_jobs import Array, Indices, Mask, Rows

FEW_STAGES: Final = 2
"""Rows of so many stages say what changes from one to the next; those of more limit a sum over many."""


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """What is left of a program to decide.

    Attributes
    ----------
    program : Rows
        Its rows and columns, the limits of the rows less what is held.
    columns, rows : Indices
        Where its columns and rows stand in the whole program.
    """

    program: Rows
    columns: Indices
    rows: Indices


class Parts:
    """Cuts parts out of one program.

    Parameters
    ----------
    program : Rows
        The whole.
    """

    def __init__(self, program: Rows) -> None:
        self.program = program
        self._by_column: sp.csc_array = program.rows.tocsc()

    def rows_of(self, columns: Indices) -> Mask:
        """Which rows hold any of some columns."""
        touched = np.zeros(self.program.rows.shape[0], dtype=bool)
        touched[self._by_column[:, columns].indices] = True
        return touched

    def apart(self, columns: Indices, others: Indices) -> Mask:
        """Which of some columns have no row in common with any of the others."""
        together = abs(self._by_column[:, columns][self.rows_of(others)]).sum(axis=0) > 0
        return ~np.asarray(together)

    def part(self, columns: Indices, held: Array, rows: Mask | None = None) -> Part:
        """The part that decides some columns while the others are held at their values.

        Parameters
        ----------
        columns : Indices
            What is decided.
        held : Array
            Values of all columns; those of `columns` are not looked at.
        rows : Mask, optional
            Rows that count; all that hold any of the columns without it.
        """
        whole = self.program
        kept = np.flatnonzero(self.rows_of(columns) if rows is None else rows & self.rows_of(columns))
        others = held.copy()
        others[columns] = 0.0
        own: sp.csr_array = whole.rows[kept]
        used = own @ others
        program = Rows(
            rows=own[:, columns].tocsr(),
            row_lower=whole.row_lower[kept] - used,
            row_upper=whole.row_upper[kept] - used,
            lower=whole.lower[columns],
            upper=whole.upper[columns],
            whole=whole.whole[columns],
        )
        return Part(program, columns, kept)


def in_order(numbers: Indices) -> Indices:
    """Distinct numbers, in the order in which they first come."""
    return numbers[np.sort(np.unique(numbers, return_index=True)[1])]


def with_slack(program: Rows, cost: Array, elastic: Mask, penalty: float) -> tuple[Rows, Array]:
    """A program in which some rows may pass their limits at a price.

    Parameters
    ----------
    program : Rows
        The program.
    cost : Array
        Of its columns.
    elastic : Mask
        Which of its rows.
    penalty : float
        Cost of passing a limit by one. [objective units per scaled unit]

    Returns
    -------
    tuple[Rows, Array]
        The program with a column more for each limit of these rows, and the costs.
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
    return wide, np.concatenate([cost, np.full(more, penalty)])


def slack_of(program: Rows, elastic: Mask, values: Array) -> Array:
    """What some values pass each limit by that `with_slack` has a column for, in its order."""
    below, above = _elastic_limits(program, elastic)
    used = program.rows @ values
    short = np.maximum(program.row_lower[below] - used[below], 0.0)
    over = np.maximum(used[above] - program.row_upper[above], 0.0)
    return np.concatenate([short, over])


def _elastic_limits(program: Rows, elastic: Mask) -> tuple[Indices, Indices]:
    """Elastic rows with a lower limit, and those with an upper one."""
    return (
        np.flatnonzero(elastic & np.isfinite(program.row_lower)),
        np.flatnonzero(elastic & np.isfinite(program.row_upper)),
    )


def spans(program: Rows, stage: Indices) -> Indices:
    """How many stages the columns of each row belong to; columns of stage -1 belong to none."""
    entries = program.rows.tocoo()
    staged = stage[entries.coords[1]]
    inside = staged >= 0
    n_rows = program.rows.shape[0]
    pairs = np.unique(np.stack([entries.coords[0][inside], staged[inside]]), axis=1)
    return np.bincount(pairs[0], minlength=n_rows).astype(np.int64)


class SlotPrices:
    """Says what each slot would gain or cost at some prices of rows.

    A slot serves by loads that need replicas: the row that ties them tells how many, and a load at its most
    costs its own reduced cost and that of its replicas.

    Parameters
    ----------
    program : Rows
        The whole program.
    slot : Indices
        By column: the slot that it decides; -1 for none.
    """

    def __init__(self, program: Rows, slot: Indices) -> None:
        # One that nothing decides where there are none: columns without a slot look up the last one.
        self._count = int(slot.max(initial=0)) + 1
        entries = program.rows.tocoo()
        row, column = entries.coords
        size = np.abs(entries.data)
        n_rows = program.rows.shape[0]
        own = slot[column]
        least, most = np.full(n_rows, self._count, dtype=np.int64), np.full(n_rows, -1, dtype=np.int64)
        np.minimum.at(least, row, own)
        np.maximum.at(most, row, own)
        tied = (least == most)[row] & (own >= 0)
        whole = tied & program.whole[column]
        # The largest of a row are its replicas; what else is whole in it are choices.
        largest = np.zeros(n_rows)
        np.maximum.at(largest, row[whole], size[whole])
        replicas = np.full(n_rows, -1, dtype=np.int64)
        biggest = whole & (size == largest[row])
        replicas[row[biggest]] = column[biggest]
        loads = tied & ~program.whole[column] & (replicas[row] >= 0)
        self._load, self._replicas = column[loads], replicas[row[loads]]
        self._needed = size[loads] / largest[row[loads]]
        self._slot = own[loads]

    def at(self, reduced: Array) -> Array:
        """Least price of each slot from the reduced costs of all columns; infinite without any load."""
        prices = np.full(self._count, np.inf)
        full = reduced[self._load] + reduced[self._replicas] * self._needed
        np.minimum.at(prices, self._slot, full)
        return prices
