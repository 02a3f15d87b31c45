"""A program as HiGHS takes it.

The presolve of HiGHS 1.16 proves false optima where limits hold with nothing to spare
(benchmarks/highs-presolve.md). An integer program therefore goes to it with a finer tolerance, without
probing, and, where its bound is told, with limits that give a little: that bound is no better than it is.
"""

from __future__ import annotations

from typing import Final

import highspy
import numpy as np

from fleetplan.planner.search.solvers.highs_jobs import Array, Rows

LIMIT_GIVE: Final = 1e-7
"""By how much limits of an integer program give. [largest coefficient of the row]

Equations do not, nor limits of zero, which say what needs what: with a remainder left to them, blocks are
bounded 0.07 % lower in the same time."""

INTEGER_TOLERANCE: Final = 1e-9
"""How far HiGHS takes a value for whole, and a limit of an integer program for kept; its own is 1e-6."""

PROBING: Final = 1 << 15 | 1 << 17
"""Bits of the presolve rules of HiGHS 1.16 that are called probing, in presolve and for implications."""


def cost_unit(cost: Array) -> float:
    """Unit in which the largest cost is 1: HiGHS loses its way with costs of 1e11."""
    return float(np.abs(cost).max(initial=0.0)) or 1.0


def model_of(rows: Rows, cost: Array, linear: bool, firm: bool = False) -> highspy.Highs:
    """HiGHS with a program.

    Parameters
    ----------
    rows, cost : Rows, Array
        The program.
    linear : bool
        Whether parts of whole numbers will do.
    firm : bool
        Whether limits of an integer program give nothing.
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
    # One process a core; also, threads would make the answer depend on the machine. The parallel dual simplex
    # of HiGHS 1.16 saves a fifth on two idle cores and takes six times as long beside other work.
    solver.setOptionValue("threads", 1)
    if not linear:
        solver.setOptionValue("mip_feasibility_tolerance", INTEGER_TOLERANCE)
        solver.setOptionValue("presolve_rule_off", PROBING)
    solver.passModel(program)
    return solver


def _giving(rows: Rows) -> tuple[Array, Array]:
    """Lower and upper limits that give a little."""
    firm = rows.row_lower == rows.row_upper
    less = np.where(firm | (rows.row_lower == 0), 0.0, LIMIT_GIVE)
    more = np.where(firm | (rows.row_upper == 0), 0.0, LIMIT_GIVE)
    return rows.row_lower - less, rows.row_upper + more
