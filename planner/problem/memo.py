"""Memoise a function of one object, for the lifetime of that object."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar, cast
from weakref import finalize

Source = TypeVar("Source")
Figure = TypeVar("Figure")


def memoised(compute: Callable[[Source], Figure]) -> Callable[[Source], Figure]:
    """Cache the results of a function of one immutable argument.

    Parameters
    ----------
    compute : callable
        Function whose argument is identified by identity and weakly referable. Its result must not be
        changed.
    """
    # Keyed by id: a dictionary of weak references takes four times as long, and a model calls this millions
    # of times.
    known: dict[int, Figure] = {}

    @wraps(compute)
    def program_cache(source: Source) -> Figure:
        found = known.get(id(source), known)
        if found is known:
            found = known[id(source)] = compute(source)
            finalize(source, known.pop, id(source), None).atexit = False
        return cast(Figure, found)

    return program_cache
