"""HiGHS racing on a model beside CP-SAT.

CP-SAT is quick to find plans and weak at bounds on covering problems; HiGHS is the other way round.
"""

from __future__ import annotations

import contextlib
import math
import pickle
import threading
from collections.abc import Callable
from queue import SimpleQueue

from ortools.sat.python import cp_model

from fleetplan.planner.search.solvers.highs_jobs import ANY_NODES, ONE_MORE, Effort, SearchJob
from fleetplan.planner.search.solvers.highs_process import started_child
from fleetplan.planner.search.solvers.highs_program import HighsAnswer, HighsProgram


class HighsRace:
    """HiGHS on one model in a child process, for as long as the context lasts.

    Parameters
    ----------
    model : CpModel
        Linear, with an objective.
    continuous : frozenset[int]
        Indices of the variables that HiGHS need not keep whole.
    time_limit_s : float
        When the child gives up. [s]
    gap_ratio : float
        When it is content.
    on_answer : callable
        Called from another thread with the newest of what HiGHS has said since the last call.
    searches : int
        How many it begins with, one core each; they differ in their seeds.
    known : float
        Objective of a plan that is known: only those better by more than the gap are looked for.

    Attributes
    ----------
    ended : threading.Event
        Set when HiGHS will say no more, and all of it has been passed on.
    """

    def __init__(
        self,
        model: cp_model.CpModel,
        continuous: frozenset[int],
        time_limit_s: float,
        gap_ratio: float,
        on_answer: Callable[[HighsAnswer], None],
        searches: int = 1,
        known: float = math.inf,
    ) -> None:
        self.ended = threading.Event()
        self._program = HighsProgram(model, continuous)
        self._on_answer = on_answer
        self._said: SimpleQueue[object] = SimpleQueue()
        self._heard: SimpleQueue[HighsAnswer | None] = SimpleQueue()
        effort = Effort(time_limit_s, ANY_NODES, gap_ratio, restarts=False)
        below = self._program.objective(known - gap_ratio * abs(known)) if known < math.inf else math.inf
        self._said.put(SearchJob(self._program.rows, self._program.cost, effort, below))
        for _ in range(searches - 1):
            self._said.put(ONE_MORE)

    def __enter__(self) -> HighsRace:
        self._child = started_child()
        self._threads = [
            threading.Thread(target=each, daemon=True) for each in (self._talk, self._listen, self._pass_on)
        ]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._child.kill()
        for thread in self._threads:
            thread.join()
        self._child.wait()

    def search_more(self) -> None:
        """Begin one search more."""
        self._said.put(ONE_MORE)

    def _talk(self) -> None:
        if self._child.stdin is None:
            raise RuntimeError("the HiGHS process has no pipes")
        # The race may be called off before the child has read everything.
        with contextlib.suppress(BrokenPipeError), self._child.stdin as pipe:
            while (said := self._said.get()) is not None:
                pickle.dump(said, pipe, protocol=pickle.HIGHEST_PROTOCOL)
                pipe.flush()

    def _listen(self) -> None:
        if self._child.stdout is None:
            raise RuntimeError("the HiGHS process has no pipes")
        try:
            # Truncated where the process was ended.
            with self._child.stdout as answers, contextlib.suppress(EOFError, pickle.UnpicklingError):
                while True:
                    self._heard.put(self._program.answer(pickle.load(answers)))
        finally:
            self._heard.put(None)
            self._said.put(None)

    def _pass_on(self) -> None:
        """Pass answers on; of those that came while one was being heard, what is best of them."""
        try:
            while (answer := self._heard.get()) is not None:
                while not self._heard.empty():
                    later = self._heard.get()
                    if later is None:
                        self._on_answer(answer)
                        return
                    answer = later.besides(answer)
                self._on_answer(answer)
        finally:
            self.ended.set()
