"""HiGHS in a race with CP-SAT on one model.

CP-SAT finds plans quickly but proves weak bounds on covering problems; HiGHS does the opposite, and starts
its heuristics from the plans of CP-SAT.
"""

from __future__ import annotations

import contextlib
import math
import pickle
import threading
from collections.abc import Callable, Sequence
from queue import SimpleQueue

from ortools.sat.python import cp_model

from fleetplan.planner.search.solvers.highs_jobs import ANY_NODES, ONE_MORE, Effort, SearchJob
from fleetplan.planner.search.solvers.highs_process import started_child
from fleetplan.planner.search.solvers.highs_program import HighsAnswer, HighsProgram


class HighsRace:
    """HiGHS on one model, in a child process that lives as long as the context.

    Parameters
    ----------
    model : CpModel
        Linear model with an objective.
    continuous : frozenset[int]
        Variables that may be fractional.
    time_limit_s : float
        Time limit of the child. [s]
    gap_ratio : float
        Target gap.
    on_answer : callable
        Called from another thread with the combined answers since the last call.
    searches : int
        Number of searches at first, with different seeds and one core each.
    known : float
        Objective of a known plan: only plans better by more than the gap are searched.

    Attributes
    ----------
    ended : threading.Event
        Set when HiGHS has ended, and all its answers have been passed on.
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

    def know(self, solution: Sequence[int]) -> None:
        """Tell all searches of a plan, in units of the model."""
        self._said.put(self._program.scaled(solution))

    def search_more(self) -> None:
        """Start another search."""
        self._said.put(ONE_MORE)

    def _talk(self) -> None:
        if self._child.stdin is None:
            raise RuntimeError("the HiGHS process has no pipes")
        # The context may end before the child has read everything.
        with contextlib.suppress(BrokenPipeError), self._child.stdin as pipe:
            while (said := self._said.get()) is not None:
                pickle.dump(said, pipe, protocol=pickle.HIGHEST_PROTOCOL)
                pipe.flush()

    def _listen(self) -> None:
        if self._child.stdout is None:
            raise RuntimeError("the HiGHS process has no pipes")
        try:
            # Truncated if the process was ended.
            with self._child.stdout as answers, contextlib.suppress(EOFError, pickle.UnpicklingError):
                while True:
                    self._heard.put(self._program.answer(pickle.load(answers)))
        finally:
            self._heard.put(None)
            self._said.put(None)

    def _pass_on(self) -> None:
        """Pass answers on; combine those that arrive while one is handled."""
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
