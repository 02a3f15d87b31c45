"""The header of a table: columns that are unknown, given twice or missing, in the same words everywhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from fleetplan.fleet.errors import InputError, Issue, names_hint, nearest

_OTHER_DIVIDERS: Final = {";": "semicolons", "\t": "tabs", "|": "bars"}
"""What spreadsheets write in place of commas."""

UNKNOWN_SHOWN: Final = 3
"""Unknown columns that are mistakes of their own, each with what was probably meant."""

UNKNOWN_NAMED: Final = 6
"""Further ones that are named."""


def divider_issue(path: str, header: Sequence[str]) -> Issue | None:
    """Return what is wrong with a header that is one column because other marks than commas divide it."""
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
    """Return what is wrong with the header of a table.

    Parameters
    ----------
    path : str
        The file, for messages.
    header : Sequence[str]
        Columns of the table.
    needed : Sequence[str]
        Columns that must be there.
    known : Sequence[str]
        Columns that are read; what is needed is known, too.
    closed : bool
        Whether a column that nothing reads is a mistake, or the table may carry it.
    more : bool
        Whether a closed table may carry one that is no slip of a column that is read.
    starts : Sequence[int]
        Where each column starts in its line, from 1; the line itself where left out.
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
            # Spreadsheets end every line with a comma where a cell beside the table once held something.
            if closed and not more:
                issues.append(Issue(path, 1, start, "", "a column has no name", "delete it, or name it"))
        elif name in header[:position]:
            issues.append(Issue(path, 1, start, name, "the column is given twice"))
        elif closed and name not in every and not (more and nearest(name, every) is None):
            unknown.append(Issue(path, 1, start, name, "unknown column", names_hint(name, every)))
    issues += unknown[:UNKNOWN_SHOWN]
    if further := unknown[UNKNOWN_SHOWN:]:
        # It is the file of another tool: its columns are not mistakes one by one.
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
    """Refuse a table that lacks a column or has one twice; it may carry columns that nothing reads.

    Raises
    ------
    InputError
        With every mistake of the header.
    """
    if issues := header_issues(path, header, needed, known):
        raise InputError(issues)
