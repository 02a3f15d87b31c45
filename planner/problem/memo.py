"""Memoise a function of one object, for the lifetime of that object."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar, cast
from weakref import WeakKeyDictionary

Source = TypeVar("Source")
Figure = TypeVar("Figure")


def memoised(compute: Callable[[Source], Figure]) -> Callable[[Source], Figure]:
    """Let a function of one argument that never changes answer from memory.

    Parameters
    ----------
    compute : callable
        Its argument is told apart by identity, and can be referred to weakly. Nobody may change its answer.
    """
    known: WeakKeyDictionary[Source, Figure] = WeakKeyDictionary()

    @wraps(compute)
    def remembered(source: Source) -> Figure:
        found = known.get(source, known)
        if found is known:
            found = known[source] = compute(source)
        return cast(Figure, found)

    return remembered
