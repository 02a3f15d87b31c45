"""A file of the user's own is written whole or not at all, and never over another one unasked."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from fleetplan.fleet.errors import InputError, Issue
from fleetplan.fleet.files import FileNotWrittenError, write_whole, written_together

OVER_HINT: Final = "--force writes over it"
"""What a refusal to replace a file adds."""


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
        issue = Issue(str(path), 0, 0, "", "there is such a file already", OVER_HINT)
        raise InputError([issue]) from error
    except OSError as error:
        raise InputError([Issue(str(path), 0, 0, "", f"cannot be written: {error.strerror}")]) from error


def write_new_files(folder: Path, texts: Mapping[str, str], *, over: bool) -> None:
    """Write some files into a folder: all of them, or none.

    Parameters
    ----------
    folder : Path
        Made where there is none.
    texts : Mapping[str, str]
        What to write by file name.
    over : bool
        Whether files that are there already are replaced.

    Raises
    ------
    InputError
        If there is one of the files already, or they cannot be written; the folder is then as it was.
    """
    try:
        with written_together(folder) as parts:
            for name, text in texts.items():
                if not over and (folder / name).exists():
                    raise InputError(
                        [Issue(str(folder / name), 0, 0, "", "there is such a file already", OVER_HINT)]
                    )
                write_whole(parts / name, text)
    except FileNotWrittenError as error:
        path = folder / error.path.name if error.path.name in texts else error.path
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
