"""The linear relaxation of a whole model: its optimum, and what the limits of its constraints cost."""

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


@dataclass(frozen=True, slots=True, eq=False)
class LinearOutcome:
    """What is known of a linear relaxation.

    Attributes
    ----------
    optimum : LinearOptimum or None
        None where there is none, or HiGHS found none.
    infeasible : bool
        Whether there is none, within the tolerances of floating point.
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
    """The optimum of a model whose variables need not be whole; None where it has none, or not in time.

    Parameters
    ----------
    model, continuous, stop, limit_s, indicators
        As for `linear_outcomes`.
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
    """Solve models of the same variables, which need not be whole, side by side; None if not in time.

    Parameters
    ----------
    models : Sequence[CpModel]
        Each with an objective.
    continuous : Collection[int]
        Variables that are finely divided, which are scaled by their range.
    stop : Stop
        Ends it without an answer.
    limit_s : float
        Time after which it is given up. [s]
    indicators : Collection[int]
        Variables whose rows have no limits.
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
    """An answer in the units of the model."""
    if answer.values is None or answer.row_duals is None:
        return LinearOutcome(None, answer.infeasible)
    scale = relaxed.variable_scale
    worth = relaxed.rows.T @ answer.row_duals / scale
    optimum = LinearOptimum(answer.values * scale, answer.row_duals / relaxed.row_scale, worth)
    return LinearOutcome(optimum, infeasible=False)


def slotted_job(
    relaxation: Relaxation, cost: FloatArray, slot: IntArray, open_slots: BoolArray
) -> SlottedJob:
    """The linear relaxation of a whole model, whose optimum uses few slots beside those that are open."""
    return SlottedJob(program=relaxation.program, cost=cost, slot=slot, open_slots=open_slots)


def whole_job(relaxation: Relaxation, cost: FloatArray) -> Job:
    """The linear relaxation of a whole model."""
    return Job(relaxation.program, cost, None)
