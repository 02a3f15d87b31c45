"""Ctrl-C handling: stop a search and keep its best plan.

Solvers run in a worker thread with their signal handling switched off (OR-Tools leaves the default handler
behind, which kills the process at the next Ctrl-C); the main thread waits for the signal.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Protocol, TypeVar

from fleetplan.fleet.machine import heard_interrupts, wait_until

Result = TypeVar("Result")


class StoppableSolver(Protocol):
    """Solver that can end early with its best solution."""

    def stop_search(self) -> object:
        """End the running search."""


class Stop:
    """Stop request that reaches the running solver and all later ones."""

    def __init__(self) -> None:
        self._requested = False
        self._solver: StoppableSolver | None = None
        self._lock = threading.Lock()

    @property
    def requested(self) -> bool:
        """Return whether a stop was requested."""
        return self._requested

    def request(self) -> None:
        """Stop the running solver at its best solution."""
        with self._lock:
            self._requested = True
            if self._solver is not None:
                self._solver.stop_search()

    @contextmanager
    def reaches(self, solver: StoppableSolver) -> Iterator[None]:
        """Let a stop request reach a solver while it runs."""
        self._note(solver)
        try:
            yield
        finally:
            self._note(None)

    def _note(self, solver: StoppableSolver | None) -> None:
        with self._lock:
            self._solver = solver


def run_interruptibly(
    work: Callable[[Stop], Result], on_stop: Callable[[], None], keep_best: bool = True
) -> Result:
    """Run a search so that the first Ctrl-C stops it and the second aborts it.

    Parameters
    ----------
    work : callable
        Search function; returns its best result when its `Stop` is requested.
    on_stop : callable
        Called after the first Ctrl-C.
    keep_best : bool
        Whether the result of a stopped search is useful. It is not if the search is one of many: the caller
        would continue with the next one and treat this result as complete.

    Returns
    -------
    Result
        Result of the search.

    Raises
    ------
    KeyboardInterrupt
        At the second Ctrl-C, or at the first if nothing is kept.
    """
    stop = Stop()
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="search") as pool:
        with heard_interrupts() as heard:
            future = pool.submit(work, stop)
            wait_until(lambda: len(heard.caught) > 0, future)
            if heard.caught:
                stop.request()
                if keep_best:
                    on_stop()
                wait_until(lambda: len(heard.caught) > 1, future)
        if heard.caught and not (keep_best and future.done()):
            raise heard.caught[-1]
        return future.result()
