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


def month(name: str, fiscal_first_month: int = 1) -> int | None:
    """Return the months since the year 0 at which 2027Q1, 2027-01 or FY27-Q1 begins; None for other names.

    A fiscal year is named after the year that it ends in.
    """
    if name.startswith("FY"):
        year, part = name.removeprefix("FY").split("-Q")
        first = (2000 + int(year)) * 12 + fiscal_first_month - 1 - (12 if fiscal_first_month > 1 else 0)
        return first + 3 * (int(part) - 1)
    if "Q" in name:
        year, part = name.split("Q")
        return int(year) * 12 + 3 * (int(part) - 1)
    year, dash, part = name.partition("-")
    return int(year) * 12 + int(part) - 1 if dash else None
