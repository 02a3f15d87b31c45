"""Errors that end a command: a user's mistake with its place and the nearest match, or a limit."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

# Longest list of allowed names in a message; beyond it, only the nearest match is given.
MAX_NAMES_SHOWN: Final = 20
# Similarity from which a name counts as a misspelling of another (difflib's ratio, 0 to 1).
NEAREST_MATCH_RATIO: Final = 0.6
# Longest quotation of a file in a message; the start of a value identifies it.
_LONGEST_WORD: Final = 200
_LONGEST_MESSAGE: Final = 1000
_LONG_WORD: Final = re.compile(rf"\S{{{_LONGEST_WORD + 1},}}")


@dataclass(frozen=True, slots=True)
class Issue:
    """A mistake in an input.

    Attributes
    ----------
    path : str
        The file, as the user named it.
    line, column : int
        Position in the file, counted from 1; 0 for the whole file.
    key_path : str
        The key within the file, such as `services.chat.slo.ttft_ms`; empty for the file as a whole.
    message : str
        The mistake.
    hint : str
        Allowed values, the nearest match, or a correction; may be empty.
    """

    path: str
    line: int
    column: int
    key_path: str
    message: str
    hint: str = ""

    def __str__(self) -> str:
        where = f"{self.path}:{self.line}:{self.column}" if self.line else self.path
        key = f" {brief(self.key_path)}:" if self.key_path else ""
        hint = f"; {brief(self.hint)}" if self.hint else ""
        return f"{where}:{key} {brief(self.message)}{hint}"


def brief(text: str) -> str:
    """Return a message with its words and its whole shortened to a readable length."""
    short = _LONG_WORD.sub(lambda found: f"{found[0][:_LONGEST_WORD]}...", text)
    return short if len(short) <= _LONGEST_MESSAGE else f"{short[:_LONGEST_MESSAGE]}..."


class LimitReachedError(Exception):
    """A limit was reached before any result."""


class InputError(Exception):
    """The input is invalid. Carries all issues in the order of the files.

    Parameters
    ----------
    issues : Iterable[Issue]
        At least one.
    """

    def __init__(self, issues: Iterable[Issue]) -> None:
        self.issues: tuple[Issue, ...] = tuple(issues)
        if not self.issues:
            raise ValueError("an InputError needs at least one issue")
        super().__init__("\n".join(map(str, self.issues)))


def nearest(name: str, options: Iterable[str], least_ratio: float = NEAREST_MATCH_RATIO) -> str | None:
    """Return the option that `name` most likely misspells, or None if none is near.

    Ignores case, hyphens, underscores and blanks, so `h200_sxm` finds `H200-SXM`.
    """
    by_plain = {_plain(option): option for option in options}
    found = difflib.get_close_matches(_plain(name), by_plain, n=1, cutoff=least_ratio)
    return by_plain[found[0]] if found else None


def names_hint(name: str, options: Sequence[str]) -> str:
    """Return the hint for an unknown name: the allowed names and the nearest match."""
    parts = []
    if not options:
        parts.append("allowed: none are defined")
    elif len(options) <= MAX_NAMES_SHOWN:
        parts.append(f"allowed: {', '.join(options)}")
    else:
        parts.append(f"allowed: one of {len(options)} names")
    match = nearest(name, options)
    if match is not None:
        parts.append(f"did you mean {match!r}?")
    return "; ".join(parts)


def _plain(name: str) -> str:
    return name.lower().replace("-", "").replace("_", "").replace(" ", "")
