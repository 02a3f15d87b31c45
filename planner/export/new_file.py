"""Write a user's file in full or not at all, and replace an existing one only on request."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from fleetplan.fleet.errors import InputError, Issue
from fleetplan.fleet.files import FileNotWrittenError, write_whole, written_together

OVER_HINT: Final = "--force overwrites it"
"""Hint of an error about an existing file."""


def write_new(path: Path, text: str, *, over: bool) -> None:
    """Write a file.

    Parameters
    ----------
    path : Path
        Path of the file in an existing folder.
    text : str
        Content of the file.
    over : bool
        Whether to replace an existing file.

    Raises
    ------
    InputError
        The file exists, or cannot be written.
    """
    try:
        if over:
            write_whole(path, text)
        else:
            _create(path, text)
    except FileExistsError as error:
        issue = Issue(str(path), 0, 0, "", "the file already exists", OVER_HINT)
        raise InputError([issue]) from error
    except OSError as error:
        raise InputError([Issue(str(path), 0, 0, "", f"cannot be written: {error.strerror}")]) from error


def write_new_files(folder: Path, texts: Mapping[str, str], *, over: bool) -> None:
    """Write files into a folder, all of them or none.

    Parameters
    ----------
    folder : Path
        Output folder; created if it does not exist.
    texts : Mapping[str, str]
        Content by file name.
    over : bool
        Whether to replace existing files.

    Raises
    ------
    InputError
        One of the files exists, or they cannot be written; the folder stays unchanged.
    """
    try:
        with written_together(folder) as parts:
            for name, text in texts.items():
                if not over and (folder / name).exists():
                    raise InputError(
                        [Issue(str(folder / name), 0, 0, "", "the file already exists", OVER_HINT)]
                    )
                write_whole(parts / name, text)
    except FileNotWrittenError as error:
        path = folder / error.path.name if error.path.name in texts else error.path
        raise InputError([Issue(str(path), 0, 0, "", f"cannot be written: {error.strerror}")]) from error


def _create(path: Path, text: str) -> None:
    with TemporaryDirectory(dir=path.parent, prefix=".new.") as folder:
        whole = write_whole(Path(folder) / "whole", text)
        try:
            # Unlike a rename, a link fails if the file exists, even if it was created a moment ago.
            path.hardlink_to(whole)
        except FileExistsError:
            raise
        except OSError:
            # On file systems without links, this still never overwrites another file.
            with path.open("x", encoding="utf-8", newline="") as stream:
                stream.write(text)
