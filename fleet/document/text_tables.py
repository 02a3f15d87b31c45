"""Read CSV tables that people maintain: text cells one by one, with every mistake and its line."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fleetplan.fleet.document.headers import header_issues
from fleetplan.fleet.errors import InputError, Issue, names_hint
from fleetplan.fleet.input_files import (
    CUT_SHORT,
    CsvError,
    NotTextError,
    csv_rows,
    is_cut_short,
    read_bytes,
    text_of,
    unpacked,
)
from fleetplan.fleet.printable import steering_character


@dataclass(frozen=True, slots=True)
class TextRow:
    """One row of a table.

    Attributes
    ----------
    path : str
        The file, for messages.
    line : int
        Line of the row; the header is line 1.
    cells : dict[str, str]
        Cells that are not empty, by column.
    issues : list[Issue]
        Mistakes so far; shared by all rows of a table.
    """

    path: str
    line: int
    cells: dict[str, str]
    issues: list[Issue]

    def note(self, column: str, message: str, hint: str = "") -> None:
        """Note a mistake in a cell."""
        self.issues.append(Issue(self.path, self.line, 1, column, message, hint))

    def number(self, column: str) -> float | None:
        """Return a finite number of at least 0; None if the cell is empty or invalid (noted)."""
        written = self.cells.get(column)
        if written is None:
            return None
        try:
            found = float(written)
        except ValueError:
            found = math.nan
        if not math.isfinite(found) or found < 0:
            self.note(column, f"must be a number from 0, not {written!r}")
            return None
        return found

    def name(self, column: str, kind: str, known: Sequence[str]) -> str | None:
        """Return a known name; None if the cell is empty or the name is unknown (noted)."""
        written = self.cells.get(column)
        if written is not None and written not in known:
            self.note(column, f"there is no {kind} {written!r}", names_hint(written, tuple(known)))
            return None
        return written


@dataclass(frozen=True, slots=True)
class TextTable:
    """A table of rows, and the mistakes in it so far.

    Attributes
    ----------
    path : str
        The file.
    columns : tuple[str, ...]
        Its header.
    rows : tuple[TextRow, ...]
        At least one.
    unread : tuple[str, ...]
        Columns that the reader does not know.
    issues : list[Issue]
        Mistakes so far.
    """

    path: str
    columns: tuple[str, ...]
    rows: tuple[TextRow, ...]
    unread: tuple[str, ...] = ()
    issues: list[Issue] = field(default_factory=list)

    def require_valid(self) -> None:
        """Raise the mistakes so far.

        Raises
        ------
        InputError
            If there are any.
        """
        if self.issues:
            raise InputError(self.issues)


def read_text_table(
    path: Path, allowed: Sequence[str], needed: Sequence[str], *, more: bool = False
) -> TextTable:
    """Return a CSV table with a header.

    Parameters
    ----------
    path : Path
        The file.
    allowed : Sequence[str]
        Known columns.
    needed : Sequence[str]
        Required columns.
    more : bool
        Whether the table may have unknown columns that resemble no known column; `unread` names them.

    Raises
    ------
    InputError
        The file cannot be read, is not CSV, has no rows, or has an unknown, missing or duplicate column.
    """
    name = str(path)
    try:
        lines = io.StringIO(text_of(unpacked(read_bytes(path), path)), newline="").readlines()
        stripped = ((line, [cell.strip() for cell in cells]) for line, cells in csv_rows(lines))
        found = [(line, cells) for line, cells in stripped if any(cells)]
    except (OSError, NotTextError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError([Issue(name, 0, 0, "", f"cannot be read: {reason}")]) from error
    except CsvError as error:
        raise InputError([Issue(name, error.line, 1, "", f"is not CSV: {error.reason}")]) from error
    header = found[0][1] if found else []
    issues = header_issues(name, header, needed, allowed, closed=True, more=more)
    if not issues and len(found) < 2:
        issues.append(Issue(name, 1, 1, "", "has a header and no rows"))
    if issues:
        raise InputError(issues)
    noted: list[Issue] = []
    unread = tuple(column for column in header if column and column not in {*allowed, *needed})
    read = ["" if column in unread else column for column in header]
    rows = tuple(_row(name, line, read, cells, noted) for line, cells in found[1:])
    if is_cut_short(lines[found[-1][0] - 1], found[-1][1], header):
        rows[-1].note("", CUT_SHORT)
    return TextTable(name, tuple(header), rows, unread, noted)


def _row(name: str, line: int, header: Sequence[str], cells: Sequence[str], issues: list[Issue]) -> TextRow:
    row = TextRow(name, line, {c: v for c, v in zip(header, cells, strict=False) if c and v}, issues)
    if len(cells) > len(header):
        row.note("", f"has {len(cells)} cells, the header {len(header)}")
    for column, value in row.cells.items():
        if (found := steering_character(value)) is not None:
            row.note(column, f"the character {found} is not allowed", "it is a control character; remove it")
    return row
