"""Parts of a test over many examples: some run in `make test`, others in `make test-more` or `make slow`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

import pytest
from _pytest.mark.structures import ParameterSet

_Value = TypeVar("_Value")


def first_parts(values: Iterable[_Value], count: int, more: int = 0) -> list[ParameterSet | _Value]:
    """Return the arguments of a parametrised test, of which `make test` tries the first.

    Parameters
    ----------
    values : iterable
        The arguments.
    count : int
        How many `make test` tries.
    more : int
        How many of the others `make test-more` tries. The rest is left to `make slow`.
    """
    return [
        value if at < count else _more(value) if at < count + more else _slow(value)
        for at, value in enumerate(values)
    ]


def first_of(values: Iterable[_Value], count: int) -> list[ParameterSet | _Value]:
    """Return the arguments of a test, of which `make test` tries the first, `make test-more` the others."""
    return [value if at < count else _more(value) for at, value in enumerate(values)]


def those_with(values: Iterable[_Value], chosen: Callable[[_Value], bool]) -> list[ParameterSet | _Value]:
    """Return the arguments of a test, of which `make test` tries the chosen, `make test-more` the others."""
    return [value if chosen(value) else _more(value) for value in values]


def each_once(
    first: Iterable[_Value], second: Iterable[_Value], mark: pytest.MarkDecorator = pytest.mark.slow
) -> list[ParameterSet | _Value]:
    """Return the pairs of two lists, of which `make test` has each value of either list in one at least.

    The others have a mark: that of `make slow`, or that of `make test-more`.
    """
    ones, others = list(first), list(second)
    few = min(len(ones), len(others))
    return [
        one if at % few == to % few else _marked(one, mark)
        for at, to, one in ((i, k, (a, b)) for i, a in enumerate(ones) for k, b in enumerate(others))
    ]


def _more(value: object) -> ParameterSet:
    return _marked(value, pytest.mark.more)


def _slow(value: object) -> ParameterSet:
    return _marked(value, pytest.mark.slow)


def _marked(value: object, mark: pytest.MarkDecorator) -> ParameterSet:
    values = value if isinstance(value, tuple) else (value,)
    return pytest.param(*values, marks=mark)
