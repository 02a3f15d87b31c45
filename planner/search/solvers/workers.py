"""Child processes that solve programs, one a core, for as long as a search lasts."""

from __future__ import annotations

import math
import pickle
import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Final

from fleetplan.planner.search.solvers.highs_jobs import Answer, AnyJob, Rows
from fleetplan.planner.search.solvers.idle_processes import IDLE, end
from fleetplan.planner.search.solvers.interrupt import Stop

UNKNOWN: Final = Answer(None, math.inf, -math.inf)
"""Answer to a job that nobody had the time for."""


LEAST_WITH_BACKGROUND: Final = 2
"""Processes of which one may have a job in the background."""


class WorkersStoppedError(Exception):
    """The search was stopped while a job was running."""


class Background:
    """A job that a process of its own solves meanwhile.

    Parameters
    ----------
    ask : callable
        Solves it; raises if the process ends.
    end : callable
        Told of the answer, None without one, when somebody asks for it; returns it.
    """

    def __init__(self, ask: Callable[[], Answer], end: Callable[[Answer | None], Answer]) -> None:
        self._end = end
        self._answer: Answer | None = None

        def run() -> None:
            # A process that was ended has no answer.
            with suppress(Exception):
                self._answer = ask()

        self._thread = threading.Thread(target=run, daemon=True)
        self._thread.start()

    @property
    def running(self) -> bool:
        """Whether there is no answer yet."""
        return self._thread.is_alive()

    def answer(self) -> Answer:
        """Wait for the answer; raises as `Workers.solve` does."""
        self._thread.join()
        return self._end(self._answer)


class Workers:
    """HiGHS in child processes.

    Parameters
    ----------
    count : int
        Processes.
    known : Sequence[Rows]
        Programs that jobs name by number, sent once.
    note : callable
        Told of all answers to every `solve`, to count the work.
    """

    def __init__(
        self,
        count: int,
        known: Sequence[Rows],
        note: Callable[[Sequence[Answer]], None] = lambda _: None,
    ) -> None:
        self._note = note
        self._known = pickle.dumps(tuple(known), protocol=pickle.HIGHEST_PROTOCOL)
        self._children = [IDLE.take() for _ in range(count)]
        self._greeted = [False] * count
        self._stopped = False
        self._busy = 0
        self._unfinished = 0
        # Re-entrant: a signal may stop the search while it ends.
        self._lock = threading.RLock()
        self._left = False

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Let the children wait for the next search, or end them if some answer was not waited for."""
        with self._lock:
            if self._stopped or self._busy or self._unfinished or kind is not None:
                self.stop_search()
                return
            self._left = True
            for child in self._children:
                IDLE.give(child)

    @property
    def count(self) -> int:
        """Number of processes."""
        return len(self._children)

    def stop_search(self) -> None:
        """End the children; a running `solve` raises."""
        with self._lock:
            self._stopped = True
            if not self._left:
                for child in self._children:
                    end(child)

    def solve(
        self,
        jobs: Sequence[AnyJob],
        expired: Callable[[], bool] = lambda: False,
        on_answer: Callable[[int, Answer], None] = lambda _, __: None,
    ) -> list[Answer]:
        """Solve jobs, each by the next child that is free, the longest first.

        Parameters
        ----------
        jobs : Sequence[AnyJob]
            What to solve.
        expired : callable
            Asked before each job; once it says so, those that are left are answered with nothing known.
        on_answer : callable
            Told the number of each job and its answer when it comes, while others are still solved.

        Returns
        -------
        list[Answer]
            In the order of the jobs.

        Raises
        ------
        WorkersStoppedError
            If `stop_search` was called meanwhile.
        """
        waiting: queue.SimpleQueue[int] = queue.SimpleQueue()
        for number in sorted(range(len(jobs)), key=lambda number: -jobs[number].length):
            waiting.put(number)
        answered: queue.SimpleQueue[tuple[int, Answer] | BaseException] = queue.SimpleQueue()
        failed = threading.Event()

        def serve(index: int) -> None:
            try:
                while not failed.is_set():
                    number = waiting.get_nowait()
                    answered.put((number, UNKNOWN if expired() else self._ask(index, jobs[number])))
            except queue.Empty:
                return
            # Whatever it is, nobody must wait for an answer that does not come.
            except Exception as error:
                failed.set()
                answered.put(error)

        threads = [
            threading.Thread(target=serve, args=(index,), daemon=True)
            for index in range(min(self.count - self._busy, len(jobs)))
        ]
        for thread in threads:
            thread.start()
        answers: dict[int, Answer] = {}
        self._unfinished += 1
        while len(answers) < len(jobs):
            answer = answered.get()
            if isinstance(answer, BaseException):
                for thread in threads:
                    thread.join()
                if self._stopped:
                    raise WorkersStoppedError
                raise RuntimeError("a solver process ended unexpectedly") from answer
            answers[answer[0]] = answer[1]
            on_answer(*answer)
        self._unfinished -= 1
        ordered = [answers[number] for number in range(len(jobs))]
        self._note(ordered)
        return ordered

    def solve_one(self, job: AnyJob) -> Answer:
        """Solve one job; raises like `solve`."""
        return self.solve([job])[0]

    def begin(self, job: AnyJob) -> Background:
        """Solve one job in the last process, while the others go on; the next job waits for its answer.

        Raises
        ------
        ValueError
            If there is no other process, or the last one has such a job already.
        """
        if self.count - self._busy < LEAST_WITH_BACKGROUND or self._busy:
            raise ValueError("a job in the background needs a process of its own")
        self._busy = 1
        return Background(lambda: self._ask(self.count - 1, job), self._end_background)

    def _end_background(self, answer: Answer | None) -> Answer:
        """Take the last process back, and the answer, which is none if it has ended."""
        self._busy = 0
        if answer is None and self._stopped:
            raise WorkersStoppedError
        if answer is None:
            raise RuntimeError("a solver process ended unexpectedly")
        self._note([answer])
        return answer

    def _ask(self, index: int, job: AnyJob) -> Answer:
        child = self._children[index]
        if child.stdin is None or child.stdout is None:
            raise RuntimeError("the solver process has no pipes")
        if not self._greeted[index]:
            child.stdin.write(self._known)
            self._greeted[index] = True
        pickle.dump(job, child.stdin, protocol=pickle.HIGHEST_PROTOCOL)
        child.stdin.flush()
        answer: Answer = pickle.load(child.stdout)
        return answer


@contextmanager
def ending(workers: Workers, stop: Stop, limit_s: float) -> Iterator[None]:
    """Let somebody who stops the search end the workers, and the clock: HiGHS may not heed its own.

    Parameters
    ----------
    workers : Workers
        Who solve meanwhile.
    stop : Stop
        May have been requested already.
    limit_s : float
        Time after which they are ended; infinite for no limit. [s]
    """
    overtime = threading.Timer(limit_s, workers.stop_search)
    overtime.daemon = True
    stop.running(workers)
    if stop.requested:
        workers.stop_search()
    if limit_s < math.inf:
        overtime.start()
    try:
        yield
    finally:
        overtime.cancel()
        stop.running(None)
