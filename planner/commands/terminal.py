"""Output streams that report write errors, and text without control sequences."""

from __future__ import annotations

import codecs
import errno
import io
import json
import os
import re
import sys
from collections.abc import Callable, Iterable
from textwrap import shorten
from typing import TYPE_CHECKING, Final, TextIO

import typer

from fleetplan.fleet.printable import printable

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.segment import Segment

PLAIN_LETTERS: Final = {"·": "-", "\u00d7": "x", "…": "...", "→": "->", "₂": "2"}
"""Replacements of non-ASCII letters for terminals whose encoding lacks them."""

WARNING_LETTERS: Final = 200
"""Maximum length of a warning on the first screen, about two lines; the rest is mostly its source. [letters]
"""

_ERRORS: Final = "fleetplan-plain"
# In JSON, these occur only inside strings, where an escape is equivalent.
_STEERING_IN_JSON: Final = re.compile("[\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
_NOT_ASCII: Final = re.compile("[^\x00-\x7e]")


_reopened: list[TextIO] = []
"""Reopened streams; a garbage-collected stream would close the descriptor of another one."""


class OutputError(Exception):
    """Standard output cannot be written.

    Attributes
    ----------
    is_closed : bool
        Whether the reader has closed it, like `head` at the end of a pipe.
    """

    def __init__(self, error: OSError) -> None:
        super().__init__(error.strerror or str(error))
        self.is_closed = error.errno == errno.EPIPE


class _Stream(io.TextIOWrapper):
    """A standard stream that can write every letter and raises its own errors."""

    def __init__(self, stream: TextIO, *, is_result: bool) -> None:
        super().__init__(
            stream.buffer, encoding=stream.encoding, errors=_ERRORS, line_buffering=stream.isatty()
        )
        self._is_result = is_result

    def write(self, text: str) -> int:
        """Write text; a failure raises `OutputError` for results, and drops progress."""
        try:
            return super().write(text)
        except OSError as error:
            return self._failed(error, len(text))

    def flush(self) -> None:
        """Write buffered text."""
        try:
            super().flush()
        except OSError as error:
            self._failed(error, 0)

    def _failed(self, error: OSError, written: int) -> int:
        if self._is_result:
            raise OutputError(error) from error
        return written


def guard_streams() -> None:
    """Replace the standard streams by ones that can write every letter and report failures.

    Progress and warnings that cannot be written are dropped: the result does not depend on them.
    """
    codecs.register_error(_ERRORS, _plain)
    _open_what_is_closed()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout = _Stream(sys.stdout, is_result=True)
    if isinstance(sys.stderr, io.TextIOWrapper):
        sys.stderr = _Stream(sys.stderr, is_result=False)


def _open_what_is_closed() -> None:
    """Occupy the descriptors of closed streams, so that no file gets them; results then fail."""
    if sys.stdout is None:
        sys.stdout = _at(1, os.O_RDONLY)
    if sys.stderr is None:
        sys.stderr = _at(2, os.O_WRONLY)


def _at(number: int, mode: int) -> TextIO:
    nowhere = os.open(os.devnull, mode)
    if nowhere != number:
        os.dup2(nowhere, number)
        os.close(nowhere)
    stream = io.TextIOWrapper(io.BufferedWriter(io.FileIO(number, "wb")), encoding="utf-8")
    _reopened.append(stream)
    return stream


def drop_output() -> None:
    """Discard the rest of standard output, so that the end of the process reports no error."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.__stdout__.fileno() if sys.__stdout__ is not None else 1)


def echo(text: str, err: bool = False) -> None:
    """Print a line with control characters escaped."""
    typer.echo(printable(text), err=err)


def echo_json(text: str) -> None:
    """Print JSON with escapes for letters that the terminal cannot write or would interpret."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    pattern = _STEERING_IN_JSON if codecs.lookup(encoding).name == "utf-8" else _NOT_ASCII
    typer.echo(pattern.sub(lambda found: json.dumps(found[0])[1:-1], text))


def console(stderr: bool = False, unwatched_width: int = 160) -> Console:
    """Return a console that escapes control characters, with `unwatched_width` columns off a terminal."""
    from rich.console import Console as RichConsole
    from rich.segment import Segment as RichSegment

    class PlainConsole(RichConsole):
        def render(
            self, renderable: RenderableType, options: ConsoleOptions | None = None
        ) -> Iterable[Segment]:
            for text, style, control in super().render(renderable, options):
                yield RichSegment(text if control else printable(text), style, control)

    found = PlainConsole(stderr=stderr, highlight=False)
    if not found.is_terminal:
        found = PlainConsole(stderr=stderr, highlight=False, width=unwatched_width)
    return found


def progress(errors: Console) -> Callable[[str], None]:
    """Return a function that prints progress: dimmed on a terminal, plain otherwise."""
    watched = errors.is_terminal

    def say(text: str) -> None:
        if watched:
            errors.print(text, style="dim", markup=False)
            return
        # Fleets have thousands of services with a line each, and Rich takes 0.3 ms to lay out a line.
        errors.file.write(f"{printable(text)}\n")
        errors.file.flush()

    return say


def say_written(errors: Console, path: Path) -> None:
    """Print that a file has been written."""
    errors.print(f"written to {path}", style="dim", markup=False)


def say_warnings(warnings: Iterable[str], errors: Console, whole: bool = True) -> None:
    """Print warnings.

    Parameters
    ----------
    warnings : Iterable[str]
        Warnings to print, one line each.
    errors : Console
        Output console.
    whole : bool
        Whether to print each warning in full instead of its first `WARNING_LETTERS`.
    """
    cut = False
    for warning in warnings:
        text = warning if whole else shorten(warning, WARNING_LETTERS, placeholder=" …")
        cut = cut or text != warning
        errors.print(f"warning: {text}", style="yellow", markup=False, highlight=False)
    if cut:
        errors.print("Warnings in full: `--full`, plan.json and report of `--out`", style="dim", markup=False)


def _plain(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    letters = error.object[error.start : error.end]
    return "".join(PLAIN_LETTERS.get(letter, "?") for letter in letters), error.end
