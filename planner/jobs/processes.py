"""Jobs in several processes of this machine."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from typing import Final, TypeVar

from fleetplan.planner.jobs.lost import BackendLostError

ATTEMPTS: Final = 3
"""Rounds of processes before the jobs are given up: a round ends when one of its processes is killed."""

_ArgumentT = TypeVar("_ArgumentT")
_ResultT = TypeVar("_ResultT")


def run_in_processes(
    function: Callable[[_ArgumentT], _ResultT], arguments: Sequence[_ArgumentT], workers: int
) -> Iterator[tuple[int, _ResultT]]:
    """Yield numbered results; `run_jobs` says more.

    Raises
    ------
    BackendLostError
        If processes were killed in each of the rounds.
    """
    left = dict(enumerate(arguments))
    for _ in range(ATTEMPTS):
        try:
            for number, result in _one_round(function, left, workers):
                del left[number]
                yield number, result
        except BrokenProcessPool:
            continue
        return
    raise BackendLostError(
        f"a process was killed in each of {ATTEMPTS} rounds; out of memory? fewer at a time need less"
    )


def _one_round(
    function: Callable[[_ArgumentT], _ResultT], arguments: Mapping[int, _ArgumentT], workers: int
) -> Iterator[tuple[int, _ResultT]]:
    before = set(multiprocessing.active_children())
    # Forked processes would inherit the threads' locks of solvers in this one.
    executor = ProcessPoolExecutor(workers, multiprocessing.get_context("spawn"), _leave_interrupts)
    try:
        futures = {executor.submit(function, argument): number for number, argument in arguments.items()}
        for future in as_completed(futures):
            yield futures[future], future.result()
    finally:
        # After the last result they are idle; on the way out of an error or Ctrl-C nobody waits for them.
        executor.shutdown(wait=False, cancel_futures=True)
        for process in set(multiprocessing.active_children()) - before:
            process.terminate()


def _leave_interrupts() -> None:
    """Leave Ctrl-C to the process that started this one, which ends it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
