"""Columns of the restricted master: solutions of a block found by pricing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import scipy.sparse as sp

from fleetplan.planner.search.blocks.split import Block, Split
from fleetplan.planner.search.solvers.matrix import FloatArray, IntArray
from fleetplan.planner.search.solvers.relaxation import Relaxation

SAME_COLUMN_DECIMALS = 4
"""Decimals to which the scaled values of equal columns agree."""

WITHIN = 1e-6
"""Bound violation that a stored column may have, as in HiGHS. [scaled units]"""


@dataclass(slots=True, eq=False)
class Column:
    """Column of the restricted master: one solution of a block.

    Attributes
    ----------
    block : int
        Block number.
    values : FloatArray
        Scaled values of the block's variables; loads are continuous.
    cost : float
        Cost of its variables. [objective units]
    entries : tuple[IntArray, FloatArray]
        Positions of linking rows that it uses, and its scaled entries there.
    """

    block: int
    values: FloatArray
    cost: float
    entries: tuple[IntArray, FloatArray]

    def reduced_cost(self, duals: FloatArray) -> float:
        """Return the reduced cost at dual prices of all linking rows. [objective units]"""
        rows, added = self.entries
        return self.cost - float(duals[rows] @ added)


@dataclass(slots=True, eq=False)
class ColumnPool:
    """Pool of all columns found.

    Parameters
    ----------
    parts, relaxation, cost
        Program in blocks, its relaxation, and the scaled costs of its variables.
    """

    parts: Split
    relaxation: Relaxation
    cost: FloatArray
    columns: list[Column] = field(default_factory=list)
    _seen: dict[tuple[int, bytes], Column] = field(default_factory=dict)
    _links: list[tuple[IntArray, sp.csc_array]] = field(default_factory=list)
    _of_block: list[list[Column]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._of_block = [[] for _ in self.parts.blocks]
        linking = self.relaxation.rows[self.parts.linking_rows].tocsc()
        self._links = [_touched(linking[:, block.variables]) for block in self.parts.blocks]

    @property
    def link_bytes(self) -> int:
        """Return the memory of the blocks' entries in linking rows. [B]"""
        return sum(
            rows.nbytes + entries.data.nbytes + entries.indices.nbytes + entries.indptr.nbytes
            for rows, entries in self._links
        )

    def linking_rows_of(self, block: int) -> IntArray:
        """Return the positions of the linking rows that a block uses."""
        return self._links[block][0]

    def add(self, block: int, values: FloatArray) -> bool:
        """Store a column; return whether it is new."""
        before = len(self.columns)
        self.known(block, values)
        return len(self.columns) > before

    def known(self, block: int, values: FloatArray) -> Column:
        """Return the stored column with these scaled values, adding it if new."""
        key = _column_key(block, values)
        if key not in self._seen:
            rows, entries = self._links[block]
            added = entries @ values
            used = np.flatnonzero(np.abs(added) > 0)
            own = self.parts.blocks[block].variables
            column = Column(block, values, float(self.cost[own] @ values), (rows[used], added[used]))
            self._seen[key] = column
            self.columns.append(column)
            self._of_block[block].append(column)
        return self._seen[key]

    def replace(self, column: Column, values: FloatArray) -> None:
        """Replace an inexact column, now and whenever it is found again."""
        key = _column_key(column.block, column.values)
        # Two simultaneous masters may both have chosen it.
        if self._seen[key] is not column:
            return
        self._seen[key] = self.known(column.block, values)
        self.columns.remove(column)
        self._of_block[column.block].remove(column)

    def current(self, column: Column) -> Column:
        """Return the column itself, or its replacement."""
        return self._seen[_column_key(column.block, column.values)]

    def cheapest(self, block: int, cost: FloatArray) -> FloatArray | None:
        """Return the values of the cheapest known column of a block; None without any.

        Parameters
        ----------
        block : int
            Block number.
        cost : FloatArray
            Costs of its variables. [objective units]
        """
        own = self._of_block[block]
        return min(own, key=lambda column: float(cost @ column.values)).values if own else None

    def promising(
        self, blocks: Sequence[int], duals: FloatArray, most: int, always: Iterable[Column]
    ) -> list[Column]:
        """Return the cheapest columns of each block, and the given others.

        Parameters
        ----------
        blocks : Sequence[int]
            Block numbers.
        duals : FloatArray
            Prices of all linking rows.
        most : int
            Columns per block.
        always : Iterable[Column]
            Columns of these blocks to include at any cost.
        """
        others: dict[int, list[Column]] = {block: [] for block in blocks}
        for column in always:
            if column.block in others:
                others[column.block].append(column)
        found: list[Column] = []
        for block, kept in others.items():
            cheapest = sorted(self._of_block[block], key=lambda each: each.reduced_cost(duals))[:most]
            # Once each, in an order that is the same in every run.
            found += {id(column): column for column in (*cheapest, *kept)}.values()
        return found

    def by_reduced_cost(
        self, blocks: Sequence[int], duals: FloatArray, extra: int, always: Iterable[Column]
    ) -> list[Column]:
        """Return the given columns and others, chosen by the excess of reduced cost over their block's least.

        Parameters
        ----------
        blocks : Sequence[int]
            Block numbers.
        duals : FloatArray
            Prices of all linking rows in the master LP.
        extra : int
            Number of other columns.
        always : Iterable[Column]
            Columns to include at any cost.
        """
        found = {id(column): column for column in always}
        others: list[tuple[float, Column]] = []
        for own in (self._of_block[block] for block in blocks):
            prices = [column.reduced_cost(duals) for column in own]
            least = min(prices, default=0.0)
            others += [
                (price - least, column)
                for price, column in zip(prices, own, strict=True)
                if id(column) not in found
            ]
        others.sort(key=lambda each: each[0])
        return [*found.values(), *(column for _, column in others[:extra])]

    def blocks_without_column(self) -> list[int]:
        """Return the blocks that have no column yet."""
        return [block for block, own in enumerate(self._of_block) if not own]

    def of(self, blocks: Sequence[int]) -> Iterator[Column]:
        """Return the columns of these blocks."""
        return (column for block in blocks for column in self._of_block[block])


def _column_key(block: int, values: FloatArray) -> tuple[int, bytes]:
    """Return a key that equal columns of a block share."""
    return block, np.round(values, SAME_COLUMN_DECIMALS).tobytes()


def _touched(entries: sp.csc_array) -> tuple[IntArray, sp.csc_array]:
    """Return the rows in which a block's variables have entries, and these entries without the other rows.

    Large fleets have thousands of blocks and a hundred thousand linking rows: storing all rows for each block
    would take more memory than everything else.
    """
    rows, place = np.unique(entries.indices, return_inverse=True)
    shape = (len(rows), entries.shape[1])
    return rows.astype(np.int64), sp.csc_array((entries.data, place, entries.indptr), shape=shape)


class ColumnMemory:
    """Columns of a model's blocks, kept for its next solve with another objective, more rows or bounds.

    Columns are stored with their scales, which follow the bounds.
    """

    def __init__(self) -> None:
        self._values: dict[tuple[bytes, bytes], list[tuple[FloatArray, FloatArray]]] = {}

    def keep(self, pool: ColumnPool) -> None:
        """Store all columns of a pool in place of the earlier ones."""
        self._values = {}
        for column in pool.columns:
            block = pool.parts.blocks[column.block]
            scale = pool.relaxation.variable_scale[block.variables]
            self._values.setdefault(_key(block), []).append((column.values, scale))

    def recall(self, pool: ColumnPool) -> bool:
        """Add stored columns that keep the bounds to a pool; return whether every block has one."""
        relaxation, complete = pool.relaxation, True
        for number, block in enumerate(pool.parts.blocks):
            own, program_cache = block.variables, self._values.get(_key(block), ())
            lower, upper = relaxation.lower[own] - WITHIN, relaxation.upper[own] + WITHIN
            scaled = [values * (scale / relaxation.variable_scale[own]) for values, scale in program_cache]
            fitting = [values for values in scaled if (values >= lower).all() and (values <= upper).all()]
            for values in fitting:
                pool.add(number, values)
            complete = complete and bool(fitting)
        return complete


def _key(block: Block) -> tuple[bytes, bytes]:
    return block.variables.tobytes(), block.rows.tobytes()
