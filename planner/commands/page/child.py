"""The process that solves for the page.

It reads questions from standard input and writes answers to standard output. It keeps evaluated candidates,
so that a fleet with other demand or prices needs no new evaluation. A stop request becomes a SIGINT of its
main thread, which ends a search at its best plan, as Ctrl-C does. It ends together with its parent process.
"""

from __future__ import annotations

import os
import pickle
import queue
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from types import FrameType
from typing import IO

from fleetplan.fleet.errors import InputError
from fleetplan.fleet.inventory import Fleet
from fleetplan.planner.api import NoPlanFoundError, plan_fleet
from fleetplan.planner.candidates import CandidateSet
from fleetplan.planner.commands.page.messages import (
    Activity,
    Message,
    PlanAnswer,
    PlanRequest,
    PlanStep,
    Settings,
    StopRequest,
)
from fleetplan.planner.plan import Infeasible, Plan, read_plan
from fleetplan.planner.problem import Problem
from fleetplan.planner.questions.resolving import Resolver
from fleetplan.planner.questions.solve_outcome import stated_outcome
from fleetplan.planner.search import ProgramCache, Progress, SearchLimits, default_workers
from fleetplan.scenarios.load import load_fleet

FAILED = "the program failed; please report the traceback in the terminal"
STOPPED = "stopped before there was a plan"


@dataclass(slots=True)
class Planner:
    """Plans changed versions of one fleet file.

    Attributes
    ----------
    settings : Settings
        Fleet file and limits.
    send : callable
        Sends a message.
    """

    settings: Settings
    send: Callable[[Message], None]
    _resolver: Resolver = field(init=False)
    _limits: SearchLimits = field(init=False)

    def __post_init__(self) -> None:
        settings = self.settings
        self._limits = SearchLimits(
            settings.time_limit_s,
            settings.gap_ratio,
            settings.seed,
            default_workers(),
            program_cache=ProgramCache(),
        )
        baseline = None if settings.baseline is None else read_plan(settings.baseline)
        self._resolver = Resolver(self._limits, baseline=baseline)

    def answer(self, question: PlanRequest) -> PlanAnswer:
        """Plan a changed fleet; everything except SIGINT leads to an answer."""
        try:
            return PlanAnswer(question.number, self._outcome(question))
        except InputError as error:
            return PlanAnswer(question.number, issues=error.issues)
        except NoPlanFoundError as error:
            return PlanAnswer(question.number, reason=str(error))
        except Exception:
            traceback.print_exc()
            return PlanAnswer(question.number, reason=FAILED)

    def _outcome(self, question: PlanRequest) -> Plan | Infeasible:
        def say(text: str) -> None:
            self.send(Activity(question.number, text))

        def watch(step: Progress) -> None:
            self.send(PlanStep(question.number, step.stage, step.objective_usd, step.bound_usd))

        def prepared(fleet: Fleet, late: Callable[[], bool]) -> tuple[CandidateSet, Problem]:
            candidates, problem = self._resolver.problem(fleet, late=late)
            begin = question.begin
            return candidates, problem if begin is None else replace(problem, begins_with=begin)

        self._resolver.say = say
        fleet = load_fleet(self.settings.path, question.scenarios, question.assignments)
        planned = plan_fleet(fleet, self._limits, watch, say, self._resolver.baseline, prepared)
        path, baseline = self.settings.baseline, self._resolver.baseline
        in_force = None if path is None or baseline is None else (path, baseline)
        return stated_outcome(fleet, self._limits, in_force, say, planned)


class _Interrupts:
    """Stop requests: each ends its own question, even a waiting one, and has no effect afterwards."""

    def __init__(self) -> None:
        self.answering: int | None = None
        self.stopped: int | None = None

    def stop(self, number: int) -> None:
        """Stop a question, from another thread."""
        self.stopped = number
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if self.answering is not None and self.answering == self.stopped:
            raise KeyboardInterrupt


def main(source: IO[bytes], target: IO[bytes]) -> None:
    """Answer questions until the source ends, which ends the process at any time."""
    interrupts = _Interrupts()
    signal.signal(signal.SIGINT, interrupts)
    questions: queue.SimpleQueue[PlanRequest] = queue.SimpleQueue()
    messages: queue.SimpleQueue[Message] = queue.SimpleQueue()
    planner = Planner(pickle.load(source), messages.put)
    threading.Thread(target=_read, args=(source, questions, interrupts), daemon=True).start()
    # A separate thread writes, because SIGINT could otherwise interrupt a message halfway.
    threading.Thread(target=_write, args=(messages, target), daemon=True).start()
    while True:
        question = questions.get()
        try:
            interrupts.answering = question.number
            if interrupts.stopped == question.number:
                raise KeyboardInterrupt
            answer = planner.answer(question)
            interrupts.answering = None
        except KeyboardInterrupt:
            interrupts.answering = None
            answer = PlanAnswer(question.number, reason=STOPPED)
        messages.put(answer)


def _read(source: IO[bytes], questions: queue.SimpleQueue[PlanRequest], interrupts: _Interrupts) -> None:
    try:
        while True:
            asked: PlanRequest | StopRequest = pickle.load(source)
            if isinstance(asked, StopRequest):
                interrupts.stop(asked.number)
            else:
                questions.put(asked)
    finally:
        # Nobody waits for answers any more. Solver processes end when they notice the loss of this one.
        os._exit(0)


def _write(messages: queue.SimpleQueue[Message], target: IO[bytes]) -> None:
    while True:
        pickle.dump(messages.get(), target, protocol=pickle.HIGHEST_PROTOCOL)
        target.flush()


if __name__ == "__main__":
    # Output of libraries goes to the terminal; answers use a copy of standard output.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    main(sys.stdin.buffer, answers)
