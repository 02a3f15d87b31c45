"""Request and outcome of a search over blocks."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from fleetplan.planner.search.blocks.columns import ColumnMemory
from fleetplan.planner.search.blocks.incumbent import Completion
from fleetplan.planner.search.blocks.roles import VariableRoles
from fleetplan.planner.search.blocks.split import Split
from fleetplan.planner.search.solvers.job_times import OnJob, nobody
from fleetplan.planner.search.solvers.matrix import FloatArray, IntArray
from fleetplan.planner.search.solvers.request import PATIENT, ExtraTime, Listener, Patience
from fleetplan.planner.search.solvers.seats import OpenSeats


@dataclass(frozen=True, slots=True, eq=False)
class BlockOutcome:
    """Outcome of a search over blocks.

    Attributes
    ----------
    values : IntArray or None
        Exact values of all variables.
    objective : float or None
        Objective at these values. [objective units]
    bound : float
        Lower bound. [objective units]
    bound_source : str
        Component that proved the bound.
    infeasible : bool
        Whether a relaxation is infeasible, within floating-point tolerances.
    work_s : float
        Work. [s]
    """

    values: IntArray | None
    objective: float | None
    bound: float
    bound_source: str
    infeasible: bool
    work_s: float


@dataclass(frozen=True, slots=True, eq=False)
class WarmStart:
    """Knowledge of a model from earlier solves.

    Attributes
    ----------
    memory : ColumnMemory
        Known columns; receives new ones.
    row_duals : FloatArray or None
        Dual prices of all rows at which rounds begin; None to take those of the linear relaxation. [objective
        units]
    """

    memory: ColumnMemory = field(default_factory=ColumnMemory)
    row_duals: FloatArray | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """Program to solve, with limits and callbacks.

    Attributes
    ----------
    parts : Split
        Program in blocks.
    roles : VariableRoles
        Role of each variable.
    continuous : Collection[int]
        Variables that need not be whole in a relaxation.
    indicators : Collection[int]
        Indicator variables, whose rows the linear relaxation leaves out.
    start : IntArray or None
        Starting plan.
    seats : callable
        Opens the seats for its jobs.
    complete : callable
        Makes a plan exact if its columns alone are not.
    enough : callable
        Returns whether an objective and a bound are close enough.
    on_step : callable
        Called after every step.
    patience : Patience
        When to give up without a plan.
    overtime : ExtraTime or None
        Extra time for a plan far from its bound when time is over.
    warm_start : WarmStart
        Columns and prices to start with.
    on_job : callable
        Called with the times of each job.
    """

    parts: Split
    roles: VariableRoles
    continuous: Collection[int]
    indicators: Collection[int]
    start: IntArray | None
    seats: OpenSeats
    complete: Completion
    enough: Callable[[float, float], bool]
    on_step: Listener
    patience: Patience = PATIENT
    extra_time: ExtraTime | None = None
    warm_start: WarmStart = field(default_factory=WarmStart)
    on_job: OnJob = nobody
