"""Work that ends early: a long computation asks at every step whether whoever wants it still waits.

A time limit that is looked at between two computations alone is kept as badly as the longest of them is long.
Steps ask here, so that nothing has to hand the question down to them.

What is done once per installation, and cannot be cut short, is told to whoever waits and counted apart, so
that time limits leave it out.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

_OVER: Final[ContextVar[Callable[[], bool] | None]] = ContextVar("over", default=None)
_TELL: Final[ContextVar[Callable[[str], None]]] = ContextVar("tell", default=lambda _: None)
_once_s: Final[list[float]] = []


class WorkInterruptedError(Exception):
    """The time of an interruptible computation was over before its end."""


@contextmanager
def interruptible(over: Callable[[], bool], tell: Callable[[str], None] = lambda _: None) -> Iterator[None]:
    """Let the computations of a block end early.

    Parameters
    ----------
    over : callable
        Says whether the time is over; asked at every `checkpoint` of this thread.
    tell : callable
        Told what is done `once_per_installation` in this thread.

    Raises
    ------
    WorkInterruptedError
        From the first `checkpoint` after that.
    """
    over_before, tell_before = _OVER.set(over), _TELL.set(tell)
    try:
        yield
    finally:
        _OVER.reset(over_before)
        _TELL.reset(tell_before)


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


@contextmanager
def once_per_installation(what: str) -> Iterator[None]:
    """Tell whoever waits what the block does, and count its time in `once_s`."""
    _TELL.get()(what)
    start_s = time.monotonic()
    try:
        yield
    finally:
        _once_s.append(time.monotonic() - start_s)


def once_s() -> float:
    """Time that this process has spent on what is done once per installation. [s]"""
    return sum(_once_s)
