"""Linear program that HiGHS solves among some variables, then among more, from the last solution."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import highspy
import numpy as np

from fleetplan.planner.search.solvers.highs_jobs import Answer, Array, Basis, BasisStatus, Indices, Rows
from fleetplan.planner.search.solvers.highs_model import cost_unit, linear_model
from fleetplan.planner.search.work import GROWING_ITERATION_S

if TYPE_CHECKING:
    import scipy.sparse as sp

PRIMAL: Final = 4
"""HiGHS's number for the primal simplex. It continues from a solution, and the last basis stays feasible when
variables are added."""


class GrowingLinear:
    """Linear program whose absent variables are zero.

    Rows with absent variables only are absent too, unless zero violates their limits.

    Parameters
    ----------
    program : Rows
        All rows and variables.
    cost : Array
        Costs of all variables.
    variables : Indices
        Variables present at first.
    note : callable
        Called with the work of each solve, as in `Answer`. [s]
    start : Basis, optional
        Basis of all variables and rows: absent variables are at their lower bounds, absent rows basic.
    """

    def __init__(
        self,
        program: Rows,
        cost: Array,
        variables: Indices,
        note: Callable[[float], None],
        start: Basis | None = None,
    ) -> None:
        self._program, self._cost, self._variables, self._note = program, cost, variables, note
        self._unit = cost_unit(cost)
        self._by_variable: sp.csc_array = program.rows.tocsc()
        there = (program.row_lower > 0) | (program.row_upper < 0)
        there[self._by_variable[:, variables].indices] = True
        # Present rows, and each row's position among them; -1 if absent.
        self._rows = np.flatnonzero(there)
        self._number = np.where(there, np.cumsum(there) - 1, -1).astype(np.int32)
        own = program.among(variables, self._rows)
        self._solver = linear_model(own, cost[variables] / self._unit)
        if start is not None:
            self._begin_at(start)

    def _begin_at(self, start: Basis) -> None:
        """Start from a basis; presolve would ignore it."""
        status = {int(each): each for each in highspy.HighsBasisStatus.__members__.values()}
        basis = highspy.HighsBasis()
        basis.col_status = [status[each] for each in start.columns[self._variables].tolist()]
        basis.row_status = [status[each] for each in start.rows[self._rows].tolist()]
        basis.valid = True
        self._solver.setOptionValue("presolve", "off")
        self._solver.setBasis(basis)

    def _basis(self) -> Basis:
        """Return the basis of the last solution."""
        basis = self._solver.getBasis()
        columns = np.full(len(self._cost), BasisStatus.LOWER, dtype=np.int8)
        rows = np.full(len(self._number), BasisStatus.BASIC, dtype=np.int8)
        columns[self._variables] = [int(each) for each in basis.col_status]
        rows[self._rows] = [int(each) for each in basis.row_status]
        return Basis(columns, rows)

    def add(self, variables: Indices) -> None:
        """Add variables, and the rows that contain them."""
        program, columns = self._program, self._by_variable[:, variables]
        self._add_rows(np.unique(columns.indices[self._number[columns.indices] < 0]))
        self._solver.addCols(
            len(variables),
            self._cost[variables] / self._unit,
            program.lower[variables],
            program.upper[variables],
            columns.nnz,
            columns.indptr[:-1].astype(np.int32),
            self._number[columns.indices],
            columns.data,
        )
        self._variables = np.concatenate([self._variables, variables])

    def _add_rows(self, rows: Indices) -> None:
        """Add rows without entries so far."""
        lower, upper = self._program.row_lower[rows], self._program.row_upper[rows]
        nothing = np.zeros(0, dtype=np.int32)
        self._solver.addRows(
            len(rows), lower, upper, 0, np.zeros(len(rows), dtype=np.int32), nothing, nothing.astype(float)
        )
        self._number[rows] = np.arange(len(self._rows), len(self._rows) + len(rows), dtype=np.int32)
        self._rows = np.concatenate([self._rows, rows])

    def solve(self) -> Answer:
        """Return the optimum among present variables, with values of all variables and prices of all rows."""
        solver = self._solver
        solver.run()
        solver.setOptionValue("simplex_strategy", PRIMAL)
        info, status = solver.getInfo(), solver.getModelStatus()
        self._note(max(0, int(info.simplex_iteration_count)) * GROWING_ITERATION_S)
        if status != highspy.HighsModelStatus.kOptimal:
            infeasible = status == highspy.HighsModelStatus.kInfeasible
            said = solver.modelStatusToString(status)
            return Answer(None, np.inf, -np.inf, infeasible=infeasible, status=said)
        solution = solver.getSolution()
        values, duals = np.zeros(len(self._cost)), np.zeros(len(self._number))
        values[self._variables] = solution.col_value
        duals[self._rows] = np.array(solution.row_dual) * self._unit
        objective = float(self._cost @ values)
        return Answer(values, objective, -np.inf, row_duals=duals, basis=self._basis())
