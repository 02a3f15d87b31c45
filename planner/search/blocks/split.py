"""Split of a program into blocks: variables connected by rows of one service and moment.

A variable's *block key* is its service and moment; supply and packing variables have none. A row whose
variables share one key is a block row; all others are linking rows. Variables connected by block rows form a
block, so regions without common rows become separate blocks. A new constraint family that connects them makes
blocks larger, not wrong. Variables in no block row belong to the master.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from fleetplan.planner.search.solvers.matrix import BoolArray, IntArray, Program

MASTER = -1
"""Block key, and block, of variables that no block decides."""


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Block: variables that are decided together.

    Attributes
    ----------
    variables, rows : IntArray
        Indices of its variables and rows in the program.
    """

    variables: IntArray
    rows: IntArray


@dataclass(frozen=True, slots=True, eq=False)
class Split:
    """Program in blocks.

    Attributes
    ----------
    program : Program
        Whole program.
    blocks : tuple[Block, ...]
        Blocks in the order of their first variables.
    block_of : IntArray
        Block of every variable, or `MASTER`.
    place : IntArray
        Position of every variable in its block; 0 for the master's.
    master_variables : IntArray
        Variables of no block.
    linking_rows : IntArray
        Rows of no block.
    following : array of bool
        Which of the master's variables have a block key: they only follow decisions of its blocks.
    """

    program: Program
    blocks: tuple[Block, ...]
    block_of: IntArray
    place: IntArray
    master_variables: IntArray
    linking_rows: IntArray
    following: BoolArray

    def own_rows(self, rows: sp.csr_array, block: Block) -> sp.csr_array:
        """Return the rows of a block over its own variables, the only ones with entries.

        Parameters
        ----------
        rows : csr_array
            All rows of the program, scaled or not.
        block : Block
            The block. Time and memory do not depend on the size of the program.
        """
        return self._over_own_variables(rows[block.rows], len(block.variables))

    def stacked(self, rows: sp.csr_array) -> sp.csr_array:
        """Return the rows of all blocks, stacked in order, each over its own variables."""
        widest = max((len(block.variables) for block in self.blocks), default=0)
        order = [block.rows for block in self.blocks]
        none = [np.zeros(0, dtype=np.int64)]
        return self._over_own_variables(rows[np.concatenate(order or none)], widest)

    def _over_own_variables(self, rows: sp.csr_array, width: int) -> sp.csr_array:
        places = self.place[rows.indices]
        return sp.csr_array((rows.data, places, rows.indptr), shape=(rows.shape[0], width))

    @property
    def following_variables(self) -> BoolArray:
        """Return which variables only follow decisions of blocks."""
        found = np.zeros(len(self.block_of), dtype=bool)
        found[self.master_variables] = self.following
        return found


def components(graph: sp.coo_array) -> IntArray:
    """Return the number of the connected component that each vertex of a graph belongs to."""
    # Imported here because it loads scipy.linalg, a tenth of the start-up time; most fleets do not need it.
    from scipy.sparse.csgraph import connected_components  # noqa: PLC0415

    return connected_components(graph, directed=False)[1].astype(np.int64)


def split(program: Program, block_keys: Sequence[int] | IntArray) -> Split:
    """Split a program into blocks.

    Parameters
    ----------
    program : Program
        Whole program.
    block_keys : Sequence[int]
        Block key of every variable, or `MASTER`.
    """
    block_key = np.asarray(block_keys, dtype=np.int64)
    rows = program.rows
    n_rows, n_variables = rows.shape
    within = _rows_of_one_key(rows, block_key)
    row_of_entry = np.repeat(np.arange(n_rows), np.diff(rows.indptr))
    inner = within[row_of_entry]
    # Variables and block rows form one graph, whose components are the blocks.
    graph = sp.coo_array(
        (np.ones(int(inner.sum())), (rows.indices[inner], n_variables + row_of_entry[inner])),
        shape=(n_variables + n_rows, n_variables + n_rows),
    )
    label = components(graph)
    touched = np.zeros(n_variables, dtype=bool)
    touched[rows.indices[inner]] = True
    names, first = np.unique(label[:n_variables][touched], return_index=True)
    order = np.argsort(first)
    number = {int(names[each]): position for position, each in enumerate(order)}
    block_of = np.array(
        [number[int(label[j])] if touched[j] else MASTER for j in range(n_variables)], dtype=np.int64
    )
    block_of_row = np.array(
        [number[int(label[n_variables + i])] if within[i] else MASTER for i in range(n_rows)], dtype=np.int64
    )
    variables, block_rows = _grouped(block_of, len(number)), _grouped(block_of_row, len(number))
    place = np.zeros(n_variables, dtype=np.int64)
    for own in variables:
        place[own] = np.arange(len(own))
    return Split(
        program=program,
        blocks=tuple(Block(*pair) for pair in zip(variables, block_rows, strict=True)),
        block_of=block_of,
        place=place,
        master_variables=np.flatnonzero(block_of == MASTER),
        linking_rows=np.flatnonzero(block_of_row == MASTER),
        following=block_key[block_of == MASTER] != MASTER,
    )


def _rows_of_one_key(rows: sp.csr_array, block_key: IntArray) -> BoolArray:
    """Return which rows have variables of one block key only."""
    n_rows = rows.shape[0]
    filled = np.diff(rows.indptr) > 0
    smallest = np.full(n_rows, MASTER, dtype=np.int64)
    largest = smallest.copy()
    block_keys = block_key[rows.indices]
    starts = rows.indptr[:-1][filled]
    if starts.size:
        smallest[filled] = np.minimum.reduceat(block_keys, starts)
        largest[filled] = np.maximum.reduceat(block_keys, starts)
    within: BoolArray = (smallest == largest) & (smallest != MASTER)
    return within


def _grouped(number: IntArray, count: int) -> list[IntArray]:
    """Return the indices of each number, without those of `MASTER`."""
    order = np.argsort(number, kind="stable")
    ends = np.searchsorted(number[order], np.arange(count + 1))
    return [order[ends[each] : ends[each + 1]] for each in range(count)]
