"""Jobs in this process and in others, without waiting for those to start."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future
from concurrent.futures.process import BrokenProcessPool
from queue import SimpleQueue
from typing import Any, TypeVar

from fleetplan.planner.jobs.processes import ProcessPool

_ArgumentT = TypeVar("_ArgumentT")
_ResultT = TypeVar("_ResultT")


class LocalAndWorkerPool(ProcessPool):
    """Runs jobs in this process and in others until closed.

    This process takes the first waiting job, each other one the last. If one of them is killed, all others
    end, and this process repeats their jobs.

    Parameters
    ----------
    workers : int
        Number of processes, this one included.
    """

    def __init__(self, workers: int) -> None:
        super().__init__(workers - 1)
        self._others = workers - 1

    def run(
        self, function: Callable[[_ArgumentT], _ResultT], arguments: Sequence[_ArgumentT]
    ) -> Iterator[tuple[int, _ResultT]]:
        """Yield numbered results, as `RunJobs` describes."""
        jobs = _SharedJobs(self.executor, function, arguments)
        for _ in range(min(self._others, len(arguments))):
            jobs.wait_for_a_process()
        try:
            while jobs.open:
                if (number := jobs.taken()) is not None:
                    yield number, function(arguments[number])
                elif (done := jobs.brought_back()) is not None:
                    yield done
        finally:
            if jobs.open:
                # After an error or Ctrl-C, nobody waits for them.
                self.close()


class _SharedJobs:
    """Assignment of jobs to processes."""

    def __init__(self, executor: Executor, function: Callable[[Any], Any], arguments: Sequence[Any]) -> None:
        self._executor = executor
        self._function = function
        self._arguments = arguments
        self._lock = threading.Lock()
        # Waiting jobs, jobs in other processes, and their finished futures.
        self._left = deque(range(len(arguments)))
        self._away: dict[Future[Any], int] = {}
        self._done: SimpleQueue[Future[Any]] = SimpleQueue()

    @property
    def open(self) -> bool:
        """Return whether a result has not been passed on."""
        with self._lock:
            return bool(self._left or self._away)

    def wait_for_a_process(self) -> None:
        """Give a job to the next process that starts."""
        self._executor.submit(int).add_done_callback(self._give_last)

    def taken(self) -> int | None:
        """Return the first waiting job for this process; None if another has a result, or none waits."""
        with self._lock:
            return self._left.popleft() if self._left and self._done.empty() else None

    def brought_back(self) -> tuple[int, Any] | None:
        """Return a result of another process; None if that was killed, which makes its job wait again."""
        future = self._done.get()
        with self._lock:
            number = self._away.pop(future)
            if isinstance(future.exception(), BrokenProcessPool):
                self._left.append(number)
                return None
        return number, future.result()

    def _give_last(self, ready: Future[Any]) -> None:
        """Give the last waiting job to a ready process; called from another thread."""
        with self._lock:
            # None is ready if one was killed or all are closed.
            if not self._left or ready.cancelled() or isinstance(ready.exception(), BrokenProcessPool):
                return
            number = self._left.pop()
            try:
                future = self._executor.submit(self._function, self._arguments[number])
            except (BrokenProcessPool, RuntimeError):
                self._left.append(number)
                return
            self._away[future] = number
        future.add_done_callback(self._finished)

    def _finished(self, future: Future[Any]) -> None:
        if not future.cancelled():
            self._done.put(future)
        self._give_last(future)
