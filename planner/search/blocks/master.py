"""Restricted master: one column per block and the master's variables, within the linking rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import scipy.sparse as sp

from fleetplan.planner.search.blocks.columns import Column
from fleetplan.planner.search.blocks.split import Split
from fleetplan.planner.search.solvers.highs_jobs import Answer, Effort, Job, Rows
from fleetplan.planner.search.solvers.matrix import FloatArray, IntArray
from fleetplan.planner.search.solvers.relaxation import Relaxation

ROW_TOLERANCE: Final = 1e-6
"""Scaled violations below this are rounding. [largest coefficients of the row]"""


@dataclass(frozen=True, slots=True, eq=False)
class Selection:
    """One column per block, and scaled values of the master's variables."""

    columns: tuple[Column, ...]
    master: FloatArray
    cost: float


@dataclass(frozen=True, slots=True, eq=False)
class Scope:
    """Part of the program that a master decides; the rest stays as in the incumbent.

    Attributes
    ----------
    blocks : IntArray
        Blocks that choose a column.
    variables : IntArray
        Positions of the master's free variables.
    rows : IntArray
        Positions of the linking rows that contain them.
    row_lower, row_upper : FloatArray
        Limits of these rows, less the use of the rest.
    """

    blocks: IntArray
    variables: IntArray
    rows: IntArray
    row_lower: FloatArray
    row_upper: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class PriceRange:
    """Bounds on the prices of linking rows. [objective units per scaled unit]"""

    lower: FloatArray
    upper: FloatArray

    @classmethod
    def of_penalty(cls, penalty: float, n_rows: int) -> PriceRange:
        """Return a range of prices up to a penalty, in either direction."""
        return cls(np.full(n_rows, -penalty), np.full(n_rows, penalty))

    def __and__(self, other: PriceRange) -> PriceRange:
        """Return the intersection of two ranges that overlap."""
        return PriceRange(np.maximum(self.lower, other.lower), np.minimum(self.upper, other.upper))


class Master:
    """Builder of master programs over columns.

    Parameters
    ----------
    parts, relaxation : Split, Relaxation
        Program in blocks, and its relaxation.
    cost : FloatArray
        Scaled costs of all variables.
    """

    def __init__(self, parts: Split, relaxation: Relaxation, cost: FloatArray) -> None:
        variables, linking = parts.master_variables, parts.linking_rows
        self._parts = parts
        self.cost: FloatArray = cost[variables]
        self.lower, self.upper = relaxation.lower[variables], relaxation.upper[variables]
        # Variables that follow columns are whole wherever columns are.
        self.whole = relaxation.whole[variables] & ~parts.following
        self.rows: sp.csr_array = relaxation.rows[linking][:, variables].tocsr()
        self.row_lower, self.row_upper = relaxation.row_lower[linking], relaxation.row_upper[linking]

    def everything(self) -> Scope:
        """Return the scope of all blocks and all master variables."""
        return Scope(
            np.arange(len(self._parts.blocks), dtype=np.int64),
            np.arange(len(self.cost), dtype=np.int64),
            np.arange(len(self.row_lower), dtype=np.int64),
            self.row_lower,
            self.row_upper,
        )

    def around(self, selection: Selection, blocks: IntArray, touched: IntArray) -> Scope:
        """Return the scope of some blocks and of the rows they share.

        Parameters
        ----------
        selection : Selection
            Plan that the rest keeps.
        blocks : IntArray
            Blocks to reoptimise.
        touched : IntArray
            Positions of linking rows that they may use.
        """
        variables = np.unique(self.rows[touched].indices).astype(np.int64)
        shared = np.flatnonzero(np.diff(self.rows[:, variables].tocsr().indptr))
        rows = np.union1d(touched, shared).astype(np.int64)
        free = np.zeros(len(self._parts.blocks), dtype=bool)
        free[blocks] = True
        fixed = np.where(np.isin(np.arange(len(self.cost)), variables), 0.0, selection.master)
        used = self.rows @ fixed
        for column in selection.columns:
            if not free[column.block]:
                used[column.entries[0]] += column.entries[1]
        return Scope(
            blocks, variables, rows, self.row_lower[rows] - used[rows], self.row_upper[rows] - used[rows]
        )

    def integer_job(
        self, scope: Scope, columns: Sequence[Column], effort: Effort, selection: Selection | None
    ) -> Job:
        """Return the program that chooses one column per block of a scope, starting from a selection."""
        rows, cost = self._rows(scope, columns)
        effort = replace(effort, firm=True)
        if selection is None:
            return Job(rows, cost, effort)
        taken = [float(selection.columns[column.block] is column) for column in columns]
        return Job(rows, cost, effort, np.concatenate([taken, selection.master[scope.variables]]))

    def linear_job(
        self,
        scope: Scope,
        columns: Sequence[Column],
        prices: PriceRange,
        master: FloatArray | None = None,
    ) -> Job:
        """Return the LP that mixes the columns of each block of a scope; limits may be violated at a price.

        Parameters
        ----------
        scope : Scope
            Part to decide.
        columns : Sequence[Column]
            At least one column per block of the scope.
        prices : PriceRange
            Range of the dual prices of the scope's linking rows: the cost of violating a scaled limit by one.
        master : FloatArray, optional
            Values at which the scope's whole variables are fixed.
        """
        rows, cost = self._rows(scope, columns)
        n_rows, n_variables = rows.rows.shape
        n_linking = len(scope.rows)
        lower, upper = rows.lower.copy(), rows.upper.copy()
        if master is not None:
            held = np.flatnonzero(rows.whole[len(columns) :]) + len(columns)
            lower[held] = upper[held] = master[scope.variables][held - len(columns)]
        slack = sp.eye_array(n_rows, n_linking).tocsr()
        wide = Rows(
            rows=sp.hstack([rows.rows, slack, -slack], format="csr"),
            row_lower=rows.row_lower,
            row_upper=rows.row_upper,
            lower=np.concatenate([lower, np.zeros(2 * n_linking)]),
            upper=np.concatenate([upper, np.full(2 * n_linking, np.inf)]),
            whole=np.zeros(n_variables + 2 * n_linking, dtype=bool),
        )
        return Job(wide, np.concatenate([cost, prices.upper, -prices.lower]), None)

    def column_rows(self, columns: Sequence[Column]) -> tuple[sp.csr_array, FloatArray]:
        """Return the columns' entries in the linking rows and in one row per block, and their costs."""
        rows, cost = self._rows(self.everything(), columns)
        return rows.rows[:, : len(columns)].tocsr(), cost[: len(columns)]

    def _rows(self, scope: Scope, columns: Sequence[Column]) -> tuple[Rows, FloatArray]:
        """Return the linking rows of a scope, and one row per block that chooses its column."""
        position = np.full(len(self.row_lower), -1)
        position[scope.rows] = np.arange(len(scope.rows))
        number = np.full(len(self._parts.blocks), -1)
        number[scope.blocks] = np.arange(len(scope.blocks)) + len(scope.rows)
        n_rows = len(scope.rows) + len(scope.blocks)
        block = np.array([column.block for column in columns], dtype=np.int64)
        starts = np.cumsum([0, *(len(column.entries[0]) for column in columns)])
        nothing = np.zeros(0, dtype=np.int64)
        linked = position[np.concatenate([nothing, *(column.entries[0] for column in columns)])]
        added = np.concatenate([np.zeros(0), *(column.entries[1] for column in columns)])
        # Each column has a 1 in the row of its block, after its entries in linking rows.
        indices = np.insert(linked, starts[1:], number[block])
        data = np.insert(added, starts[1:], 1.0)
        starts += np.arange(len(starts))
        chosen = sp.csc_array((data, indices, starts), shape=(n_rows, len(columns)))
        own: sp.csr_array = self.rows[scope.rows][:, scope.variables]
        none = sp.csr_array((len(scope.blocks), len(scope.variables)))
        one = np.ones(len(scope.blocks))
        rows = Rows(
            rows=sp.hstack([chosen, sp.vstack([own, none])], format="csr"),
            row_lower=np.concatenate([scope.row_lower, one]),
            row_upper=np.concatenate([scope.row_upper, one]),
            lower=np.concatenate([np.zeros(len(columns)), self.lower[scope.variables]]),
            upper=np.concatenate([np.ones(len(columns)), self.upper[scope.variables]]),
            whole=np.concatenate([np.ones(len(columns), dtype=bool), self.whole[scope.variables]]),
        )
        cost = np.concatenate([[column.cost for column in columns], self.cost[scope.variables]])
        return rows, cost

    def chosen(
        self, scope: Scope, columns: Sequence[Column], answer: Answer, before: Selection | None
    ) -> Selection | None:
        """Return the selection of an integer master, with the rest of the selection before."""
        if answer.values is None:
            return None
        picked = dict(zip((p.block for p in before.columns), before.columns, strict=True)) if before else {}
        for index in np.flatnonzero(answer.values[: len(columns)] > 0.5).tolist():
            picked[columns[index].block] = columns[index]
        master = np.zeros(len(self.cost)) if before is None else before.master.copy()
        master[scope.variables] = answer.values[len(columns) :]
        return self.selection([picked[block] for block in range(len(self._parts.blocks))], master)

    def holds(self, selection: Selection) -> bool:
        """Return whether a selection satisfies the linking rows, within floating-point tolerances."""
        used = self.rows @ selection.master
        for column in selection.columns:
            used[column.entries[0]] += column.entries[1]
        above, below = used - self.row_upper, self.row_lower - used
        return bool(max(above.max(initial=0.0), below.max(initial=0.0)) <= ROW_TOLERANCE)

    def selection(self, columns: Sequence[Column], master: FloatArray) -> Selection:
        """Return a selection with its cost."""
        cost = sum(column.cost for column in columns) + float(self.cost @ master)
        return Selection(tuple(columns), master, cost)
