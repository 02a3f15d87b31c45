"""Presolve of a program: turn single-variable rows into bounds, and remove fixed variables."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from fleetplan.planner.search.solvers.matrix import UNBOUNDED, BoolArray, IntArray, Program

MOST_PASSES: Final = 5
"""Largest number of passes: each may create more single-variable rows or fixed variables."""


def reduced(program: Program) -> Program:
    """Turn rows of one variable into its bounds, and remove variables that these fix from the other rows.

    Rows, variables and solutions stay the same. A row that was a linking row only because of a fixed
    variable, such as the offline work of a day with one moment, becomes a block row.

    Parameters
    ----------
    program : Program
        Any program; returned unchanged if its bounds contradict each other.

    Returns
    -------
    Program
        Reduced program.
    """
    rows = program.rows.copy()
    rows.eliminate_zeros()
    found = replace(program, rows=rows)
    # A variable fixed in one stage of a search may be free in the next; blocks should stay the same.
    open_before = program.lower < program.upper
    for _ in range(MOST_PASSES):
        before = found.rows.nnz
        bounded = _with_bounds_of_rows(found)
        if (bounded.lower > bounded.upper).any():
            return program
        found = _without_fixed(bounded, open_before)
        if found.rows.nnz == before:
            break
    return found


def _with_bounds_of_rows(program: Program) -> Program:
    """Turn rows of one variable into bounds, and empty them."""
    rows = program.rows
    alone = np.flatnonzero(np.diff(rows.indptr) == 1)
    variable, coefficient = rows.indices[rows.indptr[alone]], rows.data[rows.indptr[alone]]
    least, most = program.row_lower[alone], program.row_upper[alone]
    at_least, at_most = least > -UNBOUNDED, most < UNBOUNDED
    up = coefficient > 0
    lower, upper = program.lower.copy(), program.upper.copy()
    # Quotients are rounded up for lower bounds and down for upper bounds.
    for limit, told, below in ((least, at_least, up), (most, at_most, ~up)):
        np.maximum.at(lower, variable[told & below], _ceil(limit, coefficient, told & below))
        np.minimum.at(upper, variable[told & ~below], _floor(limit, coefficient, told & ~below))
    row_lower, row_upper = program.row_lower.copy(), program.row_upper.copy()
    row_lower[alone], row_upper[alone] = -UNBOUNDED, UNBOUNDED
    kept = rows.copy()
    kept.data[rows.indptr[alone]] = 0
    kept.eliminate_zeros()
    return replace(program, rows=kept, row_lower=row_lower, row_upper=row_upper, lower=lower, upper=upper)


def _ceil(limit: IntArray, coefficient: IntArray, picked: BoolArray) -> IntArray:
    return -(-limit[picked] // coefficient[picked])


def _floor(limit: IntArray, coefficient: IntArray, picked: BoolArray) -> IntArray:
    return limit[picked] // coefficient[picked]


def _without_fixed(program: Program, which: BoolArray) -> Program:
    """Remove those of the given variables that have one value only, and adjust the limits."""
    fixed = which & (program.lower == program.upper)
    rows = program.rows.copy()
    added = rows @ np.where(fixed, program.lower, 0)
    rows.data[fixed[rows.indices]] = 0
    rows.eliminate_zeros()
    return replace(
        program,
        rows=rows,
        row_lower=np.where(program.row_lower > -UNBOUNDED, program.row_lower - added, program.row_lower),
        row_upper=np.where(program.row_upper < UNBOUNDED, program.row_upper - added, program.row_upper),
    )
