"""Job queue of a search: gives jobs to its seats while it lasts."""

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
"""Answer to a job that ran out of time."""


LEAST_WITH_BACKGROUND: Final = 2
"""Least number of processes to run a job in the background."""


class WorkersStoppedError(Exception):
    """The search was stopped while a job was running."""


class Batch:
    """Jobs that are given out together.

    Attributes
    ----------
    jobs : Sequence
        Jobs in order.
    number : int
        Number of the batch.
    answers : dict[int, Answer]
        Answers passed on so far, by number of the job.
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
        # Longest first. Seats take from it, and count finished jobs.
        self._waiting = deque(sorted(range(len(jobs)), key=lambda each: -jobs[each].length))
        self._unfinished = len(jobs)
        self._took_s = 0.0

    @property
    def waiting(self) -> int:
        """Return the number of jobs that no seat has begun."""
        return len(self._waiting)

    @property
    def running(self) -> bool:
        """Return whether a job has no answer yet, passed on or not."""
        return self._unfinished > 0

    @property
    def complete(self) -> bool:
        """Return whether all answers were passed on."""
        return len(self.answers) == len(self.jobs)

    @property
    def ordered(self) -> list[Answer]:
        """Return all answers, in the order of the jobs."""
        return [self.answers[number] for number in range(len(self.jobs))]

    def take(self, size: int) -> list[int]:
        """Take the jobs of one batch to a seat: a single unbounded one, or several short ones."""
        numbers: list[int] = []
        while self._waiting and len(numbers) < size:
            numbers.append(self._waiting.popleft())
            if self.jobs[numbers[-1]].length == math.inf:
                break
        return numbers

    def done_by(self, ask: Callable[[list[bytes]], list[Answer]], numbers: Sequence[int]) -> list[Answer]:
        """Return the answers to these jobs; `UNKNOWN` once time is over."""
        if self._expired():
            return [UNKNOWN] * len(numbers)
        return ask([pickled(self.jobs[number]) for number in numbers])

    def finish(self, count: int, took_s: float) -> None:
        """Count finished jobs, and their time on a seat. [s]"""
        self._unfinished -= count
        self._took_s += took_s

    @property
    def job_s(self) -> float:
        """Return the average time of a job on a seat; infinite before the first is done. [s]"""
        done = len(self.jobs) - self._unfinished
        return self._took_s / done if done else math.inf

    def hand_on(self, number: int, answer: Answer) -> None:
        """Pass an answer on to the caller's callback."""
        self.answers[number] = answer
        self._on_answer(number, answer)


class Workers:
    """Job queue that gives each job to the next free seat.

    Parameters
    ----------
    seats : Seats
        Seats that run the jobs.
    note : callable
        Called with all answers of every batch, to charge the work.
    on_job : callable
        Called with the times of each finished job.
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
        """Release the seats, or abort their jobs if an answer was not waited for."""
        with self._lock:
            if self._stopped or self._open or kind is not None:
                self.stop_search()
                return
            self._left = True
            self._seats.leave()

    @property
    def count(self) -> int:
        """Return the number of jobs that run in parallel."""
        return self._seats.count

    def stop_search(self) -> None:
        """Abort running jobs; a running `wait` raises."""
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
        """Queue jobs without waiting, after those of earlier batches unless urgent.

        Parameters
        ----------
        jobs : Sequence[AnyJob]
            Jobs; each goes to the next free seat, the longest first.
        expired : callable
            Checked before each job; once it returns True, the rest is answered `UNKNOWN`.
        on_answer : callable
            Called with the number and the answer of each job, during a wait for this or a later batch.
        urgent : bool
            Whether to run these jobs before all waiting ones.
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
        """Wait for the answers to a batch; pass on those of others that arrive meanwhile.

        Parameters
        ----------
        batch : Batch
            Batch returned by `give`.
        enough : callable
            Checked after each answer: whether to return early; the rest is passed on later.
        most_s : float
            Largest time to wait. [s]

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
        """Return the answers to jobs in order; arguments as for `give`."""
        batch = self.give(jobs, expired, on_answer)
        self.wait(batch)
        return batch.ordered

    def solve_one(self, job: AnyJob) -> Answer:
        """Solve one job; raises like `wait`."""
        return self.solve([job])[0]

    def begin(self, job: AnyJob) -> Batch:
        """Solve one job in the background; the next background job must wait for its answer.

        Raises
        ------
        ValueError
            If there is no second process, or a background job is running.
        """
        if self.count < LEAST_WITH_BACKGROUND or (self._background and not self._background.complete):
            raise ValueError("a job in the background needs a process of its own")
        self._background = self.give([job])
        return self._background

    def _serve(self, seat: int) -> None:
        """Run jobs on a seat while some wait."""
        while (taken := self._take(seat)) is not None:
            batch, numbers = taken
            began_s = time.monotonic()
            try:
                answers = batch.done_by(lambda jobs: self._seats.ask(seat, jobs), numbers)
            # After any error, nobody must wait for an answer that does not come.
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
        """Return the next jobs for a seat; None, and free the seat, if none wait."""
        with self._lock:
            for batch in self._open:
                if batch.waiting and self._failure is None:
                    return batch, batch.take(self._seats.batch(batch.waiting, batch.job_s))
            self._busy.discard(seat)
            return None


def pickled(job: AnyJob) -> bytes:
    """Pickle a job for a worker."""
    return pickle.dumps(job, protocol=pickle.HIGHEST_PROTOCOL)


@contextmanager
def ending(workers: Workers, stop: Stop, limit_s: float) -> Iterator[None]:
    """Let a stop request or the clock end the workers, since HiGHS may ignore its own limit.

    Parameters
    ----------
    workers : Workers
        Workers to end.
    stop : Stop
        Stop request, which may have been made already.
    limit_s : float
        Time limit; infinite for none. [s]
    """
    extra_time = threading.Timer(limit_s, workers.stop_search)
    extra_time.daemon = True
    with stop.reaches(workers):
        if stop.requested:
            workers.stop_search()
        if limit_s < math.inf:
            extra_time.start()
        try:
            yield
        finally:
            extra_time.cancel()
