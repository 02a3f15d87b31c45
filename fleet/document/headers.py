"""Check the header of a table for unknown, duplicate and missing columns, in the same words for all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from fleetplan.fleet.errors import InputError, Issue, names_hint, nearest

_OTHER_DIVIDERS: Final = {";": "semicolons", "\t": "tabs", "|": "bars"}
"""Separators that spreadsheets write instead of commas."""

UNKNOWN_SHOWN: Final = 3
"""Largest number of unknown columns that are reported separately, each with its nearest match."""

UNKNOWN_NAMED: Final = 6
"""Largest number of further unknown columns that are named."""


def divider_issue(path: str, header: Sequence[str]) -> Issue | None:
    """Return the message for a header whose columns are separated by other characters than commas."""
    if len(header) != 1:
        return None
    divider = next((mark for mark in _OTHER_DIVIDERS if mark in header[0]), None)
    if divider is None:
        return None
    message = f"fields are divided by {_OTHER_DIVIDERS[divider]}; divide them by commas"
    return Issue(path, 1, 1, "", message, "decimals have a point")


def header_issues(
    path: str,
    header: Sequence[str],
    needed: Sequence[str],
    known: Sequence[str] = (),
    *,
    closed: bool = False,
    more: bool = False,
    starts: Sequence[int] = (),
) -> list[Issue]:
    """Return the mistakes in the header of a table.

    Parameters
    ----------
    path : str
        The file, for messages.
    header : Sequence[str]
        Columns of the table.
    needed : Sequence[str]
        Required columns.
    known : Sequence[str]
        Columns that the reader knows, in addition to the required ones.
    closed : bool
        Whether an unknown column is a mistake.
    more : bool
        Whether a closed table may have unknown columns that resemble no known column.
    starts : Sequence[int]
        Position of each column in its line, from 1; default: the line itself.
    """
    every = tuple(dict.fromkeys((*known, *needed)))
    if not any(header):
        return [Issue(path, 1, 1, "", "is empty", f"a table has the columns {', '.join(needed)}")]
    if (divided := divider_issue(path, header)) is not None:
        return [divided]
    issues, unknown = [], []
    for position, name in enumerate(header):
        start = starts[position] if starts else 1
        if not name:
            # Spreadsheets end every line with a comma if a cell beside the table once had content.
            if closed and not more:
                issues.append(Issue(path, 1, start, "", "a column has no name", "delete it, or name it"))
        elif name in header[:position]:
            issues.append(Issue(path, 1, start, name, "the column is given twice"))
        elif closed and name not in every and not (more and nearest(name, every) is None):
            unknown.append(Issue(path, 1, start, name, "unknown column", names_hint(name, every)))
    issues += unknown[:UNKNOWN_SHOWN]
    if further := unknown[UNKNOWN_SHOWN:]:
        # This is the file of another tool: do not report each of its columns.
        names = ", ".join(each.key_path for each in further[:UNKNOWN_NAMED])
        dots = ", ..." if len(further) > UNKNOWN_NAMED else ""
        message = f"further unknown columns ({len(further)}): {names}{dots}"
        issues.append(Issue(path, 1, further[0].column, "", message, "is it the right file?"))
    for name in needed:
        if name not in header:
            meant = None if closed else nearest(name, [other for other in header if other not in every])
            hint = "" if meant is None else f"is it the column {meant!r}?"
            issues.append(Issue(path, 1, 1, name, "the column is missing", hint))
    return issues


def check_header(path: str, header: Sequence[str], needed: Sequence[str], known: Sequence[str] = ()) -> None:
    """Reject a table with missing or duplicate columns; unknown columns are allowed.

    Raises
    ------
    InputError
        With every mistake of the header.
    """
    if issues := header_issues(path, header, needed, known):
        raise InputError(issues)
