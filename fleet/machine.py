"""Cores that a process may use, the environment of its child processes, and signals that end it.

Python runs a signal handler between any two instructions of the main thread. If the handler raises within
`threading.Condition` or `concurrent.futures`, a lock may stay taken for ever, and the thread that needs it
never ends; within a finaliser, the exception is lost. So waits for threads hear signals, and raise after it.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import FIRST_COMPLETED, Future
from concurrent.futures import wait as wait_for
from contextlib import contextmanager
from types import FrameType
from typing import Final, TypeVar

POLL_S: Final = 0.2
"""How often the main thread looks whether a signal was heard. [s]"""

_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)

_ResultT = TypeVar("_ResultT")


def usable_cores() -> int:
    """Count the cores that this process may use.

    Returns
    -------
    int
        At least one. On systems without CPU affinity, such as macOS and Windows, all cores of the machine.
    """
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def child_environment(**variables: str) -> dict[str, str]:
    """Return the environment of a Python process that finds the same modules as this one.

    Parameters
    ----------
    **variables : str
        Further variables of that process, which take precedence.
    """
    found = os.pathsep.join(path for path in sys.path if path)
    return {**os.environ, "PYTHONPATH": found, **variables}


class HeardInterrupts:
    """Interrupts that were heard and not raised."""

    def __init__(self) -> None:
        self.caught: list[KeyboardInterrupt] = []
        self.active = True

    def instead_of(self, handler: Callable[[int, FrameType | None], object]) -> Callable[..., None]:
        """Return a handler that keeps what another one raises, until `active` is false."""

        def heard(number: int, frame: FrameType | None) -> None:
            try:
                handler(number, frame)
            except KeyboardInterrupt as interrupt:
                if not self.active:
                    raise
                self.caught.append(interrupt)

        return heard


@contextmanager
def heard_interrupts() -> Iterator[HeardInterrupts]:
    """Keep interrupts of the main thread instead of raising them within the block.

    Whoever enters the block looks at `caught`, in the block and after it.
    """
    found = HeardInterrupts()
    if threading.current_thread() is not threading.main_thread():
        yield found
        return
    before = {number: signal.getsignal(number) for number in _SIGNALS}
    own = {number: handler for number, handler in before.items() if callable(handler)}
    try:
        for number, handler in own.items():
            signal.signal(number, found.instead_of(handler))
        yield found
    finally:
        # First: if a signal ends this block, the handlers that stay raise.
        found.active = False
        for number, handler in own.items():
            signal.signal(number, handler)


def wait_until(is_done: Callable[[], bool], future: Future[_ResultT]) -> None:
    """Wait for a future, or until a condition that a signal may meet; within `heard_interrupts`."""
    while not (future.done() or is_done()):
        wait_for([future], timeout=POLL_S)


def result_of(future: Future[_ResultT]) -> _ResultT:
    """Return the result of a future.

    Raises
    ------
    KeyboardInterrupt
        At Ctrl-C.
    """
    return next(completed([future])).result()


def completed(futures: Collection[Future[_ResultT]]) -> Iterator[Future[_ResultT]]:
    """Yield futures as they complete.

    Raises
    ------
    KeyboardInterrupt
        At Ctrl-C.
    """
    left = set(futures)
    while left:
        done: set[Future[_ResultT]] = set()
        with heard_interrupts() as heard:
            while not (done or heard.caught):
                done, left = wait_for(left, timeout=POLL_S, return_when=FIRST_COMPLETED)
        if heard.caught:
            raise heard.caught[0]
        yield from done
