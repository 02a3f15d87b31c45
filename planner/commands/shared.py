"""Shared parts of the commands: exit codes, options, and loading a fleet."""

from __future__ import annotations

import errno
import math
import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from fleetplan.fleet.inventory import Fleet


class ExitCode(IntEnum):
    """Exit status of a command."""

    FOUND = 0
    BUG = 1
    BAD_INPUT = 2
    INFEASIBLE = 3
    LIMIT = 4
    DIFFERENT = 5


PAGE_SUFFIXES: Final = (".html", ".htm")
"""Suffixes of HTML output files."""

CSV_SUFFIXES: Final = (".csv", ".txt")
"""Suffixes of CSV output files."""

MOST_WORKERS: Final = 1024
"""Maximum number of processes of a command, above the core count of current machines."""

FleetFile = Annotated[Path, typer.Argument(help="the fleet file", metavar="FLEET.yaml", show_default=False)]
Scenarios = Annotated[
    list[str] | None,
    typer.Option("-s", "--scenario", help="a scenario of the fleet file; repeatable", metavar="NAME"),
]
Assignments = Annotated[
    list[str] | None,
    typer.Option(
        "--set", help="one value of the fleet file, e.g. services.chat.slo.ttft_ms=300", metavar="KEY=VALUE"
    ),
]
BaselineFile = Annotated[
    Path | None,
    typer.Option("--baseline", help="the plan in force, the reference for changes", metavar="PLAN.json"),
]

EvaluationLimit = Annotated[
    float | None,
    typer.Option(
        "--time-limit",
        help="seconds for the evaluation of configurations (default: until all are evaluated)",
        metavar="S",
        min=0.1,
    ),
]
"""Option for commands that evaluate candidates without a solve."""


@contextmanager
def time_for_candidates(time_limit_s: float | None) -> Iterator[Callable[[], bool]]:
    """Yield a function that returns whether the time for candidates is over, for commands without a search.

    Raises
    ------
    OutOfTimeError
        Evaluation of candidates took longer than the limit.
    """
    from fleetplan.perfmodel.interruption import once_s
    from fleetplan.planner.candidates import OutOfTimeError

    ends = math.inf if time_limit_s is None else time.monotonic() - once_s() + time_limit_s
    try:
        yield lambda: time.monotonic() - once_s() >= ends
    except OutOfTimeError as error:
        raise error if time_limit_s is None else error.within(time_limit_s) from error


def output_folder(path: Path | None) -> Path | None:
    """Return the output folder, which need not exist yet.

    Raises
    ------
    typer.BadParameter
        The path is a file or cannot be created. The check comes early so that no result is lost.
    """
    if path is None:
        return None
    try:
        if stat.S_ISREG(path.stat().st_mode):
            raise typer.BadParameter(f"{str(path)!r} is a file, not a folder")
        stands = path
    except FileNotFoundError:
        stands = next(each for each in path.parents if each.exists())
    except OSError as error:
        raise typer.BadParameter(f"{str(path)!r} cannot be written: {error.strerror}") from error
    if stands.is_dir() and not os.access(stands, os.W_OK | os.X_OK):
        raise typer.BadParameter(f"{str(path)!r} cannot be written: {os.strerror(errno.EACCES)}")
    return path


def drawable(path: Path | None) -> Path | None:
    """Return the output file of a figure.

    Raises
    ------
    typer.BadParameter
        The suffix is not that of a figure.
    """
    from fleetplan.planner.drawing import PLOT_SUFFIXES

    if path is not None and path.suffix not in PLOT_SUFFIXES:
        raise typer.BadParameter(f"{str(path)!r} must end in {', '.join(PLOT_SUFFIXES)}")
    return path


def page_file(path: Path | None) -> Path | None:
    """Return the output file of a page.

    Raises
    ------
    typer.BadParameter
        The suffix belongs to another format.
    """
    return _with_suffix(path, PAGE_SUFFIXES, "to print it as PDF, open the page in a browser")


def csv_file(path: Path | None) -> Path | None:
    """Return the output file of a table.

    Raises
    ------
    typer.BadParameter
        The suffix belongs to another format.
    """
    return _with_suffix(path, CSV_SUFFIXES, "spreadsheets open CSV")


def _with_suffix(path: Path | None, suffixes: tuple[str, ...], hint: str) -> Path | None:
    # Pipes and devices have no suffix.
    if path is not None and path.suffix and path.suffix.lower() not in suffixes:
        raise typer.BadParameter(f"{str(path)!r} must end in {' or '.join(suffixes)}; {hint}")
    return path


def ratio(text: str, option: str = "--gap") -> float:
    """Return the ratio of an option, written as `0.5%` or `0.005`."""
    try:
        value = float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < 1:
        raise typer.BadParameter(
            f"{text!r} is not a ratio below 1; write 0.5% or 0.005", param_hint=f"'{option}'"
        )
    return value


def load(path: Path, scenario: list[str] | None, assignment: list[str] | None, errors: Console) -> Fleet:
    """Return the resolved fleet of a file, and print its warnings, including those on old prices."""
    from datetime import UTC, datetime

    from fleetplan.fleet.resolve import stale_prices
    from fleetplan.planner.commands.terminal import say_warnings
    from fleetplan.scenarios.load import load_fleet

    fleet = load_fleet(path, scenario or (), assignment or ())
    say_warnings((*fleet.warnings, *stale_prices(fleet, datetime.now(UTC).date())), errors)
    return fleet


def hardware_option(name: str, more: str = "") -> str:
    """Return the catalogue's name of a `--hardware` value; `more` extends the hint for an unknown name."""
    from fleetplan.fleet.catalog.hardware_names import UnknownHardwareError, catalogue_hardware
    from fleetplan.fleet.errors import InputError, Issue

    try:
        return catalogue_hardware(name)
    except UnknownHardwareError as error:
        hint = f"{error.hint}; {more}" if more else error.hint
        raise InputError(
            [Issue("--hardware", 0, 0, "", f"{name!r} is not in the catalogue", hint)]
        ) from error
