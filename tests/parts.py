"""Parts of a test over many random examples: the first run in `make test`, the others in `make slow`."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import TypeVar

import pytest
from _pytest.mark.structures import ParameterSet

_Value = TypeVar("_Value")


def first_parts(values: Iterable[_Value], count: int) -> list[ParameterSet | _Value]:
    """Return the arguments of a parametrised test, of which only so many are no slow ones."""
    rest = iter(values)
    return [*islice(rest, count), *(_slow(value) for value in rest)]


def each_once(first: Iterable[_Value], second: Iterable[_Value]) -> list[ParameterSet | _Value]:
    """Return the pairs of two lists, of which `make test` has each value of either list in one at least."""
    ones, others = list(first), list(second)
    few = min(len(ones), len(others))
    return [
        one if at % few == to % few else _slow(one)
        for at, to, one in ((i, k, (a, b)) for i, a in enumerate(ones) for k, b in enumerate(others))
    ]


def _slow(value: object) -> ParameterSet:
    values = value if isinstance(value, tuple) else (value,)
    return pytest.param(*values, marks=pytest.mark.slow)
