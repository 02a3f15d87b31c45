"""Escape characters that steer a terminal, a page or a table.

Escape sequences begin with ESC or a C1 control; backspace and carriage return overwrite text; the controls of
text direction change the order of a name.
"""

from __future__ import annotations

import re
from typing import Final

# C0 except tab and newline, DEL and C1, the controls of direction, characters without a width (except
# joiners, which scripts and emoji need), and halves of surrogate pairs (from file names that are not UTF-8),
# which no encoding can write.
_STEERING: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028\u2029\u202a-\u202e\u2060"
    "\u2066-\u2069\ufeff\ud800-\udfff]"
)


def printable(text: str) -> str:
    """Return the text with all control characters escaped: ESC becomes `x1b` after a backslash."""
    return _STEERING.sub(lambda found: _written_out(found[0]), text)


def steering_character(text: str) -> str | None:
    """Return the name of the first control character of a text, such as U+001B; None without one."""
    found = _STEERING.search(text)
    return None if found is None else f"U+{ord(found[0]):04X}"


def _written_out(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code <= 0xFF else f"\\u{code:04x}"
