"""Session of a page: its plans and its running solve, shared by all browsers."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from typing import Final

from fleetplan.fleet.errors import Issue
from fleetplan.planner.commands.page.messages import (
    Activity,
    Message,
    PlanAnswer,
    PlanRequest,
    PlanStep,
    Settings,
)
from fleetplan.planner.commands.page.planner_process import PlannerProcess
from fleetplan.planner.plan import Infeasible, Plan

MOST_PLANS: Final = 20
"""Number of plans kept; the oldest is dropped first. A plan of twelve services takes several MB."""

MOST_STEPS: Final = 500
"""Number of steps of a solve that are drawn; more would be closer than a pixel."""

CANCEL_S: Final = 3.0
"""Time for a cancelled search to end by itself and keep its evaluated candidates. [s]"""

LOST: Final = "the planning process ended, perhaps out of memory; the next plan starts a new one"
CANCELLED: Final = "cancelled"


class BusyError(Exception):
    """A solve is already running."""


@dataclass(frozen=True, slots=True)
class KeptPlan:
    """A plan of the page, or a proof of infeasibility.

    Attributes
    ----------
    number : int
        Number, counted from 1.
    title : str
        Description of the changes.
    scenarios, assignments : tuple[str, ...]
        Scenarios and assignments that make the changes.
    outcome : Plan or Infeasible
        Plan, or proof of infeasibility.
    first_s, whole_s : float
        Time from the question to the first plan, and to the answer. [s]
    """

    number: int
    title: str
    scenarios: tuple[str, ...]
    assignments: tuple[str, ...]
    outcome: Plan | Infeasible
    first_s: float | None
    whole_s: float


@dataclass(slots=True)
class RunningSolve:
    """A running solve.

    Attributes
    ----------
    question : PlanRequest
        Question being solved.
    title : str
        Description of the changes.
    started : float
        Start time by `time.monotonic`. [s]
    doing : str
        Description of the current step.
    steps : list[tuple[float, Step]]
        Plans and bounds with the time since the question. [s]
    first_s : float or None
        Time from the question to the first plan; None before it. [s]
    stopping, cancelled : bool
        Whether a stop was requested, and whether to discard the plan.
    """

    question: PlanRequest
    title: str
    started: float = field(default_factory=time.monotonic)
    doing: str = "starting"
    steps: list[tuple[float, PlanStep]] = field(default_factory=list)
    first_s: float | None = None
    stopping: bool = False
    cancelled: bool = False

    @property
    def elapsed_s(self) -> float:
        """Time since the question. [s]"""
        return time.monotonic() - self.started


class Session:
    """One fleet file with its plans.

    Parameters
    ----------
    settings : Settings
        Fleet file and limits.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._lock = threading.RLock()
        self._plans: dict[int, KeptPlan] = {}
        self._solving: RunningSolve | None = None
        self._asked = 0
        self._made = 0
        self._issues: tuple[Issue, ...] = ()
        self._reason = ""
        self._closed = False
        with self._lock:
            self._process: PlannerProcess | None = self._started()

    def ask(
        self, scenarios: tuple[str, ...], assignments: tuple[str, ...], title: str, begin: int | None = None
    ) -> None:
        """Start to plan a changed fleet.

        Parameters
        ----------
        scenarios, assignments : tuple[str, ...]
            Scenarios and assignments to apply to the fleet file.
        title : str
            Description of the changes.
        begin : int or None
            Number of the plan from which the search starts.

        Raises
        ------
        BusyError
            A solve is already running.
        """
        with self._lock:
            if self._solving is not None or self._closed:
                raise BusyError
            self._asked += 1
            known = self._plans.get(begin) if begin is not None else None
            plan = known.outcome if known is not None and isinstance(known.outcome, Plan) else None
            question = PlanRequest(self._asked, scenarios, assignments, plan)
            self._solving = RunningSolve(question, title)
            self._issues, self._reason = (), ""
            if self._process is None:
                self._process = self._started()
            self._process.ask(question)

    def stop(self, *, keep: bool) -> None:
        """End the running solve; keep its best plan, or cancel it."""
        with self._lock:
            solving, process = self._solving, self._process
            if solving is None or process is None:
                return
            solving.stopping = True
            if not keep and not solving.cancelled:
                solving.cancelled = True
                timer = threading.Timer(CANCEL_S, self._give_up, (solving,))
                timer.daemon = True
                timer.start()
            process.stop(solving.question.number)

    def close(self) -> None:
        """End the process that solves."""
        with self._lock:
            self._closed = True
            process, self._process = self._process, None
        if process is not None:
            process.end()

    def plan(self, number: int) -> KeptPlan | None:
        """Return a plan by its number."""
        with self._lock:
            return self._plans.get(number)

    def plans(self) -> tuple[KeptPlan, ...]:
        """Return the plans in the order of their solves."""
        with self._lock:
            return tuple(self._plans.values())

    def now(self) -> tuple[RunningSolve | None, tuple[Issue, ...], str]:
        """Return the running solve, and the issues or reason with which the last one ended without a plan."""
        with self._lock:
            return self._solving, self._issues, self._reason

    def _started(self) -> PlannerProcess:
        return PlannerProcess(self.settings, self._hear, self._lost)

    def _hear(self, message: Message) -> None:
        with self._lock:
            solving = self._solving
            if solving is None or message.number != solving.question.number:
                return
            match message:
                case Activity(text=text):
                    solving.doing = text
                case PlanStep():
                    if solving.first_s is None and message.objective_usd is not None:
                        solving.first_s = solving.elapsed_s
                    solving.steps = [*solving.steps, (solving.elapsed_s, message)][-MOST_STEPS:]
                case PlanAnswer():
                    self._end(solving, message)

    def _end(self, solving: RunningSolve, answer: PlanAnswer) -> None:
        self._solving = None
        if solving.cancelled:
            self._reason = CANCELLED
            return
        self._issues, self._reason = answer.issues, answer.reason
        if answer.outcome is None:
            return
        self._made += 1
        question = solving.question
        self._plans[self._made] = KeptPlan(
            self._made,
            solving.title,
            question.scenarios,
            question.assignments,
            answer.outcome,
            solving.first_s,
            solving.elapsed_s,
        )
        while len(self._plans) > MOST_PLANS:
            del self._plans[next(iter(self._plans))]

    def _give_up(self, solving: RunningSolve) -> None:
        """Replace the process of a cancelled search that does not end by itself."""
        with self._lock:
            if self._solving is not solving or self._process is None:
                return
            self._process.end()
            self._process = None if self._closed else self._started()
            self._solving, self._reason = None, CANCELLED

    def _lost(self, process: PlannerProcess) -> None:
        with self._lock:
            if process is not self._process:
                return
            self._process = None
            if self._solving is not None:
                self._solving, self._reason = None, LOST
