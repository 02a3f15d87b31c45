"""Parts of a fleet file: which keys are known, and values that are given once or by period."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Node = Mapping[str, Any]


class NotCoveredError(Exception):
    """A key or a value that the second formulation does not know."""


def take(node: Node, *known: str) -> Node:
    """Return a mapping all of whose keys are known.

    Raises
    ------
    NotCoveredError
        If there is another key.
    """
    unknown = sorted(set(node) - set(known))
    if unknown:
        raise NotCoveredError(f"not covered: {', '.join(unknown)}")
    return node


def by_period(value: Any, periods: Sequence[str]) -> tuple[Any, ...]:
    """Return a value for each period; None where a table leaves one out."""
    if isinstance(value, Mapping):
        return tuple(value.get(name) for name in periods)
    return (value,) * len(periods)


def quarter(name: str) -> int:
    """Return the number of a quarter such as 2027Q1."""
    year, part = name.split("Q")
    return int(year) * 4 + int(part) - 1
