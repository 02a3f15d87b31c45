"""Messages between the page and the process that solves, pickled."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from fleetplan.fleet.errors import Issue
from fleetplan.planner.plan import Infeasible, Plan


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings common to every solve of a page.

    Attributes
    ----------
    path : Path
        Path of the fleet file.
    time_limit_s : float
        Time limit of each solve. [s]
    gap_ratio : float
        Optimality gap at which a solve ends.
    seed : int
        Seed of the solver.
    baseline : Path or None
        Plan in force.
    """

    path: Path
    time_limit_s: float
    gap_ratio: float
    seed: int
    baseline: Path | None = None


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """A fleet to plan.

    Attributes
    ----------
    number : int
        Number of the solve, repeated in its answers.
    scenarios, assignments : tuple[str, ...]
        Scenarios and assignments to apply to the fleet file.
    begin : Plan or None
        Plan from which the search starts.
    """

    number: int
    scenarios: tuple[str, ...]
    assignments: tuple[str, ...]
    begin: Plan | None = None


@dataclass(frozen=True, slots=True)
class StopRequest:
    """A request to end the search for a question at its best plan."""

    number: int


@dataclass(frozen=True, slots=True)
class Activity:
    """Description of the current step of a question."""

    number: int
    text: str


@dataclass(frozen=True, slots=True)
class PlanStep:
    """A better plan or bound.

    Attributes
    ----------
    number : int
        Number of the question.
    stage : str
        Objective of the current stage.
    objective_usd, bound_usd : float or None
        TCO of the best plan, and lower bound. [USD]
    """

    number: int
    stage: str
    objective_usd: float | None
    bound_usd: float | None


@dataclass(frozen=True, slots=True)
class PlanAnswer:
    """The final answer to a question.

    Attributes
    ----------
    number : int
        Number of the question.
    outcome : Plan or Infeasible or None
        Verified plan, or proof of infeasibility.
    issues : tuple[Issue, ...]
        Mistakes in the changed fleet.
    reason : str
        Why there is neither a plan nor a proof.
    """

    number: int
    outcome: Plan | Infeasible | None = None
    issues: tuple[Issue, ...] = ()
    reason: str = ""


Message = Activity | PlanStep | PlanAnswer
