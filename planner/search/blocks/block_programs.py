"""Programs of all blocks in one stack, from which each worker job takes its slice."""

from __future__ import annotations

import numpy as np

from fleetplan.planner.search.blocks.split import Split
from fleetplan.planner.search.solvers.highs_jobs import CompressedRows, StackedRows
from fleetplan.planner.search.solvers.matrix import IntArray
from fleetplan.planner.search.solvers.relaxation import Relaxation


def block_programs(parts: Split, relaxation: Relaxation) -> StackedRows:
    """Stack the relaxed programs of all blocks.

    Parameters
    ----------
    parts : Split
        Program in blocks.
    relaxation : Relaxation
        Relaxation of the same program.
    """
    rows = _one_after_the_other([block.rows for block in parts.blocks])
    variables = _one_after_the_other([block.variables for block in parts.blocks])
    matrix = parts.stacked(relaxation.rows)
    return StackedRows(
        rows=CompressedRows(matrix.shape, matrix.indptr, matrix.indices, matrix.data),
        row_lower=relaxation.row_lower[rows],
        row_upper=relaxation.row_upper[rows],
        lower=relaxation.lower[variables],
        upper=relaxation.upper[variables],
        whole=relaxation.whole[variables],
        first_row=_ends([len(block.rows) for block in parts.blocks]),
        first_variable=_ends([len(block.variables) for block in parts.blocks]),
    )


def _one_after_the_other(indices: list[IntArray]) -> IntArray:
    return np.concatenate(indices) if indices else np.zeros(0, dtype=np.int64)


def _ends(sizes: list[int]) -> IntArray:
    """Return where each part begins, and the end of the last one."""
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
