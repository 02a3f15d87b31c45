"""Write a fleet file, after checking that it can be read."""

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
        Path of the file; relative file names in it refer to its folder.
    text : str
        Content of the file.
    over : bool
        Whether to replace an existing file.
    scenarios : Sequence[str]
        Scenarios in the text that must also resolve to a fleet.

    Raises
    ------
    InputError
        The text is not a valid fleet (for example, its classes state no shares), or the file cannot be
        written.
    """
    try:
        folder = TemporaryDirectory(dir=out.parent, prefix=".new.")
    except OSError as error:
        raise InputError([Issue(str(out), 0, 0, "", f"cannot be written: {error.strerror}")]) from error
    with folder as name:
        # In the folder of the file, so that its relative file names resolve.
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
