"""A program as HiGHS takes it."""

from __future__ import annotations

import highspy
import numpy as np

from fleetplan.planner.search.solvers.highs_jobs import Array, Rows


def cost_unit(cost: Array) -> float:
    """Unit in which the largest cost is 1: HiGHS loses its way with costs of 1e11."""
    return float(np.abs(cost).max(initial=0.0)) or 1.0


def model_of(rows: Rows, cost: Array, linear: bool) -> highspy.Highs:
    """HiGHS with a program."""
    program = highspy.HighsLp()
    program.num_row_, program.num_col_ = rows.rows.shape
    program.col_cost_ = cost
    program.col_lower_, program.col_upper_ = rows.lower, rows.upper
    program.row_lower_, program.row_upper_ = rows.row_lower, rows.row_upper
    program.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    program.a_matrix_.start_ = rows.rows.indptr
    program.a_matrix_.index_ = rows.rows.indices
    program.a_matrix_.value_ = rows.rows.data
    if not linear:
        integer, continuous = highspy.HighsVarType.kInteger, highspy.HighsVarType.kContinuous
        program.integrality_ = [integer if whole else continuous for whole in rows.whole]
    solver = highspy.Highs()  # type: ignore[no-untyped-call]
    solver.setOptionValue("output_flag", False)
    # One process a core; also, threads would make the answer depend on the machine. The parallel dual simplex
    # of HiGHS 1.16 saves a fifth on two idle cores and takes six times as long beside other work.
    solver.setOptionValue("threads", 1)
    solver.passModel(program)
    return solver
