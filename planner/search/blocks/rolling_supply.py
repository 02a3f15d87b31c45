"""The supply of a rolling construction: what it begins with, and what a stage is told that more costs."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Final

import numpy as np

from fleetplan.planner.search.blocks.subprograms import Parts
from fleetplan.planner.search.solvers.highs_jobs import Answer, Array, Rows

if TYPE_CHECKING:
    from fleetplan.planner.search.blocks.composite_jobs import RollingJob

TOLERANCE: Final = 1e-6
"""How far from a whole number a value may be that stands for it."""

TimedSolve = Callable[[Rows, Array, float], Answer]
"""Solves a program with a cost in so many seconds."""


def first_supply(job: RollingJob, parts: Parts, solve: TimedSolve, seconds: float) -> Array:
    """The supply that stages begin with, and add to what is short: whole units of the root's.

    No more leave than in the root, rounded up: hosts at the end of their lives have to. Whole lots are
    bought, and fewer than the root has where it parts one among several regions.

    Parameters
    ----------
    job : RollingJob
        The program, and which of its variables are supply.
    parts : Parts
        Of the program.
    solve : callable
        Solves a program.
    seconds : float
        Time for it. [s]

    Returns
    -------
    Array
        Of each variable of supply. Rows of supply alone hold, unless no supply that is no larger keeps them.
    """
    supply = np.flatnonzero(job.growth)
    values, more = job.root[supply], job.growth[supply] > 0
    most = np.where(more, np.floor(values + TOLERANCE), np.ceil(values - TOLERANCE))
    others = np.flatnonzero(job.growth == 0)
    part = parts.part(supply, np.zeros(len(job.cost)), ~parts.rows_of(others))
    least = np.minimum(part.program.lower, most)
    answer = solve(part.program.within(least, most), -np.ones(len(supply)), seconds)
    return most if answer.values is None else answer.values


def horizon_cost(job: RollingJob, periods_left: Collection[int]) -> Array:
    """What variables cost a stage that looks ahead: supply is needed in the periods that are left as well.

    At its own cost a stage would rent what it lacks for its period alone, and the stages of later periods
    would rent the same again, though a term of three years or a purchase costs less than all of them. So
    supply for one of four periods that are left costs four times as much.

    Parameters
    ----------
    job : RollingJob
        Says what variables cost, and in which periods supply helps.
    periods_left : Collection[int]
        Periods that have a stage left, that of this one among them.

    Returns
    -------
    Array
        Of all variables. [objective units]
    """
    left = np.zeros(job.helps.shape[1], dtype=bool)
    left[list(periods_left)] = True
    supply = np.flatnonzero(job.growth)
    helped = np.asarray(job.helps[:, left].sum(axis=1)).ravel()
    more = (job.growth[supply] > 0) & (helped > 0)
    cost = job.cost.copy()
    cost[supply[more]] *= left.sum() / helped[more]
    return cost
