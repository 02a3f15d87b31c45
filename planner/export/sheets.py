"""Sheets of a workbook: literal text, numbers, and formulas with their values."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from xlsxwriter.format import Format
    from xlsxwriter.worksheet import Worksheet


@dataclass(frozen=True, slots=True)
class Formula:
    """A formula with its planned value, which programs without computation show."""

    text: str
    value: float


Cell: TypeAlias = str | float | Formula | None


@dataclass(frozen=True, slots=True)
class Sheet:
    """A sheet.

    Attributes
    ----------
    name : str
        Name of the sheet.
    head : Sequence[str]
        First row.
    rows : Sequence[Sequence[Cell]]
        Further rows.
    widths : Sequence[float]
        Column widths. [letters]
    marked : int or None
        Index of the column whose cells the user may change; None without one.
    """

    name: str
    head: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    widths: Sequence[float]
    marked: int | None = None


@dataclass(frozen=True, slots=True)
class _Formats:
    head: Format
    number: Format
    small: Format
    marked: Format


def write_sheets(stream: io.BytesIO, sheets: Sequence[Sheet]) -> None:
    """Write a workbook. Text is never interpreted as a formula, a link or a number."""
    import xlsxwriter  # noqa: PLC0415  (only a command that writes a workbook needs it)

    with xlsxwriter.Workbook(stream, {"in_memory": True}) as book:
        formats = _Formats(
            head=book.add_format({"bold": True, "bottom": 1}),
            number=book.add_format({"num_format": "#,##0.00"}),
            small=book.add_format({"num_format": "0.######"}),
            marked=book.add_format({"num_format": "#,##0.0000", "bg_color": "#FFF2CC", "locked": False}),
        )
        for sheet in sheets:
            page = book.add_worksheet(sheet.name)
            page.freeze_panes(1, 1)
            for column, width in enumerate(sheet.widths):
                page.set_column(column, column, width)
            for column, text in enumerate(sheet.head):
                page.write_string(0, column, text, formats.head)
            for row, cells in enumerate(sheet.rows, start=1):
                for column, cell in enumerate(cells):
                    chosen = formats.marked if column == sheet.marked else None
                    _write(page, (row, column), cell, chosen, formats)


def _write(
    page: Worksheet, place: tuple[int, int], cell: Cell, chosen: Format | None, formats: _Formats
) -> None:
    if cell is None or cell == "":
        return
    if isinstance(cell, str):
        page.write_string(*place, cell)
    elif isinstance(cell, Formula):
        page.write_formula(*place, f"={cell.text}", chosen or formats.number, cell.value)
    else:
        whole_or_large = cell == round(cell) or abs(cell) >= 1
        page.write_number(*place, cell, chosen or (formats.number if whole_or_large else formats.small))


def head(names: str) -> tuple[str, ...]:
    """Return the column names in a comma-separated text."""
    return tuple(name.strip() for name in names.split(","))
