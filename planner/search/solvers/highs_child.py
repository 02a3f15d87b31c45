"""HiGHS in a child process: reads pickled jobs from stdin and writes answers to stdout, one by one.

A separate process is needed because highspy and OR-Tools cannot share one, and because a running search
cannot be stopped otherwise. `StackedRows` replace the programs that jobs refer to by number. A `SearchJob` is
the last job of its process: it sends every better plan and bound at once, and accepts plans of CP-SAT and
requests for more searches.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import IO, Any, Final

import highspy
import numpy as np

from fleetplan.planner.search.solvers.highs_answers import found_by, is_infeasible, limit, solve
from fleetplan.planner.search.solvers.highs_jobs import (
    Answer,
    AnyJob,
    Array,
    SearchJob,
    StackedRows,
    no_programs,
)
from fleetplan.planner.search.solvers.highs_model import cost_unit, integer_model
from fleetplan.planner.search.solvers.large_neighbourhoods import LargeNeighbourhoods

LEAST_INTERVAL_S: Final = 0.1
"""Least time between two answers that only raise the bound. [s]"""

NEAR_PATIENCE: Final = 3
"""Neighbourhoods without gain after which another seed's search is more useful: with six, small fleets with
an optimal plan take up to a third longer."""

ELSEWHERE: Final = -1
"""In the place of a seed: the plan comes from another solver."""

PARENT_POLL_S: Final = 1.0
"""How often a child checks that its parent is alive. [s]"""


class Searches:
    """Searches of one program with different seeds, which share their plans.

    The seed can double the time of a search, and half of a search often passes without a good plan. Later
    searches start with neighbourhoods of the best plan so far. The first search to end ends all.

    Parameters
    ----------
    job : SearchJob
        Program to search.
    write : callable
        Sends an answer.
    """

    def __init__(self, job: SearchJob, write: Callable[[Answer], None]) -> None:
        self._job = job
        self._write = write
        self._unit = cost_unit(job.cost)
        self._started = time.monotonic()
        self._lock = threading.Lock()
        self._over = False
        self._least = highspy.kHighsInf
        self._plan: tuple[int, Array] | None = None
        self._others: list[threading.Thread] = []
        self._answered = time.monotonic()
        self._bound = -highspy.kHighsInf

    def run(self, requests: IO[bytes]) -> None:
        """Run the first search, and another for each request that arrives meanwhile."""
        threading.Thread(target=self._start_others, args=(requests,), daemon=True).start()
        self._search(seed=0)
        with self._lock:
            others = list(self._others)
        for other in others:
            other.join()

    def _start_others(self, requests: IO[bytes]) -> None:
        with contextlib.suppress(EOFError):
            while True:
                asked = pickle.load(requests)
                if isinstance(asked, np.ndarray):
                    self.know(asked)
                    continue
                with self._lock:
                    if self._over:
                        return
                    other = threading.Thread(target=self._improve_and_search, args=(len(self._others) + 1,))
                    self._others.append(other)
                    other.start()

    def _improve_and_search(self, seed: int) -> None:
        """Improve the plan by neighbourhoods until they gain nothing; then search."""
        near = LargeNeighbourhoods(self._job.rows, self._job.cost, seed, NEAR_PATIENCE)
        while not near.over:
            with self._lock:
                if self._over or self._plan is None:
                    break
                least, values = self._least * self._unit, self._plan[1]
            answer = solve(near.job(values), no_programs())
            if near.gains(answer, least) and answer.values is not None:
                self._keep(seed, answer.objective / self._unit, answer.values)
        self._search(seed)

    def know(self, values: Array) -> None:
        """Store a plan of another solver if it is the best."""
        objective = float(self._job.cost @ values) / self._unit
        with self._lock:
            if objective < self._least:
                self._least, self._plan = objective, (ELSEWHERE, values)

    def _keep(self, seed: int, objective: float, values: Array, bound: float = -np.inf) -> None:
        """Store a plan if it is the best, and report it."""
        with self._lock:
            if objective >= self._least:
                return
            self._least, self._plan = objective, (seed, values)
        self._answer(max(bound, self._bound), values)

    def _search(self, seed: int) -> None:
        """Run a search until it or another one ends."""
        effort = self._job.effort
        model = integer_model(self._job.rows, self._job.cost / self._unit, basic_presolve=True)
        if model is None:
            self._end(np.inf, None)
            return
        solver, reduced = model
        if effort.time_limit_s is not None:
            left_s = effort.time_limit_s - (time.monotonic() - self._started)
            effort = replace(effort, time_limit_s=max(left_s, 0.0))
        limit(solver, effort, self._unit)
        solver.setOptionValue("objective_bound", min(self._job.below / self._unit, highspy.kHighsInf))
        solver.setOptionValue("random_seed", seed)
        told = None

        def improved(event: Any) -> None:
            found = float(event.data_out.objective_function_value)
            values = reduced.whole(np.array(event.data_out.mip_solution))
            self._keep(seed, found, values, float(event.data_out.mip_dual_bound))

        def listens(event: Any) -> None:
            nonlocal told
            with self._lock:
                plan = self._plan
            # Only once: HiGHS may have reasons to reject it.
            if plan is not None and plan is not told and plan[0] != seed:
                told = plan
                event.data_in.setSolution(plan[1][reduced.kept])

        def looks_up(event: Any) -> None:
            bound = float(event.data_out.mip_dual_bound)
            if bound > self._bound and time.monotonic() - self._answered >= LEAST_INTERVAL_S:
                self._answer(bound, None)
            event.data_in.user_interrupt = self._over

        solver.cbMipImprovingSolution.subscribe(improved)
        solver.cbMipUserSolution.subscribe(listens)
        solver.cbMipInterrupt.subscribe(looks_up)
        solver.run()
        found = found_by(solver)
        none = found is None and is_infeasible(solver)
        bound = np.inf if none else float(solver.getInfo().mip_dual_bound)
        self._end(bound, None if found is None else reduced.whole(found))

    def _end(self, bound: float, values: Array | None) -> None:
        """End all searches with the answer of one; an infinite bound is infeasibility."""
        with self._lock:
            late, self._over = self._over, True
        if late:
            return
        infeasible = values is None and bound == np.inf
        # With a limit on the objective, HiGHS reports that there is nothing below it.
        limited = infeasible and bool(np.isfinite(self._job.below))
        self._answer(self._job.below / self._unit if limited else bound, values, infeasible and not limited)

    def _answer(self, bound: float, values: Array | None, infeasible: bool = False) -> None:
        """Send plan and bound in the units of the job."""
        objective = np.inf if values is None else float(self._job.cost @ values)
        # Nothing is proven above the searched range.
        proven = min(bound * self._unit, self._job.below)
        with self._lock:
            self._answered, self._bound = time.monotonic(), max(self._bound, bound)
            self._write(Answer(values, objective, proven, infeasible=infeasible))


def main(source: IO[bytes], target: IO[bytes]) -> None:
    """Answer jobs until the source ends."""

    def write(answer: Answer) -> None:
        pickle.dump(answer, target, protocol=pickle.HIGHEST_PROTOCOL)
        target.flush()

    known = no_programs()
    with contextlib.suppress(EOFError):
        while True:
            asked: AnyJob | SearchJob | StackedRows = pickle.load(source)
            if isinstance(asked, StackedRows):
                known = asked
            elif isinstance(asked, SearchJob):
                Searches(asked, write).run(source)
                return
            else:
                write(solve(asked, known))


def end_with(parent: int) -> None:
    """End this process when its parent has ended, even in the middle of a job."""
    while os.getppid() == parent:
        time.sleep(PARENT_POLL_S)
    os._exit(0)


if __name__ == "__main__":
    # The parent handles Ctrl-C and ends this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=end_with, args=(int(sys.argv[1]),), daemon=True).start()
    # HiGHS sometimes prints to standard output; answers use a copy of it.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    # Closed pipe: the parent no longer waits for answers.
    with contextlib.suppress(BrokenPipeError):
        main(sys.stdin.buffer, answers)
    # Skip the interpreter's shutdown: a thread may wait for requests, and a closed pipe would raise again.
    os._exit(0)
