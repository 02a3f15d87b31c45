"""Jobs in several processes of this machine."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Final, TypeVar

from fleetplan.fleet.machine import completed
from fleetplan.planner.jobs.backend_errors import BackendLostError

ATTEMPTS: Final = 3
"""Rounds of processes before jobs fail: a round ends when one of its processes is killed."""

_ArgumentT = TypeVar("_ArgumentT")
_ResultT = TypeVar("_ResultT")


class ProcessPool:
    """Processes that start with the first job and end when closed.

    Parameters
    ----------
    workers : int
        Number of processes.
    """

    def __init__(self, workers: int) -> None:
        self._workers = workers
        self._before = set(multiprocessing.active_children())
        self._executor: ProcessPoolExecutor | None = None

    @property
    def executor(self) -> ProcessPoolExecutor:
        """Return the executor of jobs; a new one after `close`."""
        if self._executor is None:
            # Forked processes would inherit the locks of solver threads in this one.
            spawn = multiprocessing.get_context("spawn")
            self._executor = ProcessPoolExecutor(self._workers, spawn, _leave_interrupts)
        return self._executor

    def close(self) -> None:
        """End the processes; the next jobs start new ones."""
        if self._executor is not None:
            self._executor.shutdown(wait=False, cancel_futures=True)
            self._executor = None
        for process in set(multiprocessing.active_children()) - self._before:
            process.terminate()


class Processes(ProcessPool):
    """Processes for jobs of any kind, until closed, as in `ProcessPool`."""

    def run(
        self, function: Callable[[_ArgumentT], _ResultT], arguments: Sequence[_ArgumentT]
    ) -> Iterator[tuple[int, _ResultT]]:
        """Yield numbered results, as `RunJobs` describes.

        Raises
        ------
        BackendLostError
            If processes were killed in every round.
        """
        left = dict(enumerate(arguments))
        for _ in range(ATTEMPTS):
            try:
                for number, result in self._one_round(function, left):
                    del left[number]
                    yield number, result
            except BrokenProcessPool:
                self.close()
                continue
            return
        raise BackendLostError(
            f"processes were killed in each of {ATTEMPTS} rounds; out of memory? run fewer at a time"
        )

    def _one_round(
        self, function: Callable[[_ArgumentT], _ResultT], arguments: Mapping[int, _ArgumentT]
    ) -> Iterator[tuple[int, _ResultT]]:
        futures = {self.executor.submit(function, argument): number for number, argument in arguments.items()}
        try:
            for future in completed(futures):
                yield futures[future], future.result()
        finally:
            if not all(future.done() for future in futures):
                # After an error or Ctrl-C, nobody waits for them.
                self.close()


def _leave_interrupts() -> None:
    """Leave Ctrl-C to the parent process, which ends this one."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
