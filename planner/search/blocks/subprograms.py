"""A program in which most variables are held: the part that is left to decide. Knows neither solver."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import scipy.sparse as sp

from fleetplan.planner.search.solvers.highs_jobs import Array, Indices, Mask, Rows

USED: Final = 1e-7
"""Value from which a solution uses a variable, and the slot that it decides. [scaled units]"""

FEW_STAGES: Final = 2
"""Rows of so many stages say what changes from one to the next; those of more limit a sum over many."""


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """What is left of a program to decide.

    Attributes
    ----------
    program : Rows
        Its rows and variables, the limits of the rows less what is held.
    variables, rows : Indices
        Where its variables and rows stand in the whole program.
    """

    program: Rows
    variables: Indices
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
        self._by_variable: sp.csc_array = program.rows.tocsc()

    def rows_of(self, variables: Indices) -> Mask:
        """Which rows hold any of some variables."""
        touched = np.zeros(self.program.rows.shape[0], dtype=bool)
        touched[self._by_variable[:, variables].indices] = True
        return touched

    def apart(self, variables: Indices, others: Indices) -> Mask:
        """Which of some variables have no row in common with any of the others."""
        together = abs(self._by_variable[:, variables][self.rows_of(others)]).sum(axis=0) > 0
        return ~np.asarray(together)

    def part(self, variables: Indices, held: Array, rows: Mask | None = None) -> Part:
        """The part that decides some variables while the others are held at their values.

        Parameters
        ----------
        variables : Indices
            What is decided.
        held : Array
            Values of all variables; those of `variables` are not looked at.
        rows : Mask, optional
            Rows that count; all that hold any of the variables without it.
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
    """Distinct numbers, in the order in which they first come."""
    return numbers[np.sort(np.unique(numbers, return_index=True)[1])]


def with_slack(program: Rows, cost: Array, elastic: Mask, penalty: Array) -> tuple[Rows, Array]:
    """A program in which some rows may pass their limits at a price.

    Parameters
    ----------
    program : Rows
        The program.
    cost : Array
        Of its variables.
    elastic : Mask
        Which of its rows.
    penalty : Array
        By row: cost of violating its limit by one. [objective units per scaled unit]

    Returns
    -------
    tuple[Rows, Array]
        The program with a variable more for each limit of these rows, and the costs.
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
    """What some values pass each limit by that `with_slack` has a variable for, in its order."""
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
    """How many stages the variables of each row belong to; variables of stage -1 belong to none."""
    entries = program.rows.tocoo()
    staged = stage[entries.coords[1]]
    inside = staged >= 0
    shape = (program.rows.shape[0], int(stage.max(initial=0)) + 1)
    once = sp.coo_array((inside[inside], (entries.coords[0][inside], staged[inside])), shape).tocsr()
    return np.diff(once.indptr).astype(np.int64)


class SlotPrices:
    """Says what each slot would gain or cost at some prices of rows.

    A slot serves by loads that need replicas: the row that ties them tells how many, and a load at its most
    costs its own reduced cost and that of its replicas. Where several rows tie it, the dearest counts: with
    limits on percentiles one counts replicas by the line that says what they carry, which cost nothing, and
    one says what a replica carries at most. By the first alone every slot seems worth looking at.

    Parameters
    ----------
    program : Rows
        The whole program.
    slot : Indices
        By variable: the slot that it decides; -1 for none.
    """

    def __init__(self, program: Rows, slot: Indices) -> None:
        # One that nothing decides where there are none: variables without a slot look up the last one.
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
        # The largest of a row are its replicas; what else is whole in it are indicator_variables.
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
        """Least price of each slot from the reduced costs of all variables; infinite without any load."""
        prices = np.full(self._count, np.inf)
        replicas = np.full(len(self._loads), -np.inf)
        np.maximum.at(replicas, self._load, reduced[self._replicas] * self._needed)
        full = reduced[self._loads] + replicas
        np.minimum.at(prices, self._slot, full)
        return prices
