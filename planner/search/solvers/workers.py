"""Those who do the jobs of a search, as many at a time as there are seats, for as long as it lasts."""

from __future__ import annotations

import math
import pickle
import queue
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Final

from fleetplan.planner.search.solvers.highs_jobs import Answer, AnyJob
from fleetplan.planner.search.solvers.interrupt import Stop
from fleetplan.planner.search.solvers.seats import Seats

UNKNOWN: Final = Answer(None, math.inf, -math.inf)
"""Answer to a job that nobody had the time for."""


LEAST_WITH_BACKGROUND: Final = 2
"""Processes of which one may have a job in the background."""


class WorkersStoppedError(Exception):
    """The search was stopped while a job was running."""


class Background:
    """A job that a seat of its own does meanwhile.

    Parameters
    ----------
    ask : callable
        Does it.
    end : callable
        Told of the answer, or of what `ask` raised, when somebody asks for it; returns it.
    """

    def __init__(self, ask: Callable[[], Answer], end: Callable[[Answer | Exception], Answer]) -> None:
        self._end = end
        self._answer: Answer | Exception = UNKNOWN

        def run() -> None:
            try:
                self._answer = ask()
            except Exception as error:
                self._answer = error

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
    """Gives jobs to seats, each to the next one that is free.

    Parameters
    ----------
    seats : Seats
        Where they are done.
    note : callable
        Told of all answers to every `solve`, to count the work.
    """

    def __init__(self, seats: Seats, note: Callable[[Sequence[Answer]], None] = lambda _: None) -> None:
        self._note = note
        self._seats = seats
        self._stopped = False
        self._busy = 0
        self._unfinished = 0
        # Re-entrant: a signal may stop the search while it ends.
        self._lock = threading.RLock()
        self._left = False

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Leave the seats to the next search, or end what they do if some answer was not waited for."""
        with self._lock:
            if self._stopped or self._busy or self._unfinished or kind is not None:
                self.stop_search()
                return
            self._left = True
            self._seats.leave()

    @property
    def count(self) -> int:
        """Jobs that are done at a time."""
        return self._seats.count

    def stop_search(self) -> None:
        """End what is running; a running `solve` raises."""
        with self._lock:
            self._stopped = True
            if not self._left:
                self._seats.end()

    def solve(
        self,
        jobs: Sequence[AnyJob],
        expired: Callable[[], bool] = lambda: False,
        on_answer: Callable[[int, Answer], None] = lambda _, __: None,
    ) -> list[Answer]:
        """Solve jobs, each at the next seat that is free, the longest first.

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
        waiting = deque(sorted(range(len(jobs)), key=lambda number: -jobs[number].length))
        answered: queue.SimpleQueue[tuple[int, Answer] | BaseException] = queue.SimpleQueue()
        failed = threading.Event()

        def serve(seat: int) -> None:
            try:
                while not failed.is_set() and (numbers := self._next(waiting, jobs)):
                    if expired():
                        answers = [UNKNOWN] * len(numbers)
                    else:
                        answers = self._seats.ask(seat, [pickled(jobs[number]) for number in numbers])
                    for numbered in zip(numbers, answers, strict=True):
                        answered.put(numbered)
            # Whatever it is, nobody must wait for an answer that does not come.
            except Exception as error:
                failed.set()
                answered.put(error)

        threads = [
            threading.Thread(target=serve, args=(seat,), daemon=True)
            for seat in range(min(self.count - self._busy, len(jobs)))
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
                raise WorkersStoppedError if self._stopped else answer
            answers[answer[0]] = answer[1]
            on_answer(*answer)
        self._unfinished -= 1
        ordered = [answers[number] for number in range(len(jobs))]
        self._note(ordered)
        return ordered

    def _next(self, waiting: deque[int], jobs: Sequence[AnyJob]) -> list[int]:
        """Take the jobs of one way to a seat: a long one alone, or some short ones."""
        numbers: list[int] = []
        size = self._seats.batch(len(waiting))
        with suppress(IndexError):
            while len(numbers) < size:
                numbers.append(waiting.popleft())
                if jobs[numbers[-1]].length == math.inf:
                    break
        return numbers

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
        return Background(lambda: self._seats.ask(self.count - 1, [pickled(job)])[0], self._end_background)

    def _end_background(self, answer: Answer | Exception) -> Answer:
        """Take the last seat back, and hand on the answer, or what there is instead of one."""
        self._busy = 0
        if isinstance(answer, Exception):
            raise WorkersStoppedError if self._stopped else answer
        self._note([answer])
        return answer


def pickled(job: AnyJob) -> bytes:
    """A job as it travels."""
    return pickle.dumps(job, protocol=pickle.HIGHEST_PROTOCOL)


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
