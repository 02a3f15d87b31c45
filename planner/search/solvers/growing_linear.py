"""A linear program that HiGHS solves among some variables, and then among more from where it stands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import highspy
import numpy as np

from fleetplan.planner.search.solvers.highs_jobs import Answer, Array, Indices, Rows
from fleetplan.planner.search.solvers.highs_model import cost_unit, model_of
from fleetplan.planner.search.work import GROWING_ITERATION_S

if TYPE_CHECKING:
    import scipy.sparse as sp

PRIMAL: Final = 4
"""HiGHS's number of its primal simplex, which goes on from a solution: with more variables the last basis
still is one."""


class GrowingLinear:
    """A linear program of which the variables that are not there yet are zero.

    Parameters
    ----------
    program : Rows
        All rows and variables.
    cost : Array
        Of all variables.
    variables : Indices
        Those that are there at first.

    Attributes
    ----------
    work_s : float
        Work so far, as `Answer` has it. [s]
    """

    def __init__(self, program: Rows, cost: Array, variables: Indices) -> None:
        self._program, self._cost, self._variables = program, cost, variables
        self._unit = cost_unit(cost)
        self._by_variable: sp.csc_array = program.rows.tocsc()
        self._solver = model_of(program.among(variables), cost[variables] / self._unit, linear=True)
        self.work_s = 0.0

    def add(self, variables: Indices) -> None:
        """Add some variables."""
        program, columns = self._program, self._by_variable[:, variables]
        self._solver.addCols(
            len(variables),
            self._cost[variables] / self._unit,
            program.lower[variables],
            program.upper[variables],
            columns.nnz,
            columns.indptr[:-1].astype(np.int32),
            columns.indices.astype(np.int32),
            columns.data,
        )
        self._variables = np.concatenate([self._variables, variables])

    def solve(self) -> Answer:
        """The optimum among the variables that are there, with values of all and prices of all rows."""
        solver = self._solver
        solver.run()
        solver.setOptionValue("simplex_strategy", PRIMAL)
        info, status = solver.getInfo(), solver.getModelStatus()
        self.work_s += max(0, int(info.simplex_iteration_count)) * GROWING_ITERATION_S
        if status != highspy.HighsModelStatus.kOptimal:
            infeasible = status == highspy.HighsModelStatus.kInfeasible
            said = solver.modelStatusToString(status)
            return Answer(None, np.inf, -np.inf, infeasible=infeasible, status=said)
        solution = solver.getSolution()
        values = np.zeros(len(self._cost))
        values[self._variables] = solution.col_value
        objective = float(self._cost @ values)
        return Answer(values, objective, -np.inf, row_duals=np.array(solution.row_dual) * self._unit)
