"""What the page and the process that plans say to each other, pickled."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from fleetplan.fleet.errors import Issue
from fleetplan.planner.plan import Infeasible, Plan


@dataclass(frozen=True, slots=True)
class Settings:
    """What is the same for every solve of a page.

    Attributes
    ----------
    path : Path
        The fleet file.
    time_limit_s : float
        Of each solve. [s]
    gap_ratio : float
        Optimality gap at which a plan is good enough.
    seed : int
        Of the solver.
    baseline : Path or None
        The plan in force.
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
        Of the solve; its answers carry it.
    scenarios, assignments : tuple[str, ...]
        What is laid on the fleet file.
    begin : Plan or None
        The plan that the search begins with.
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
class Doing:
    """What is being done for a question, in words."""

    number: int
    text: str


@dataclass(frozen=True, slots=True)
class PlanStep:
    """A better plan or bound.

    Attributes
    ----------
    number : int
        Of the question.
    stage : str
        What is being minimised.
    objective_usd, bound_usd : float or None
        TCO of the best plan, and what no plan costs less than. [USD]
    """

    number: int
    stage: str
    objective_usd: float | None
    bound_usd: float | None


@dataclass(frozen=True, slots=True)
class PlanAnswer:
    """The end of a question.

    Attributes
    ----------
    number : int
        Of the question.
    outcome : Plan or Infeasible or None
        The verified plan, or the proof that there is none.
    issues : tuple[Issue, ...]
        What is wrong with the changed fleet.
    reason : str
        Why there is neither plan nor proof.
    """

    number: int
    outcome: Plan | Infeasible | None = None
    issues: tuple[Issue, ...] = ()
    reason: str = ""


Message = Doing | PlanStep | PlanAnswer
