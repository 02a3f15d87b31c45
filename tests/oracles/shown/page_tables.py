"""Rows of a page's tables against figures of their kinds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from tests.oracles.shown.amounts import Money, figure_differs, percent_differs, unequal
from tests.oracles.shown.page import Element

Row = dict[str, Any]

MOST_ROWS: Final = 600
"""Rows of a table of the page."""


def moment_of(row: Row) -> str:
    """Return the text of a row's moment."""
    return " ".join(row[part] for part in ("period", "slice", "scenario") if row[part])


def table_of(part: Element, *heads: str) -> list[Row]:
    """Return the rows of the table whose head begins with these cells, by head."""
    for table in part.all("table"):
        rows = table.rows
        if rows and tuple(rows[0][: len(heads)]) == heads:
            return [dict(zip(rows[0], row, strict=False)) for row in rows[1:]]
    return []


def cells(place: str, row: Row, expected: Row, money: Money) -> Iterator[str]:
    """Yield the cells of a row that differ; a tuple states the kind of figure."""
    for head, value in expected.items():
        shown = row.get(head)
        kind, *rest = value if isinstance(value, tuple) else ("text", value)
        if shown is None:
            yield f"{place}: no cell {head}"
        elif rest[0] is None:
            yield from unequal(f"{place} {head}", shown, "")
        elif DIFFERS[kind](shown, money, *rest):
            yield f"{place} {head}: {shown!r} is shown, the plan has {rest[0]!r}"


DIFFERS: Final = {
    "text": lambda shown, _, value: shown != " ".join(str(value).split()),
    "money": lambda shown, money, usd, digits=4: money.differs(shown, usd, digits),
    "number": lambda shown, _, value, digits=4: figure_differs(shown, value, digits),
    "percent": lambda shown, _, ratio: percent_differs(shown, ratio),
}
