"""Work that ends early: a long computation asks at every step whether whoever wants it still waits.

A time limit that is looked at between two computations alone is kept as badly as the longest of them is long.
Steps ask here, so that nothing has to hand the question down to them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

_OVER: Final[ContextVar[Callable[[], bool] | None]] = ContextVar("over", default=None)


class WorkInterruptedError(Exception):
    """The time of an interruptible computation was over before its end."""


@contextmanager
def interruptible(over: Callable[[], bool]) -> Iterator[None]:
    """Let the computations of a block end early.

    Parameters
    ----------
    over : callable
        Says whether the time is over; asked at every `checkpoint` of this thread.

    Raises
    ------
    WorkInterruptedError
        From the first `checkpoint` after that.
    """
    token = _OVER.set(over)
    try:
        yield
    finally:
        _OVER.reset(token)


def checkpoint() -> None:
    """End an interruptible computation whose time is over; do nothing in any other one.

    Raises
    ------
    WorkInterruptedError
        If the time is over.
    """
    over = _OVER.get()
    if over is not None and over():
        raise WorkInterruptedError
