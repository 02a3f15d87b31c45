"""HiGHS models of programs.

HiGHS 1.16's presolve proves false optima where limits are exactly tight (benchmarks/highs-presolve.md).
Integer programs therefore use a finer tolerance and no probing, and slightly relaxed limits if their bound is
reported; this does not raise the bound.
"""

from __future__ import annotations

from typing import Final

import highspy
import numpy as np

from fleetplan.planner.search.solvers.highs_jobs import Array, Rows

LIMIT_GIVE: Final = 1e-7
"""Relaxation of the limits of an integer program. [largest coefficient of the row]

Equations and limits of zero, which state dependencies, stay exact: relaxing them lowers the bounds of blocks
by 0.07 % in the same time.
"""

INTEGER_TOLERANCE: Final = 1e-9
"""HiGHS's integrality and feasibility tolerance for integer programs; its default is 1e-6."""

PROBING: Final = 1 << 15 | 1 << 17
"""Bits of the probing rules in HiGHS 1.16's presolve, including implications."""


def cost_unit(cost: Array) -> float:
    """Return the unit in which the largest cost is 1: HiGHS fails numerically with costs of 1e11."""
    return float(np.abs(cost).max(initial=0.0)) or 1.0


def model_of(rows: Rows, cost: Array, linear: bool, firm: bool = False) -> highspy.Highs:
    """Return a HiGHS instance with a program.

    Parameters
    ----------
    rows, cost : Rows, Array
        The program.
    linear : bool
        Whether to drop integrality.
    firm : bool
        Whether the limits of an integer program stay exact.
    """
    program = highspy.HighsLp()
    program.num_row_, program.num_col_ = rows.rows.shape
    program.col_cost_ = cost
    program.col_lower_, program.col_upper_ = rows.lower, rows.upper
    lower, upper = (rows.row_lower, rows.row_upper) if linear or firm else _giving(rows)
    program.row_lower_, program.row_upper_ = lower, upper
    program.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    program.a_matrix_.start_ = rows.rows.indptr
    program.a_matrix_.index_ = rows.rows.indices
    program.a_matrix_.value_ = rows.rows.data
    if not linear:
        integer, continuous = highspy.HighsVarType.kInteger, highspy.HighsVarType.kContinuous
        program.integrality_ = [integer if whole else continuous for whole in rows.whole]
    solver = highspy.Highs()  # type: ignore[no-untyped-call]
    solver.setOptionValue("output_flag", False)
    # One thread per process: more would make answers depend on the machine. The parallel dual simplex of
    # HiGHS 1.16 saves a fifth on two idle cores, but takes six times as long beside other work.
    solver.setOptionValue("threads", 1)
    if not linear:
        solver.setOptionValue("mip_feasibility_tolerance", INTEGER_TOLERANCE)
        solver.setOptionValue("presolve_rule_off", PROBING)
    solver.passModel(program)
    return solver


def _giving(rows: Rows) -> tuple[Array, Array]:
    """Return slightly relaxed lower and upper limits."""
    firm = rows.row_lower == rows.row_upper
    less = np.where(firm | (rows.row_lower == 0), 0.0, LIMIT_GIVE)
    more = np.where(firm | (rows.row_upper == 0), 0.0, LIMIT_GIVE)
    return rows.row_lower - less, rows.row_upper + more
