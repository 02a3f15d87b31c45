"""A file of the user's own is written whole or not at all, and never over another one unasked."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from fleetplan.fleet.errors import InputError, Issue
from fleetplan.fleet.files import write_whole


def write_new(path: Path, text: str, *, over: bool) -> None:
    """Write a file.

    Parameters
    ----------
    path : Path
        Where to; its folder exists.
    text : str
        What to write.
    over : bool
        Whether a file that is there already is replaced.

    Raises
    ------
    InputError
        If there is a file already, or none can be written.
    """
    try:
        if over:
            write_whole(path, text)
        else:
            _create(path, text)
    except FileExistsError as error:
        hint = "--force writes over it"
        raise InputError([Issue(str(path), 0, 0, "", "there is such a file already", hint)]) from error
    except OSError as error:
        raise InputError([Issue(str(path), 0, 0, "", f"cannot be written: {error.strerror}")]) from error


def _create(path: Path, text: str) -> None:
    with TemporaryDirectory(dir=path.parent, prefix=".new.") as folder:
        whole = write_whole(Path(folder) / "whole", text)
        try:
            # Unlike a rename, a link fails where there is a file, also one that came up a moment ago.
            path.hardlink_to(whole)
        except FileExistsError:
            raise
        except OSError:
            # A file system without links: the file is still never one of somebody else's.
            with path.open("x", encoding="utf-8", newline="") as stream:
                stream.write(text)
