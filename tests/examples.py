"""Number of random examples of a law in `make test`, `make test-more` and `make slow`."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar

import pytest
from hypothesis import settings

SWITCH = "FLEETPLAN_TEST_EXAMPLES"
"""Environment variable that `make test-more` sets to `more` and `make slow` to `all`."""

Law = TypeVar("Law", bound=Callable[..., Any])


def examples(of_all: int, at_first: int, more: int | None = None, **others: Any) -> Callable[[Law], Law]:
    """Return a decorator of a law that `make slow` tries on all examples, and `make test` on the first ones.

    Parameters
    ----------
    of_all, at_first : int
        Numbers of examples.
    more : int, optional
        The number that `make test-more` tries; the law is none of its tests without.
    others : Any
        Of `hypothesis.settings`. Examples have no deadline: another process may have the core.
    """
    asked = os.environ.get(SWITCH)
    number, mark = at_first, None
    if asked == "all":
        number, mark = of_all, pytest.mark.slow
    elif asked == "more" and more is not None:
        number, mark = more, pytest.mark.more
    chosen = settings(**{"deadline": None, **others}, max_examples=number)

    def decorated(law: Law) -> Law:
        return chosen(law) if mark is None else mark(chosen(law))

    return decorated
