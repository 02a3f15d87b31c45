"""What ends a command in words: a user's mistake with its place and the nearest match, or a limit."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

# Beyond this many the list of allowed names hides the message; the nearest match is still given.
MAX_NAMES_SHOWN: Final = 20
# Similarity from which a name counts as a slip of the one that was meant (difflib's ratio, 0 to 1).
NEAREST_MATCH_RATIO: Final = 0.6
# What a message quotes of a file is cut: the start of a value tells it from others.
_LONGEST_WORD: Final = 200
_LONGEST_MESSAGE: Final = 1000
_LONG_WORD: Final = re.compile(rf"\S{{{_LONGEST_WORD + 1},}}")


@dataclass(frozen=True, slots=True)
class Issue:
    """One thing that is wrong with an input.

    Attributes
    ----------
    path : str
        The file, as the user named it.
    line, column : int
        Where in the file, counted from 1; 0 where the file as a whole is meant.
    key_path : str
        The key within the file, such as `services.chat.slo.ttft_ms`; empty for the file as a whole.
    message : str
        What is wrong.
    hint : str
        What is allowed, what was probably meant, or how to mend it; may be empty.
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
    """Return a message in which no word, and not the whole, is longer than a reader wants."""
    short = _LONG_WORD.sub(lambda found: f"{found[0][:_LONGEST_WORD]}...", text)
    return short if len(short) <= _LONGEST_MESSAGE else f"{short[:_LONGEST_MESSAGE]}..."


class LimitReachedError(Exception):
    """A limit was reached before there was anything to show."""


class InputError(Exception):
    """The input cannot be used. Carries every issue that was found, in the order of the files.

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
    """Return the option that `name` is most likely a slip of, or None where none is near.

    Upper and lower case, hyphens, underscores and blanks do not count, so `h200_sxm` finds `H200-SXM`.
    """
    by_plain = {_plain(option): option for option in options}
    found = difflib.get_close_matches(_plain(name), by_plain, n=1, cutoff=least_ratio)
    return by_plain[found[0]] if found else None


def names_hint(name: str, options: Sequence[str]) -> str:
    """Return the hint for an unknown name: what is allowed, and what was probably meant."""
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
