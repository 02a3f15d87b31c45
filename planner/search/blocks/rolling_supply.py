"""The supply that a rolling construction begins with: whole units and lots of what the relaxation has."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
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


def first_supply(job: RollingJob, parts: Parts, root: Array, solve: TimedSolve, seconds: float) -> Array:
    """The supply that stages begin with, and add to what is short: whole units of the root's.

    No more leave than in the root, rounded up: hosts at the end of their lives have to. Whole lots are
    bought, and fewer than the root has where it parts one among several regions.

    Parameters
    ----------
    job : RollingJob
        The program, and which of its variables are supply.
    parts : Parts
        Of the program.
    root : Array
        Values that the construction goes by.
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
    values, more = root[supply], job.growth[supply] > 0
    most = np.where(more, np.floor(values + TOLERANCE), np.ceil(values - TOLERANCE))
    others = np.flatnonzero(job.growth == 0)
    part = parts.part(supply, np.zeros(len(job.cost)), ~parts.rows_of(others))
    least = np.minimum(part.program.lower, most)
    answer = solve(part.program.within(least, most), -np.ones(len(supply)), seconds)
    return most if answer.values is None else answer.values


def root_of_whole_supply(job: RollingJob, solve: TimedSolve, ends: float) -> tuple[Array, Array]:
    """Values and ranks of the best plan whose supply is whole while what runs is not, of the slots it uses.

    The relaxation opens a pool by a tenth, and with it a tenth of its reserve. Where its slots leave nothing
    that is whole, more of them are looked at.

    Parameters
    ----------
    job : RollingJob
        The program; `supply` says what is whole.
    solve : callable
        Solves a program.
    ends : float
        When it is to be done, by the monotonic clock. [s]

    Returns
    -------
    tuple[Array, Array]
        The root and the rank of slots; those of the job where nothing was found in time.
    """
    program = job.program
    for width in job.widths:
        closed = (job.slot >= 0) & (job.rank[job.slot] > width) & (program.lower <= 0)
        upper = np.where(closed, np.minimum(program.upper, 0.0), program.upper)
        bounded = replace(program.within(program.lower, upper), whole=program.whole & job.supply)
        answer = solve(bounded, job.cost, ends - time.monotonic())
        if not answer.infeasible:
            break
    if answer.values is None:
        return job.root, job.rank
    used = np.zeros(len(job.rank), dtype=bool)
    used[job.slot[(job.slot >= 0) & (answer.values > TOLERANCE)]] = True
    return answer.values, np.where(used, 0.0, job.rank + 1.0)
