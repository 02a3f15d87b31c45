"""Supply of a rolling construction: its start, and the cost of more in the eyes of a stage."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Final

import numpy as np

from fleetplan.planner.search.blocks.subprograms import Parts
from fleetplan.planner.search.solvers.highs_jobs import Answer, Array, Rows

if TYPE_CHECKING:
    from fleetplan.planner.search.blocks.composite_jobs import RollingJob

TOLERANCE: Final = 1e-6
"""Largest distance from a whole number that still counts as that number."""

TimedSolve = Callable[[Rows, Array, float], Answer]
"""Function that solves a program with these costs within a time in seconds."""


def first_supply(job: RollingJob, parts: Parts, solve: TimedSolve, seconds: float) -> Array:
    """Return the supply from which stages start: the root's, in whole units.

    No more units leave than in the root, rounded up, because hosts at the end of their lives must. Lots are
    whole, and fewer than in the root where it splits one among regions.

    Parameters
    ----------
    job : RollingJob
        Program, with the roles of its variables.
    parts : Parts
        Parts of the program.
    solve : callable
        Solves a program.
    seconds : float
        Time limit. [s]

    Returns
    -------
    Array
        Values of the supply variables. They satisfy the rows with supply alone, unless no smaller supply
        does.
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
    """Return the costs that a stage sees: supply also counts for the remaining periods.

    At its own cost, a stage would rent for one period, and later stages would rent the same again, although a
    three-year term or a purchase costs less in total. Therefore supply for one of four remaining periods
    costs four times as much.

    Parameters
    ----------
    job : RollingJob
        Costs of variables, and the periods in which supply counts.
    periods_left : Collection[int]
        Periods with an undecided stage, including this one's.

    Returns
    -------
    Array
        Costs of all variables. [objective units]
    """
    left = np.zeros(job.helps.shape[1], dtype=bool)
    left[list(periods_left)] = True
    supply = np.flatnonzero(job.growth)
    helped = np.asarray(job.helps[:, left].sum(axis=1)).ravel()
    more = (job.growth[supply] > 0) & (helped > 0)
    cost = job.cost.copy()
    cost[supply[more]] *= left.sum() / helped[more]
    return cost
