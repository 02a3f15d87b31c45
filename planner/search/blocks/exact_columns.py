"""Columns in whole numbers: HiGHS keeps rows within a tolerance, and a plan keeps them exactly."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np
from ortools.sat.python import cp_model

from fleetplan.planner.search.blocks.columns import Column
from fleetplan.planner.search.blocks.roles import NONE
from fleetplan.planner.search.blocks.row_repair import RowRepair
from fleetplan.planner.search.blocks.split import Block, Split
from fleetplan.planner.search.solvers.cpsat import configured_solver
from fleetplan.planner.search.solvers.matrix import BoolArray, FloatArray, IntArray, Program
from fleetplan.planner.search.solvers.relaxation import Relaxation

EXACT_DETERMINISTIC_LIMIT: Final = 1.0
"""Effort to find the whole loads of a column; most take a hundredth. [solver units]"""

WHOLE_TOLERANCE: Final = 1e-5
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
        self._block_of_row = np.full(parts.program.rows.shape[0], NONE, dtype=np.int64)
        for number, block in enumerate(parts.blocks):
            self._block_of_row[block.rows] = number

    def find(self, columns: Iterable[Column]) -> None:
        """Find the whole values of some columns, all at once: rounded ones keep the rows of four of five."""
        unknown = [column for column in columns if id(column) not in self._known]
        while unknown:
            # One of each block at a time.
            batch = {column.block: column for column in unknown}
            self._keep += batch.values()
            self._find(batch)
            unknown = [column for column in unknown if id(column) not in self._known]

    def values(self, column: Column) -> IntArray | None:
        """Whole values of the block's variables, or None where a replica more of each is too few.

        HiGHS keeps rows within a tolerance: one column of a thousand lacks a replica.
        """
        self.find([column])
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

    def _find(self, columns: dict[int, Column]) -> None:
        """Find the whole values of a column of each of some blocks: rounded to the nearest, up, or anew."""
        program, blocks = self._parts.program, self._parts.blocks
        values = np.zeros(len(program.cost))
        for number, column in columns.items():
            values[blocks[number].variables] = column.values
        values *= self._relaxation.variable_scale
        up = np.minimum(np.ceil(values - WHOLE_TOLERANCE), program.upper)
        left, nearest = dict(columns), np.round(values).astype(np.int64)
        for tried in (nearest, up.astype(np.int64)):
            broken = self._broken(tried)
            for number, column in tuple(left.items()):
                if not broken[number]:
                    self._known[id(column)] = tried[blocks[number].variables]
                    del left[number]
        repaired = self._repaired([blocks[number] for number in left], nearest)
        for (number, column), found in zip(left.items(), repaired, strict=True):
            own = blocks[number]
            self._known[id(column)] = self._anew(own, nearest[own.variables]) if found is None else found

    def _broken(self, values: IntArray) -> BoolArray:
        """By block: whether values of all variables break a row of it."""
        program, broken = self._parts.program, np.zeros(len(self._parts.blocks), dtype=bool)
        used = program.rows @ values
        of_rows = self._block_of_row[(used < program.row_lower) | (used > program.row_upper)]
        broken[of_rows[of_rows != NONE]] = True
        return broken

    def _repaired(self, blocks: Sequence[Block], values: IntArray) -> list[IntArray | None]:
        """Values of some blocks that keep their rows, by changes of loads that are not zero.

        That is enough for 99 of 100. All at once take a twentieth of the time of one after the other.

        Parameters
        ----------
        blocks : Sequence[Block]
            The blocks.
        values : IntArray
            Of all variables, near what is looked for.
        """
        if not blocks:
            return []
        program = self._parts.program
        variables = np.concatenate([block.variables for block in blocks])
        used, rows = variables[values[variables] != 0], np.concatenate([block.rows for block in blocks])
        among = Program(
            rows=program.rows[rows][:, used].tocsr(),
            row_lower=program.row_lower[rows],
            row_upper=program.row_upper[rows],
            lower=program.lower[used],
            upper=program.upper[used],
            cost=program.cost[used],
        )
        part = np.repeat(np.arange(len(blocks)), [len(block.rows) for block in blocks])
        repair, found = RowRepair(among, ~self._relaxation.whole[used], part), values.copy()
        found[used], failed = repair.repaired_parts(values[used])
        ended = failed.tolist() + [False] * (len(blocks) - len(failed))
        return [None if no else found[block.variables] for no, block in zip(ended, blocks, strict=True)]

    def _anew(self, block: Block, values: IntArray) -> IntArray | None:
        """Whole values of a block that keep its rows, near others that do not."""
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
        model, variables = self._model(block, lower, upper)
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

    def _model(
        self, block: Block, lower: IntArray, upper: IntArray
    ) -> tuple[cp_model.CpModel, list[cp_model.IntVar]]:
        """A block as a model of its own, within bounds and without an objective."""
        model, program = cp_model.CpModel(), self._parts.program
        bounds = zip(lower.tolist(), upper.tolist(), strict=True)
        variables = [model.new_int_var(least, most, "") for least, most in bounds]
        rows = self._parts.own_rows(program.rows, block)
        limits = program.row_lower[block.rows].tolist(), program.row_upper[block.rows].tolist()
        for number, (least, most) in enumerate(zip(*limits, strict=True)):
            entries = slice(rows.indptr[number], rows.indptr[number + 1])
            terms = [variables[index] for index in rows.indices[entries]]
            total = cp_model.LinearExpr.weighted_sum(terms, rows.data[entries].tolist())
            model.add_linear_constraint(total, least, most)
        return model, variables
