"""A fleet file that a command writes: only one that can be read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from fleetplan.fleet.errors import InputError, Issue
from fleetplan.planner.export.new_file import write_new
from fleetplan.scenarios.load import load_fleet


def write_fleet_file(out: Path, text: str, *, over: bool, scenarios: Sequence[str] = ()) -> None:
    """Write a fleet file.

    Parameters
    ----------
    out : Path
        Where to; files that it names relative to itself are looked for from there.
    text : str
        What it says.
    over : bool
        Whether a file that is there already is replaced.
    scenarios : Sequence[str]
        Of the text, with which it must be a fleet as well.

    Raises
    ------
    InputError
        The text is no fleet, such as one whose classes state no shares, or the file cannot be written.
    """
    try:
        folder = TemporaryDirectory(dir=out.parent, prefix=".new.")
    except OSError as error:
        raise InputError([Issue(str(out), 0, 0, "", f"cannot be written: {error.strerror}")]) from error
    with folder as name:
        # Beside the file, so that what it names relative to itself is found.
        trial = out.parent / f"{Path(name).name}.yaml"
        try:
            trial.write_text(text, encoding="utf-8")
            load_fleet(trial)
            if scenarios:
                load_fleet(trial, scenarios)
        except InputError as error:
            here = str(trial)
            raise InputError(
                [replace(each, path=str(out)) if each.path == here else each for each in error.issues]
            ) from error
        finally:
            trial.unlink(missing_ok=True)
    write_new(out, text, over=over)
