"""Text that a terminal, a page and a table show as it is: no character in it steers them.

Escape sequences begin with ESC or a C1 control, backspace and carriage return overwrite what stands there,
and the controls of text direction show a name in another order than it has.
"""

from __future__ import annotations

import re
from typing import Final

# C0 but tab and newline, DEL and C1, the controls of direction, what has no width (but joiners, which
# scripts and emoji need), and halves of surrogate pairs (from names of files that are no UTF-8), which no
# encoding can write.
_STEERING: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028\u2029\u202a-\u202e\u2060"
    "\u2066-\u2069\ufeff\ud800-\udfff]"
)


def printable(text: str) -> str:
    """Return the text with every steering character written out: ESC as `x1b` after a backslash."""
    return _STEERING.sub(lambda found: _written_out(found[0]), text)


def steering_character(text: str) -> str | None:
    """Return how the first steering character of a text is named, such as U+001B; None where it has none."""
    found = _STEERING.search(text)
    return None if found is None else f"U+{ord(found[0]):04X}"


def _written_out(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code <= 0xFF else f"\\u{code:04x}"
