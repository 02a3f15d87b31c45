"""The linear relaxation of a whole model: its optimum, and what the limits of its constraints cost."""

from __future__ import annotations

import math
import os
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from ortools.sat.python import cp_model

from fleetplan.planner.decomposition.highs_jobs import Job, Rows
from fleetplan.planner.decomposition.matrix import FloatArray, read_program
from fleetplan.planner.decomposition.relaxation import Relaxation, relax
from fleetplan.planner.decomposition.workers import Workers, WorkersStoppedError, ending
from fleetplan.planner.solvers.interrupt import Stop

MOST_THREADS: Final = 2
"""As many cores were measured."""


@dataclass(frozen=True, slots=True, eq=False)
class LinearOptimum:
    """An optimum of a linear relaxation.

    Attributes
    ----------
    values : FloatArray
        Of all variables.
    row_duals : FloatArray
        What one more unit of the limit of each constraint costs. [objective units]
    worth : FloatArray
        What one more unit of each variable would save in its constraints: no more than its cost, where it
        is at its lower bound. [objective units]
    """

    values: FloatArray
    row_duals: FloatArray
    worth: FloatArray


def linear_optimum(
    model: cp_model.CpModel, continuous: Collection[int], stop: Stop, limit_s: float = math.inf
) -> LinearOptimum | None:
    """The optimum of a model whose variables need not be whole; None where it has none, or not in time.

    Parameters
    ----------
    model : CpModel
        With an objective.
    continuous : Collection[int]
        Variables that are finely divided, which are scaled by their range.
    stop : Stop
        Ends it without an answer.
    limit_s : float
        Time after which it is given up. [s]
    """
    program = read_program(model)
    relaxed = relax(program, continuous)
    with Workers(1, ()) as workers:
        try:
            with ending(workers, stop, limit_s):
                cost, cores = program.cost * relaxed.column_scale, len(os.sched_getaffinity(0))
                answer = workers.solve_one(whole_job(relaxed, cost, cores))
        except WorkersStoppedError:
            return None
    if answer.values is None or answer.row_duals is None:
        return None
    scale = relaxed.column_scale
    worth = relaxed.rows.T @ answer.row_duals / scale
    return LinearOptimum(answer.values * scale, answer.row_duals / relaxed.row_scale, worth)


def whole_job(relaxation: Relaxation, cost: FloatArray, cores: int) -> Job:
    """The linear relaxation of a whole model, beside which nothing else runs on so many cores."""
    return Job(rows_of(relaxation), cost, None, threads=min(cores, MOST_THREADS))


def rows_of(relaxation: Relaxation) -> Rows:
    """A relaxation as HiGHS takes it."""
    return Rows(
        relaxation.rows,
        relaxation.row_lower,
        relaxation.row_upper,
        relaxation.lower,
        relaxation.upper,
        relaxation.whole,
    )
