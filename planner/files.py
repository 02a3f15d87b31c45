"""Files written whole or not at all, and text that a spreadsheet keeps as text."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

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
    """What `as_text` was given."""
    return value[1:] if value.startswith("'") and value[1:].startswith(SPREADSHEET_TRIGGERS) else value


def write_text(path: Path, text: str) -> Path:
    """Write a file whole: to a temporary file in the same folder, then renamed over the old one."""
    return write_bytes(path, text.encode("utf-8"))


def write_bytes(path: Path, content: bytes) -> Path:
    """The same for a file that is no text."""
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
        Path(temporary).chmod(0o644)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    return path
