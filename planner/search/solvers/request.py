"""What is asked of a solve of one model, and what it answers."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import numpy as np
from numpy.typing import NDArray
from ortools.sat.python import cp_model

from fleetplan.planner.search.deadline import NEVER, Deadline
from fleetplan.planner.search.solvers.interrupt import Stop
from fleetplan.planner.search.solvers.job_times import OnJob, nobody
from fleetplan.planner.search.solvers.seats import OpenSeats


class ModelStatus(StrEnum):
    """What is known of a model."""

    SOLVED = "solved"
    FOUND = "found"
    INFEASIBLE = "infeasible"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class ModelOutcome:
    """What one model gave.

    Attributes
    ----------
    status : ModelStatus
        SOLVED where the gap is closed.
    values : CpSolver or None
        Holds the values of the best solution.
    objective, bound : float or None
        In units of the model's objective.
    bound_source : str
        Who proved the bound, or that there is no plan; never CP-SAT with presolve alone.
    deterministic_time : float
        Of CP-SAT. [solver units]
    """

    status: ModelStatus
    values: cp_model.CpSolver | None
    objective: float | None
    bound: float | None
    bound_source: str
    deterministic_time: float


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a solve goes on without any plan; then it gives up, without a word on whether there is one.

    Attributes
    ----------
    rounds : float
        Of a search over blocks; infinite if it never gives up.
    seconds : float
        Wall time, or work where the clock must not decide; infinite if it never gives up. [s]
    """

    rounds: float = math.inf
    seconds: float = math.inf

    @property
    def ends(self) -> bool:
        """Whether there is any limit."""
        return min(self.rounds, self.seconds) < math.inf


PATIENT: Final = Patience()


Enough = Callable[[float, float], bool]
"""Whether an objective and a bound are close enough to stop."""


@dataclass(frozen=True, slots=True)
class Overtime:
    """More time for a search over blocks whose plan is far from good when its time is over, until it is.

    Attributes
    ----------
    seconds : float
        So much more at the most. [s]
    good : callable
        Whether objective and bound are close enough to do without.
    """

    seconds: float
    good: Enough


@dataclass(frozen=True, slots=True)
class SolverLimits:
    """Limits of one model.

    Attributes
    ----------
    time_limit_s : float
        Wall time; at most `FIRST_PLAN_GRACE_S` more where there is no plan by then, unless patience ends
        or the question is over. [s]
    seed, workers : int
        Of CP-SAT.
    stop : Stop
        Ends the solve at its best solution.
    patience : Patience
        When to give up without a plan.
    overtime : Overtime or None
        For a plan that is far from good by then.
    latest : Deadline
        When the question is over that the model is a part of.
    seats : callable or None
        Opens the seats of a search over blocks; None for processes, as many as workers and cores.
    on_job : callable
        Told of the times of each job of a search over blocks.
    """

    time_limit_s: float
    seed: int
    workers: int
    stop: Stop
    patience: Patience = PATIENT
    overtime: Overtime | None = None
    latest: Deadline = NEVER
    seats: OpenSeats | None = None
    on_job: OnJob = nobody


@dataclass(frozen=True, slots=True)
class Step:
    """What a part of a search did.

    Attributes
    ----------
    source : str
        The part: CP-SAT or HiGHS on the whole model; root relaxation, pricing, master or neighbourhood on its
        blocks.
    detail : str
        What it did.
    objective, bound : float or None
        The best ones after it.
    values : array of int or None
        Of all variables in the best plan, where the part of the search tells them.
    """

    source: str
    detail: str
    objective: float | None
    bound: float | None
    values: NDArray[np.int64] | None = None


Listener = Callable[[Step], None]
"""Told of every better objective or bound."""
