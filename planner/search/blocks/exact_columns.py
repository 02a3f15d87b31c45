"""Whole values of columns, whose loads pricing leaves continuous."""

from __future__ import annotations

import numpy as np
from ortools.sat.python import cp_model

from fleetplan.planner.search.blocks.columns import Column
from fleetplan.planner.search.blocks.split import Block, Split
from fleetplan.planner.search.solvers.cpsat import configured_solver
from fleetplan.planner.search.solvers.matrix import FloatArray, IntArray
from fleetplan.planner.search.solvers.relaxation import Relaxation

EXACT_DETERMINISTIC_LIMIT = 1.0
"""Effort to find the whole loads of a column; most take a hundredth. [solver units]"""

WHOLE_TOLERANCE = 1e-5
"""How far above a whole number a value may be and still stand for it. [variable units]"""


class ExactColumns:
    """Whole values of columns, found once for each.

    Parameters
    ----------
    parts, relaxation
        The program in blocks and its relaxation.
    """

    def __init__(self, parts: Split, relaxation: Relaxation) -> None:
        self._parts = parts
        self._relaxation = relaxation
        self._known: dict[int, IntArray | None] = {}
        self._keep: list[Column] = []

    def values(self, column: Column) -> IntArray | None:
        """Whole values of the block's variables, or None where a replica more of each is too few.

        HiGHS keeps rows within a tolerance: one column of a thousand lacks a replica.
        """
        if id(column) not in self._known:
            self._keep.append(column)
            self._known[id(column)] = self._find(column)
        return self._known[id(column)]

    def mended(self, column: Column) -> FloatArray | None:
        """Scaled values of a column that lacks replicas, with them; None if it lacks none."""
        own = self._parts.blocks[column.block].variables
        exact = self.values(column)
        if exact is None:
            return None
        scaled: FloatArray = exact / self._relaxation.variable_scale[own]
        whole = self._relaxation.whole[own]
        return None if np.array_equal(scaled[whole], np.round(column.values[whole])) else scaled

    def _find(self, column: Column) -> IntArray | None:
        block = self._parts.blocks[column.block]
        unscaled = column.values * self._relaxation.variable_scale[block.variables]
        rounded = _rounded(self._parts, block, unscaled)
        if rounded is not None:
            return rounded
        values: IntArray = np.round(unscaled).astype(np.int64)
        exact = self._nearest(block, values, more=0)
        return exact if exact is not None else self._nearest(block, values, more=1)

    def _nearest(self, block: Block, values: IntArray, more: int) -> IntArray | None:
        """The values of a block that are nearest to some, whole variables the same or up to so many more.

        Near rather than cheap: other blocks rely on what a column adds to the rows they share.
        """
        program, own = self._parts.program, block.variables
        whole, highest = self._relaxation.whole[own], program.upper[own]
        lower = np.where(whole, values, program.lower[own])
        upper = np.where(whole, np.minimum(values + more, highest), highest)
        model, variables = block_model(self._parts, block, lower, upper)
        apart = []
        for variable, value, far in zip(variables, values.tolist(), (upper - lower).tolist(), strict=True):
            model.add_hint(variable, value)
            if far:
                distance = model.new_int_var(0, far, "")
                model.add(distance >= variable - value)
                model.add(distance >= value - variable)
                apart.append(distance)
        model.minimize(sum(apart))
        solver = configured_solver(60.0, seed=1, workers=1)
        solver.parameters.max_deterministic_time = EXACT_DETERMINISTIC_LIMIT
        if solver.solve(model) not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            return None
        return np.array([solver.value(variable) for variable in variables], dtype=np.int64)


def _rounded(parts: Split, block: Block, values: FloatArray) -> IntArray | None:
    """Values rounded to the nearest, or all up, where that keeps the block's rows: four of five columns."""
    program = parts.program
    rows = parts.own_rows(program.rows, block)
    lower, upper = program.row_lower[block.rows], program.row_upper[block.rows]
    highest = program.upper[block.variables]
    for tried in (np.round(values), np.minimum(np.ceil(values - WHOLE_TOLERANCE), highest)):
        whole: IntArray = tried.astype(np.int64)
        used = rows @ whole
        if (used >= lower).all() and (used <= upper).all():
            return whole
    return None


def block_model(
    parts: Split, block: Block, lower: IntArray, upper: IntArray
) -> tuple[cp_model.CpModel, list[cp_model.IntVar]]:
    """A block as a model of its own, within bounds and without an objective."""
    model, program = cp_model.CpModel(), parts.program
    bounds = zip(lower.tolist(), upper.tolist(), strict=True)
    variables = [model.new_int_var(least, most, "") for least, most in bounds]
    rows = parts.own_rows(program.rows, block)
    limits = zip(program.row_lower[block.rows].tolist(), program.row_upper[block.rows].tolist(), strict=True)
    for number, (least, most) in enumerate(limits):
        entries = slice(rows.indptr[number], rows.indptr[number + 1])
        terms = [variables[index] for index in rows.indices[entries]]
        model.add_linear_constraint(
            cp_model.LinearExpr.weighted_sum(terms, rows.data[entries].tolist()), least, most
        )
    return model, variables
