"""Linear relaxation of a whole model: its optimum and the dual prices of its constraints."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from ortools.sat.python import cp_model

from fleetplan.fleet.machine import usable_cores
from fleetplan.planner.search.blocks.composite_jobs import SlottedJob
from fleetplan.planner.search.solvers.highs_jobs import Answer, Job
from fleetplan.planner.search.solvers.interrupt import Stop
from fleetplan.planner.search.solvers.matrix import BoolArray, FloatArray, IntArray, read_program
from fleetplan.planner.search.solvers.relaxation import Relaxation, relax
from fleetplan.planner.search.solvers.seats import ProcessSeats
from fleetplan.planner.search.solvers.workers import Workers, WorkersStoppedError, ending


@dataclass(frozen=True, slots=True, eq=False)
class LinearOptimum:
    """Optimum of a linear relaxation.

    Attributes
    ----------
    values : FloatArray
        Values of all variables.
    row_duals : FloatArray
        Dual price of each constraint: cost of one more unit of its limit. [objective units]
    worth : FloatArray
        Value of one more unit of each variable in its constraints; at most its cost if it is at its lower
        bound. [objective units]
    """

    values: FloatArray
    row_duals: FloatArray
    worth: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class LinearOutcome:
    """Outcome of a linear relaxation.

    Attributes
    ----------
    optimum : LinearOptimum or None
        None if there is none, or HiGHS found none.
    infeasible : bool
        Whether it is infeasible, within floating-point tolerances.
    """

    optimum: LinearOptimum | None
    infeasible: bool


def linear_optimum(
    model: cp_model.CpModel,
    continuous: Collection[int],
    stop: Stop,
    limit_s: float = math.inf,
    indicators: Collection[int] = (),
) -> LinearOptimum | None:
    """Return the optimum of a model without integrality; None if it has none, or not in time.

    Parameters
    ----------
    model, continuous, stop, limit_s, indicators
        As in `linear_outcomes`.
    """
    found = linear_outcomes([model], continuous, stop, limit_s, indicators)
    return None if found is None else found[0].optimum


def linear_outcomes(
    models: Sequence[cp_model.CpModel],
    continuous: Collection[int],
    stop: Stop,
    limit_s: float = math.inf,
    indicators: Collection[int] = (),
) -> list[LinearOutcome] | None:
    """Solve the linear relaxations of models with the same variables in parallel; None if not in time.

    Parameters
    ----------
    models : Sequence[CpModel]
        Models, each with an objective.
    continuous : Collection[int]
        Finely divided variables, which are scaled by their range.
    stop : Stop
        Aborts without an answer.
    limit_s : float
        Time limit. [s]
    indicators : Collection[int]
        Variables whose rows lose their limits.
    """
    relaxations, jobs = [], []
    for model in models:
        program = read_program(model)
        relaxed = relax(program, continuous).without_limits_on(indicators)
        relaxations.append(relaxed)
        jobs.append(whole_job(relaxed, program.cost * relaxed.variable_scale))
    with Workers(ProcessSeats(min(len(models), usable_cores()))) as workers:
        try:
            with ending(workers, stop, limit_s):
                answers = workers.solve(jobs)
        except WorkersStoppedError:
            return None
    return [_outcome(*each) for each in zip(relaxations, answers, strict=True)]


def _outcome(relaxed: Relaxation, answer: Answer) -> LinearOutcome:
    """Convert an answer to the units of the model."""
    if answer.values is None or answer.row_duals is None:
        return LinearOutcome(None, answer.infeasible)
    scale = relaxed.variable_scale
    worth = relaxed.rows.T @ answer.row_duals / scale
    optimum = LinearOptimum(answer.values * scale, answer.row_duals / relaxed.row_scale, worth)
    return LinearOutcome(optimum, infeasible=False)


def slotted_job(
    relaxation: Relaxation, cost: FloatArray, slot: IntArray, open_slots: BoolArray
) -> SlottedJob:
    """Return the linear relaxation of a model whose optimum uses few slots beyond the open ones."""
    return SlottedJob(program=relaxation.program, cost=cost, slot=slot, open_slots=open_slots)


def whole_job(relaxation: Relaxation, cost: FloatArray) -> Job:
    """Return the linear relaxation of a model."""
    return Job(relaxation.program, cost, None)
