"""Those who do the jobs of a search, as many at a time as there are seats, for as long as it lasts."""

from __future__ import annotations

import math
import pickle
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from fleetplan.planner.search.solvers.highs_jobs import Answer, AnyJob
from fleetplan.planner.search.solvers.interrupt import Stop
from fleetplan.planner.search.solvers.job_times import JobTime, OnJob, nobody
from fleetplan.planner.search.solvers.seats import Seats

UNKNOWN: Final = Answer(None, math.inf, -math.inf)
"""Answer to a job that nobody had the time for."""


LEAST_WITH_BACKGROUND: Final = 2
"""Processes of which one may have a job in the background."""


class WorkersStoppedError(Exception):
    """The search was stopped while a job was running."""


class Batch:
    """Jobs that are given out together.

    Attributes
    ----------
    jobs : Sequence
        In their order.
    number : int
        Place among the batches of its workers.
    answers : dict[int, Answer]
        By number of the job: those that were handed on so far.
    """

    def __init__(
        self,
        number: int,
        jobs: Sequence[AnyJob],
        expired: Callable[[], bool],
        on_answer: Callable[[int, Answer], None],
    ) -> None:
        self.number = number
        self.jobs = jobs
        self.answers: dict[int, Answer] = {}
        self._expired = expired
        self._on_answer = on_answer
        # The longest first. Seats take from it, and count those that they have done.
        self._waiting = deque(sorted(range(len(jobs)), key=lambda each: -jobs[each].length))
        self._unfinished = len(jobs)
        self._took_s = 0.0

    @property
    def waiting(self) -> int:
        """Jobs that no seat has begun."""
        return len(self._waiting)

    @property
    def running(self) -> bool:
        """Whether some job has no answer yet, handed on or not."""
        return self._unfinished > 0

    @property
    def complete(self) -> bool:
        """Whether all answers were handed on."""
        return len(self.answers) == len(self.jobs)

    @property
    def ordered(self) -> list[Answer]:
        """All answers, in the order of the jobs."""
        return [self.answers[number] for number in range(len(self.jobs))]

    def take(self, size: int) -> list[int]:
        """Take the jobs of one way to a seat: a long one alone, or some short ones."""
        numbers: list[int] = []
        while self._waiting and len(numbers) < size:
            numbers.append(self._waiting.popleft())
            if self.jobs[numbers[-1]].length == math.inf:
                break
        return numbers

    def done_by(self, ask: Callable[[list[bytes]], list[Answer]], numbers: Sequence[int]) -> list[Answer]:
        """Answers to some jobs: nothing known once the time is over."""
        if self._expired():
            return [UNKNOWN] * len(numbers)
        return ask([pickled(self.jobs[number]) for number in numbers])

    def finish(self, count: int, took_s: float) -> None:
        """Count jobs that are done, and what they took a seat. [s]"""
        self._unfinished -= count
        self._took_s += took_s

    @property
    def job_s(self) -> float:
        """What a job takes a seat; infinite before the first is done. [s]"""
        done = len(self.jobs) - self._unfinished
        return self._took_s / done if done else math.inf

    def hand_on(self, number: int, answer: Answer) -> None:
        """Tell whoever gave the jobs of an answer."""
        self.answers[number] = answer
        self._on_answer(number, answer)


class Workers:
    """Gives jobs to seats, each to the next one that is free.

    Parameters
    ----------
    seats : Seats
        Where they are done.
    note : callable
        Told of all answers to every batch, to count the work.
    on_job : callable
        Told of each job that was done, with its times.
    """

    def __init__(
        self,
        seats: Seats,
        note: Callable[[Sequence[Answer]], None] = lambda _: None,
        on_job: OnJob = nobody,
    ) -> None:
        self._note = note
        self._on_job = on_job
        self._seats = seats
        self._stopped = False
        self._given = 0
        self._open: list[Batch] = []
        self._background: Batch | None = None
        self._busy: set[int] = set()
        self._failure: Exception | None = None
        self._answered: queue.SimpleQueue[tuple[Batch, int, Answer] | Exception] = queue.SimpleQueue()
        # Re-entrant: a signal may stop the search while it ends.
        self._lock = threading.RLock()
        self._left = False

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Leave the seats to the next search, or end what they do if some answer was not waited for."""
        with self._lock:
            if self._stopped or self._open or kind is not None:
                self.stop_search()
                return
            self._left = True
            self._seats.leave()

    @property
    def count(self) -> int:
        """Jobs that are done at a time."""
        return self._seats.count

    def stop_search(self) -> None:
        """End what is running; a running `wait` raises."""
        with self._lock:
            self._stopped = True
            if not self._left:
                self._seats.end()

    def give(
        self,
        jobs: Sequence[AnyJob],
        expired: Callable[[], bool] = lambda: False,
        on_answer: Callable[[int, Answer], None] = lambda _, __: None,
        urgent: bool = False,
    ) -> Batch:
        """Give out jobs, and go on; those of earlier batches come first, unless these are urgent.

        Parameters
        ----------
        jobs : Sequence[AnyJob]
            What to solve: each at the next seat that is free, the longest first.
        expired : callable
            Asked before each job; once it says so, those that are left are answered with nothing known.
        on_answer : callable
            Told the number of each job and its answer, while somebody waits for this batch or a later one.
        urgent : bool
            Whether these jobs come before all that wait.
        """
        batch = Batch(self._given, jobs, expired, on_answer)
        self._given += 1
        if not jobs:
            return batch
        with self._lock:
            self._open.insert(0 if urgent else len(self._open), batch)
            free = [seat for seat in range(self.count) if seat not in self._busy][: len(jobs)]
            self._busy.update(free)
        for seat in free:
            threading.Thread(target=self._serve, args=(seat,), daemon=True).start()
        return batch

    def wait(
        self, batch: Batch, enough: Callable[[], bool] = lambda: False, most_s: float = math.inf
    ) -> None:
        """Wait for the answers to a batch; hand on those of others that come meanwhile.

        Parameters
        ----------
        batch : Batch
            What `give` returned.
        enough : callable
            Asked after each answer whether to go on without the others, which are handed on later.
        most_s : float
            How long to wait at the most. [s]

        Raises
        ------
        WorkersStoppedError
            If `stop_search` was called meanwhile.
        """
        until = time.monotonic() + most_s
        while not batch.complete and not enough():
            left_s = None if most_s == math.inf else max(0.0, until - time.monotonic())
            try:
                answered = self._failure or self._answered.get(timeout=left_s)
            except queue.Empty:
                return
            if isinstance(answered, Exception):
                raise WorkersStoppedError if self._stopped else answered
            of, number, answer = answered
            of.hand_on(number, answer)
            if of.complete:
                with self._lock:
                    self._open.remove(of)
                self._note(of.ordered)

    def solve(
        self,
        jobs: Sequence[AnyJob],
        expired: Callable[[], bool] = lambda: False,
        on_answer: Callable[[int, Answer], None] = lambda _, __: None,
    ) -> list[Answer]:
        """Answers to jobs, in their order; `give` and `wait` say more."""
        batch = self.give(jobs, expired, on_answer)
        self.wait(batch)
        return batch.ordered

    def solve_one(self, job: AnyJob) -> Answer:
        """Solve one job; raises like `wait`."""
        return self.solve([job])[0]

    def begin(self, job: AnyJob) -> Batch:
        """Solve one job beside those that are given next; the next one of this kind waits for its answer.

        Raises
        ------
        ValueError
            If there is no other process, or one has such a job already.
        """
        if self.count < LEAST_WITH_BACKGROUND or (self._background and not self._background.complete):
            raise ValueError("a job in the background needs a process of its own")
        self._background = self.give([job])
        return self._background

    def _serve(self, seat: int) -> None:
        """Let a seat do jobs while some wait."""
        while (taken := self._take(seat)) is not None:
            batch, numbers = taken
            began_s = time.monotonic()
            try:
                answers = batch.done_by(lambda jobs: self._seats.ask(seat, jobs), numbers)
            # Whatever it is, nobody must wait for an answer that does not come.
            except Exception as error:
                self._failure = error
                self._answered.put(error)
                return
            ended_s, share = time.monotonic(), 1 / len(numbers)
            with self._lock:
                batch.finish(len(numbers), ended_s - began_s)
            for number, answer in zip(numbers, answers, strict=True):
                kind, took_s = type(batch.jobs[number]).__name__, share * (ended_s - began_s)
                self._on_job(JobTime(batch.number, kind, seat, began_s, took_s))
                self._answered.put((batch, number, answer))

    def _take(self, seat: int) -> tuple[Batch, list[int]] | None:
        """The next jobs for a seat; None where none wait, and the seat is free again."""
        with self._lock:
            for batch in self._open:
                if batch.waiting and self._failure is None:
                    return batch, batch.take(self._seats.batch(batch.waiting, batch.job_s))
            self._busy.discard(seat)
            return None


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
    with stop.reaches(workers):
        if stop.requested:
            workers.stop_search()
        if limit_s < math.inf:
            overtime.start()
        try:
            yield
        finally:
            overtime.cancel()
