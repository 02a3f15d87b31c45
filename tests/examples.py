"""How many random examples a law is tried on: some by `make test`, all of them by `make slow`."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar

import pytest
from hypothesis import settings

SWITCH = "FLEETPLAN_TEST_EXAMPLES"
"""Environment variable that `make slow` sets to `all`."""

Law = TypeVar("Law", bound=Callable[..., Any])


def examples(of_all: int, at_first: int, **more: Any) -> Callable[[Law], Law]:
    """Return a decorator of a law that `make slow` tries on all examples, and `make test` on the first ones.

    Parameters
    ----------
    of_all, at_first : int
        Numbers of examples.
    more : Any
        Of `hypothesis.settings`. Examples have no deadline: another process may have the core.
    """
    every = os.environ.get(SWITCH) == "all"
    chosen = settings(**{"deadline": None, **more}, max_examples=of_all if every else at_first)

    def decorated(law: Law) -> Law:
        return pytest.mark.slow(chosen(law)) if every else chosen(law)

    return decorated
