"""What is asked of a search over blocks, and what it answers."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from fleetplan.planner.search.blocks.columns import ColumnMemory
from fleetplan.planner.search.blocks.incumbent import Completion
from fleetplan.planner.search.blocks.roles import VariableRoles
from fleetplan.planner.search.blocks.split import Split
from fleetplan.planner.search.solvers.job_times import OnJob, nobody
from fleetplan.planner.search.solvers.matrix import FloatArray, IntArray
from fleetplan.planner.search.solvers.request import PATIENT, Listener, Overtime, Patience
from fleetplan.planner.search.solvers.seats import OpenSeats


@dataclass(frozen=True, slots=True, eq=False)
class BlockOutcome:
    """What a search over blocks found.

    Attributes
    ----------
    values : IntArray or None
        Of all variables, exact.
    objective : float or None
        Of them. [objective units]
    bound : float
        No plan costs less. [objective units]
    bound_source : str
        What proved the bound.
    infeasible : bool
        Whether a relaxation has no solution, within the tolerances of floating point.
    work_s : float
        Work in deterministic seconds.
    """

    values: IntArray | None
    objective: float | None
    bound: float
    bound_source: str
    infeasible: bool
    work_s: float


@dataclass(frozen=True, slots=True, eq=False)
class WarmStart:
    """What is known of a model from other solves of it.

    Attributes
    ----------
    memory : ColumnMemory
        Columns; receives those that are found.
    row_duals : FloatArray or None
        Prices of all rows at which rounds begin; None for those of the linear relaxation of the whole model.
        [objective units]
    """

    memory: ColumnMemory = field(default_factory=ColumnMemory)
    row_duals: FloatArray | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Request:
    """What is to be solved.

    Attributes
    ----------
    parts : Split
        The program in blocks.
    roles : VariableRoles
        What its variables decide.
    continuous : Collection[int]
        Variables that a relaxation need not keep whole.
    indicators : Collection[int]
        Variables whose rows the linear relaxation of everything does without.
    start : IntArray or None
        A plan to begin with.
    seats : callable
        Opens the seats that do its jobs.
    complete : callable
        Makes a plan exact where columns alone are not.
    enough : callable
        Whether an objective and a bound are close enough.
    on_step : callable
        Told after every step.
    patience : Patience
        When to give up without a plan.
    overtime : Overtime or None
        For a plan that is far from good when the time is over.
    warm_start : WarmStart
        What it begins with.
    on_job : callable
        Told of the times of each job.
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
    overtime: Overtime | None = None
    warm_start: WarmStart = field(default_factory=WarmStart)
    on_job: OnJob = nobody
