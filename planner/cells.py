"""Text that a spreadsheet keeps as text."""

from __future__ import annotations

from fleetplan.fleet.printable import printable

SPREADSHEET_TRIGGERS = ("=", "+", "-", "@", "\t", "\r")
"""First characters that make a spreadsheet read a cell as a formula (OWASP, CSV injection)."""


def as_text(value: object) -> object:
    """Text that a spreadsheet keeps as text: a name such as "=HYPERLINK(...)" gets an apostrophe.

    Characters that steer a terminal are written out.
    """
    if not isinstance(value, str):
        return value
    shown = printable(value)
    return f"'{shown}" if value.startswith(SPREADSHEET_TRIGGERS) else shown


def from_text(value: str) -> str:
    """Return the text that `as_text` was given."""
    return value[1:] if value.startswith("'") and value[1:].startswith(SPREADSHEET_TRIGGERS) else value
