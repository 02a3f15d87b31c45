"""Ctrl-C stops a search and keeps its best plan.

Solvers run in a worker thread with their own signal handling switched off (OR-Tools leaves the default
handler behind, which kills the process at the next Ctrl-C); the main thread waits for the signal.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import wait as wait_for
from contextlib import contextmanager
from typing import Protocol, TypeVar

POLL_S = 0.2
"""How often the main thread wakes to let a signal in. [s]"""

Result = TypeVar("Result")


class Stoppable(Protocol):
    """A solver that ends early at its best solution."""

    def stop_search(self) -> object:
        """End the search that is running."""


class Stop:
    """A request to stop that reaches the solver that is running, and every later one."""

    def __init__(self) -> None:
        self._requested = False
        self._solver: Stoppable | None = None
        self._lock = threading.Lock()

    @property
    def requested(self) -> bool:
        """Whether somebody asked to stop."""
        return self._requested

    def request(self) -> None:
        """Stop the running solver at its best solution."""
        with self._lock:
            self._requested = True
            if self._solver is not None:
                self._solver.stop_search()

    @contextmanager
    def reaches(self, solver: Stoppable) -> Iterator[None]:
        """Let a request stop a solver while it is running."""
        self._note(solver)
        try:
            yield
        finally:
            self._note(None)

    def _note(self, solver: Stoppable | None) -> None:
        with self._lock:
            self._solver = solver


def run_interruptibly(
    work: Callable[[Stop], Result], on_stop: Callable[[], None], keep_best: bool = True
) -> Result:
    """Run a search so that the first Ctrl-C stops it and a second one gives it up.

    Parameters
    ----------
    work : callable
        The search; it returns its best result when its `Stop` is requested.
    on_stop : callable
        Told that the first Ctrl-C was heard.
    keep_best : bool
        Whether what a stopped search has found is of use. It is not where the search is one of many: the
        caller would go on with the next one, and take this one's result for a finished one.

    Returns
    -------
    Result
        Of the work.

    Raises
    ------
    KeyboardInterrupt
        At the second Ctrl-C, or at the first one where nothing is kept.
    """
    stop = Stop()
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="search") as pool:
        future: Future[Result] | None = None
        try:
            # Within `try`: the signal may come as soon as the thread runs, and the pool waits for its end.
            future = pool.submit(work, stop)
            _wait(future)
        except KeyboardInterrupt:
            stop.request()
            if future is None:
                raise
            if keep_best:
                on_stop()
            _wait(future)
        result = future.result()
    if stop.requested and not keep_best:
        raise KeyboardInterrupt
    return result


def _wait(future: Future[Result]) -> None:
    """Wait in short steps: a thread that sleeps in a lock hears no signal."""
    while not future.done():
        wait_for([future], timeout=POLL_S)
