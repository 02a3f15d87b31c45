"""Request and outcome of a solve of one model."""

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
    """State of knowledge about a model."""

    SOLVED = "solved"
    FOUND = "found"
    INFEASIBLE = "infeasible"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class ModelOutcome:
    """Outcome of a solve of one model.

    Attributes
    ----------
    status : ModelStatus
        SOLVED if the gap is closed.
    values : CpSolver or None
        Solver with the values of the best solution.
    objective, bound : float or None
        In units of the model's objective.
    bound_source : str
        Source of the bound, or of the proof of infeasibility; never CP-SAT with presolve alone.
    deterministic_time : float
        CP-SAT's work. [solver units]
    """

    status: ModelStatus
    values: cp_model.CpSolver | None
    objective: float | None
    bound: float | None
    bound_source: str
    deterministic_time: float


@dataclass(frozen=True, slots=True)
class Patience:
    """Limits of a solve without any plan; it then gives up, without a proof of infeasibility.

    Attributes
    ----------
    rounds : float
        Rounds of a search over blocks; infinite for no limit.
    seconds : float
        Wall time, or work in reproducible runs; infinite for no limit. [s]
    """

    rounds: float = math.inf
    seconds: float = math.inf

    @property
    def ends(self) -> bool:
        """Return whether there is a limit."""
        return min(self.rounds, self.seconds) < math.inf


PATIENT: Final = Patience()


Enough = Callable[[float, float], bool]
"""Function that returns whether an objective and a bound are close enough to stop."""


@dataclass(frozen=True, slots=True)
class ExtraTime:
    """Extra time for a search over blocks whose plan is far from its bound at the time limit.

    Attributes
    ----------
    seconds : float
        Largest extra time. [s]
    good : callable
        Returns whether objective and bound are close enough without extra time.
    """

    seconds: float
    good: Enough


@dataclass(frozen=True, slots=True)
class SolverLimits:
    """Limits of a solve of one model.

    Attributes
    ----------
    time_limit_s : float
        Wall time; without a plan, up to `FIRST_PLAN_GRACE_S` more, unless patience or the deadline ends it.
        [s]
    seed, workers : int
        CP-SAT's random seed and threads.
    stop : Stop
        Ends the solve at its best solution.
    patience : Patience
        When to give up without a plan.
    overtime : ExtraTime or None
        Extra time for a plan far from its bound.
    latest : Deadline
        Deadline of the question that the model belongs to.
    seats : callable or None
        Opens the seats of a search over blocks; None for local processes, as many as workers and cores.
    on_job : callable
        Called with the times of each job of a search over blocks.
    """

    time_limit_s: float
    seed: int
    workers: int
    stop: Stop
    patience: Patience = PATIENT
    extra_time: ExtraTime | None = None
    latest: Deadline = NEVER
    seats: OpenSeats | None = None
    on_job: OnJob = nobody


@dataclass(frozen=True, slots=True)
class Step:
    """Step of a search, for its log.

    Attributes
    ----------
    source : str
        Search component: CP-SAT or HiGHS on the whole model; root relaxation, pricing, master or
        neighbourhood on its blocks.
    detail : str
        What it did.
    objective, bound : float or None
        Best values after the step.
    values : array of int or None
        Values of all variables in the best plan, if the component reports them.
    """

    source: str
    detail: str
    objective: float | None
    bound: float | None
    values: NDArray[np.int64] | None = None


Listener = Callable[[Step], None]
"""Callback for every better objective or bound."""
