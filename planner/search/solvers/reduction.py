"""A program with the same solutions whose rows say less: bounds are told by the variables themselves."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from fleetplan.planner.search.solvers.matrix import UNBOUNDED, BoolArray, IntArray, Program

MOST_PASSES: Final = 5
"""Each may leave rows of one variable, or variables of one value, for the next."""


def reduced(program: Program) -> Program:
    """Turn rows of one variable into its bounds, and take variables that these fix out of the other rows.

    The rows and variables keep their places, and the solutions are the same. A block row that only a fixed
    variable made a linking row is the block's own after that, such as the work of a day of one moment.

    Parameters
    ----------
    program : Program
        Any; one whose bounds contradict each other is returned as it is.

    Returns
    -------
    Program
        The reduced one.
    """
    rows = program.rows.copy()
    rows.eliminate_zeros()
    found = replace(program, rows=rows)
    # What a stage of a search holds at one value is free in the next, whose blocks should be the same.
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
    """Rows of one variable as its bounds, and empty themselves."""
    rows = program.rows
    alone = np.flatnonzero(np.diff(rows.indptr) == 1)
    variable, coefficient = rows.indices[rows.indptr[alone]], rows.data[rows.indptr[alone]]
    least, most = program.row_lower[alone], program.row_upper[alone]
    at_least, at_most = least > -UNBOUNDED, most < UNBOUNDED
    up = coefficient > 0
    lower, upper = program.lower.copy(), program.upper.copy()
    # Limits are divided upwards or downwards to whole values, as they bound from below or above.
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
    """Rows without those variables of some that can have one value alone; limits take what these add."""
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
