"""Interrupt long computations: their steps check whether the time limit is over.

A time limit that is checked only between computations is exceeded by the longest of them. Steps call
`checkpoint`, so that the check needs no parameter.

Work that is done once per installation and cannot be interrupted is reported and timed separately, so that
time limits exclude it.
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
    """Make the computations of a block interruptible.

    Parameters
    ----------
    over : callable
        Returns whether the time is over; called at every `checkpoint` of this thread.
    tell : callable
        Receives descriptions of work done `once_per_installation` in this thread.

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
    """Interrupt a computation whose time is over; no effect outside interruptible blocks.

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
    """Report the work of the block to the caller, and count its time in `once_s`."""
    _TELL.get()(what)
    start_s = time.monotonic()
    try:
        yield
    finally:
        _once_s.append(time.monotonic() - start_s)


def once_s() -> float:
    """Return the time of this process in work that is done once per installation. [s]"""
    return sum(_once_s)
