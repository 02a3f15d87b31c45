"""Columns in whole numbers: HiGHS satisfies rows within a tolerance, a plan satisfies them exactly."""

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
"""Work limit to find the whole loads of a column; most take a hundredth. [solver units]"""

WHOLE_TOLERANCE: Final = 1e-5
"""Largest excess over a whole number that still counts as that number. [variable units]"""


class ExactColumns:
    """Whole values of columns, computed once per column.

    Parameters
    ----------
    parts, relaxation
        Program in blocks, and its relaxation.
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
        """Compute the whole values of these columns together; rounding satisfies the rows of four in five."""
        unknown = [column for column in columns if id(column) not in self._known]
        while unknown:
            # One of each block at a time.
            batch = {column.block: column for column in unknown}
            self._keep += batch.values()
            self._find(batch)
            unknown = [column for column in unknown if id(column) not in self._known]

    def values(self, column: Column) -> IntArray | None:
        """Return whole values of the block's variables; None if one more replica each is not enough.

        HiGHS satisfies rows within a tolerance: one column of a thousand lacks a replica.
        """
        self.find([column])
        return self._known[id(column)]

    def mended(self, column: Column) -> FloatArray | None:
        """Return scaled values of a column with its missing replicas; None if none are missing."""
        own = self._parts.blocks[column.block].variables
        exact = self.values(column)
        if exact is None:
            return None
        scaled: FloatArray = exact / self._relaxation.variable_scale[own]
        whole = self._relaxation.whole[own]
        return None if np.array_equal(scaled[whole], np.round(column.values[whole])) else scaled

    def _find(self, columns: dict[int, Column]) -> None:
        """Compute whole values of one column per block: rounded to nearest, rounded up, or solved anew."""
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
        """Return by block whether these values violate one of its rows."""
        program, broken = self._parts.program, np.zeros(len(self._parts.blocks), dtype=bool)
        used = program.rows @ values
        of_rows = self._block_of_row[(used < program.row_lower) | (used > program.row_upper)]
        broken[of_rows[of_rows != NONE]] = True
        return broken

    def _repaired(self, blocks: Sequence[Block], values: IntArray) -> list[IntArray | None]:
        """Return values that satisfy the blocks' rows by changes of nonzero loads; None where impossible.

        This succeeds for 99 of 100 blocks. All together take a twentieth of the time of one by one.

        Parameters
        ----------
        blocks : Sequence[Block]
            Blocks to repair.
        values : IntArray
            Values of all variables, near the wanted ones.
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
        """Return whole values of a block that satisfy its rows, near these values."""
        exact = self._nearest(block, values, more=0)
        return exact if exact is not None else self._nearest(block, values, more=1)

    def _nearest(self, block: Block, values: IntArray, more: int) -> IntArray | None:
        """Return the feasible values of a block nearest to these, whole variables up to `more` larger."""
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
        """Return a block as a separate model, within bounds and without an objective."""
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
