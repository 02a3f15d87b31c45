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
"""How our own letters are written where the encoding of a terminal has none for them."""

WARNING_LETTERS: Final = 200
"""Of a warning on the first screen, two lines of a terminal; what follows is mostly its source."""

_ERRORS: Final = "fleetplan-plain"
# In JSON these stand inside strings alone, where an escape says the same.
_STEERING_IN_JSON: Final = re.compile("[\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
_NOT_ASCII: Final = re.compile("[^\x00-\x7e]")


_reopened: list[TextIO] = []
"""Streams that were closed; a stream that nobody holds closes what another one writes to."""


class OutputError(Exception):
    """Standard output cannot be written.

    Attributes
    ----------
    is_closed : bool
        Whether its reader has gone, as that of a pipe to `head`.
    """

    def __init__(self, error: OSError) -> None:
        super().__init__(error.strerror or str(error))
        self.is_closed = error.errno == errno.EPIPE


class _Stream(io.TextIOWrapper):
    """A standard stream in which every letter can be written, and failures are told from those of files."""

    def __init__(self, stream: TextIO, *, is_result: bool) -> None:
        super().__init__(
            stream.buffer, encoding=stream.encoding, errors=_ERRORS, line_buffering=stream.isatty()
        )
        self._is_result = is_result

    def write(self, text: str) -> int:
        """Write text; what cannot be written is an `OutputError`, progress is dropped."""
        try:
            return super().write(text)
        except OSError as error:
            return self._failed(error, len(text))

    def flush(self) -> None:
        """Write what waits."""
        try:
            super().flush()
        except OSError as error:
            self._failed(error, 0)

    def _failed(self, error: OSError, written: int) -> int:
        if self._is_result:
            raise OutputError(error) from error
        return written


def guard_streams() -> None:
    """Replace the standard streams by ones that write every letter and say when they cannot.

    Progress and warnings that cannot be written are dropped: the result does not depend on them.
    """
    codecs.register_error(_ERRORS, _plain)
    _open_what_is_closed()
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout = _Stream(sys.stdout, is_result=True)
    if isinstance(sys.stderr, io.TextIOWrapper):
        sys.stderr = _Stream(sys.stderr, is_result=False)


def _open_what_is_closed() -> None:
    """Take the numbers of streams that are closed, so that no file gets them; a result then has no place."""
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
    """Send what is left for standard output nowhere, so that the end of the process says nothing about it."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.__stdout__.fileno() if sys.__stdout__ is not None else 1)


def echo(text: str, err: bool = False) -> None:
    """Print a line; characters that steer a terminal are written out."""
    typer.echo(printable(text), err=err)


def echo_json(text: str) -> None:
    """Print JSON as it is, with escapes for letters that the terminal cannot write or that would steer it."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    pattern = _STEERING_IN_JSON if codecs.lookup(encoding).name == "utf-8" else _NOT_ASCII
    typer.echo(pattern.sub(lambda found: json.dumps(found[0])[1:-1], text))


def console(stderr: bool = False, unwatched_width: int = 160) -> Console:
    """A console whose text steers no terminal; where nobody watches it has `unwatched_width` columns."""
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
    """Return a way to say lines of progress: dimmed in a terminal, written as they are to anything else."""
    watched = errors.is_terminal

    def say(text: str) -> None:
        if watched:
            errors.print(text, style="dim", markup=False)
            return
        # Fleets have thousands of services, each with its line, that Rich lays out in 0.3 ms.
        errors.file.write(f"{printable(text)}\n")
        errors.file.flush()

    return say


def say_written(errors: Console, path: Path) -> None:
    """Say that a file has been written."""
    errors.print(f"written to {path}", style="dim", markup=False)


def say_warnings(warnings: Iterable[str], errors: Console, whole: bool = True) -> None:
    """Print warnings.

    Parameters
    ----------
    warnings : Iterable[str]
        What to print, a line each.
    errors : Console
        Where to.
    whole : bool
        Whether each is printed whole, however long, and not its first `WARNING_LETTERS`.
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
