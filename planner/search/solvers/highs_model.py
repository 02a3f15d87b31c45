"""HiGHS models of programs.

HiGHS 1.16's presolve proves false optima and false infeasibilities (benchmarks/highs-presolve.md). Integer
programs whose bound is reported therefore go without it, or with its basic rules alone. They are reduced by
highs_reduction.py, with a finer tolerance and slightly relaxed limits; this does not raise the bound.
Programs that only look for plans keep presolve.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import highspy
import numpy as np

from fleetplan.planner.search.solvers.highs_jobs import Array, Rows
from fleetplan.planner.search.solvers.highs_reduction import ReducedRows, reduced_rows

LIMIT_GIVE: Final = 1e-7
"""Relaxation of the limits of an integer program. [largest coefficient of the row]

Equations and limits of zero, which state dependencies, stay exact: relaxing them lowers the bounds of blocks
by 0.07 % in the same time.
"""

INTEGER_TOLERANCE: Final = 1e-9
"""HiGHS's integrality and feasibility tolerance for integer programs; its default is 1e-6."""

OPTIONAL_RULES: Final = sum(1 << rule for rule in range(6, 20))
"""Bits of the rules of HiGHS 1.16's presolve that may be switched off. The basic rules are left: they remove
rows that are empty, redundant or of one variable, and variables that are fixed, dominated or in no row."""


def cost_unit(cost: Array) -> float:
    """Return the unit in which the largest cost is 1: HiGHS fails numerically with costs of 1e11."""
    return float(np.abs(cost).max(initial=0.0)) or 1.0


def linear_model(rows: Rows, cost: Array) -> highspy.Highs:
    """Return a HiGHS instance with a program without its integrality."""
    return _solver_of(rows, cost, [])


def integer_model(
    rows: Rows, cost: Array, firm: bool = False, basic_presolve: bool = False
) -> tuple[highspy.Highs, ReducedRows] | None:
    """Return a HiGHS instance with an integer program, and how it was reduced; None if limits contradict.

    Parameters
    ----------
    rows, cost : Rows, Array
        The program.
    firm : bool
        Whether limits stay exact, for a solution that becomes a plan. Presolve then saves a third of the
        time, and what it cuts off is a plan less.
    basic_presolve : bool
        Whether the basic rules of presolve are used where the bound is reported. Blocks and programs of
        supply do as well without; whole models of 400 to 1,000 variables take up to three times as long.
    """
    reduced = reduced_rows(rows if firm else _giving(rows))
    if reduced is None:
        return None
    integer, continuous = highspy.HighsVarType.kInteger, highspy.HighsVarType.kContinuous
    kinds = [integer if whole else continuous for whole in reduced.rows.whole]
    solver = _solver_of(reduced.rows, cost[reduced.kept], kinds, reduced.constant(cost))
    solver.setOptionValue("mip_feasibility_tolerance", INTEGER_TOLERANCE)
    if basic_presolve:
        solver.setOptionValue("presolve_rule_off", OPTIONAL_RULES)
    elif not firm:
        solver.setOptionValue("presolve", "off")
    return solver, reduced


def _solver_of(
    rows: Rows, cost: Array, kinds: list[highspy.HighsVarType], constant: float = 0.0
) -> highspy.Highs:
    """Return a HiGHS instance with a program; `constant` is that of its objective."""
    program = highspy.HighsLp()
    program.num_row_, program.num_col_ = rows.rows.shape
    program.col_cost_, program.offset_ = cost, constant
    program.col_lower_, program.col_upper_ = rows.lower, rows.upper
    program.row_lower_, program.row_upper_ = rows.row_lower, rows.row_upper
    program.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    program.a_matrix_.start_ = rows.rows.indptr
    program.a_matrix_.index_ = rows.rows.indices
    program.a_matrix_.value_ = rows.rows.data
    program.integrality_ = kinds
    solver = highspy.Highs()  # type: ignore[no-untyped-call]
    solver.setOptionValue("output_flag", False)
    # One thread per process: more would make answers depend on the machine. The parallel dual simplex of
    # HiGHS 1.16 saves a fifth on two idle cores, but takes six times as long beside other work.
    solver.setOptionValue("threads", 1)
    solver.passModel(program)
    return solver


def _giving(rows: Rows) -> Rows:
    """Return a program with slightly relaxed limits."""
    firm = rows.row_lower == rows.row_upper
    less = np.where(firm | (rows.row_lower == 0), 0.0, LIMIT_GIVE)
    more = np.where(firm | (rows.row_upper == 0), 0.0, LIMIT_GIVE)
    return replace(rows, row_lower=rows.row_lower - less, row_upper=rows.row_upper + more)
