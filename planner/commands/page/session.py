"""The plans of a page and the solve that is running: what every browser that shows the page sees."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from typing import Final

from fleetplan.fleet.errors import Issue
from fleetplan.planner.commands.page.messages import (
    Doing,
    Message,
    PlanAnswer,
    PlanRequest,
    PlanStep,
    Settings,
)
from fleetplan.planner.commands.page.planner_process import PlannerProcess
from fleetplan.planner.plan import Infeasible, Plan

MOST_PLANS: Final = 20
"""Plans that are kept; the oldest goes first. A plan of twelve services takes some megabytes."""

MOST_STEPS: Final = 500
"""Steps of a solve that are drawn: more are closer than a pixel."""

CANCEL_S: Final = 3.0
"""Time for a search that is cancelled to end by itself, which keeps what it has evaluated. [s]"""

LOST: Final = "the process that plans has ended; out of memory? It starts anew with the next plan."
CANCELLED: Final = "cancelled"


class BusyError(Exception):
    """A plan is being made already."""


@dataclass(frozen=True, slots=True)
class KeptPlan:
    """A plan of the page, or the proof that there is none.

    Attributes
    ----------
    number : int
        Counted from 1.
    title : str
        What was changed.
    scenarios, assignments : tuple[str, ...]
        The same as the fleet file has it.
    outcome : Plan or Infeasible
        What was found.
    first_s, whole_s : float
        From the question to the first plan that the search had, and to the answer. [s]
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
    """The solve that is running.

    Attributes
    ----------
    question : PlanRequest
        What is asked.
    title : str
        What was changed, in words.
    started : float
        By `time.monotonic`. [s]
    doing : str
        What is being done, in words.
    steps : list[tuple[float, Step]]
        Plans and bounds with the time since the question. [s]
    first_s : float or None
        From the question to the first plan; None before there is one. [s]
    stopping, cancelled : bool
        Whether it was asked to end, and whether its plan is of no use then.
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
    """One fleet file with the plans that were made of it.

    Parameters
    ----------
    settings : Settings
        The file and the limits.
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
        """Begin to plan a changed fleet.

        Parameters
        ----------
        scenarios, assignments : tuple[str, ...]
            What is laid on the fleet file.
        title : str
            The same in words.
        begin : int or None
            Number of the plan that the search begins with.

        Raises
        ------
        BusyError
            If a plan is being made already.
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
        """End the solve that is running; keep its best plan, or cancel it."""
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
        """End the process that plans."""
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
        """Return the plans in the order in which they were made."""
        with self._lock:
            return tuple(self._plans.values())

    def now(self) -> tuple[RunningSolve | None, tuple[Issue, ...], str]:
        """Return the solve that is running, and what the last one ended with instead of a plan."""
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
                case Doing(text=text):
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
        """End the process of a search that was cancelled and goes on; a new one takes its place."""
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
