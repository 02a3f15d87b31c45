"""Write files and folders atomically: under another name, then renamed."""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
import stat
import tempfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import platformdirs

SWITCH: Final = "FLEETPLAN_LANDSCAPE_CACHE"
"""Environment variable: `off` disables the cache of landscapes, candidates and simulated rates."""

_PART_MARK: Final = ".fleetplan-"
"""Prefix of the names of unfinished files and folders; machine and process follow."""

_swept: set[Path] = set()
"""Folders in which this process has removed unfinished files of others."""


class FileNotWrittenError(OSError):
    """A result file cannot be written.

    Attributes
    ----------
    path : Path
        File or folder.
    """

    def __init__(self, path: Path, error: OSError) -> None:
        super().__init__(error.errno, error.strerror or str(error))
        self.path = path

    def __str__(self) -> str:
        return f"{self.path}: cannot be written: {self.strerror}"


def write_whole(path: Path, content: str | bytes) -> Path:
    """Write a file atomically, replacing an older one; create its folder if necessary.

    Parameters
    ----------
    path : Path
        A link is followed; a device or a pipe is written to directly.
    content : str or bytes
        Text is written as UTF-8.

    Returns
    -------
    Path
        The path.

    Raises
    ------
    FileNotWrittenError
        The file cannot be written; an older file stays unchanged.
    """
    raw = content.encode("utf-8") if isinstance(content, str) else content
    with written_whole(path) as part:
        part.write_bytes(raw)
    return path


@contextmanager
def written_whole(path: Path) -> Iterator[Path]:
    """Yield a new empty file, which replaces another one when it is complete.

    A replaced file keeps its permissions; a new one gets the default of the process.

    Parameters
    ----------
    path : Path
        As in `write_whole`.

    Raises
    ------
    FileNotWrittenError
        A folder has that name, or the file cannot be written; an older file stays unchanged.
    """
    try:
        target = path.resolve() if path.is_symlink() else path
        mode = target.stat().st_mode if target.exists() else None
        if mode is not None and stat.S_ISDIR(mode):
            raise IsADirectoryError(21, os.strerror(21))
        special = mode is not None and not stat.S_ISREG(mode)
        if not special:
            target.parent.mkdir(parents=True, exist_ok=True)
        place = Path(tempfile.gettempdir()) if special else target.parent
        _sweep(place)
        part = place / f"{_own_mark()}{secrets.token_hex(8)}"
        os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600 if special else 0o666))
        try:
            if mode is not None and not special:
                part.chmod(stat.S_IMODE(mode))
            yield part
            if special:
                _write_through(target, part)
            else:
                part.replace(target)
        finally:
            part.unlink(missing_ok=True)
    except FileNotWrittenError:
        raise
    except OSError as error:
        raise FileNotWrittenError(path, error) from error


@contextmanager
def written_together(folder: Path) -> Iterator[Path]:
    """Yield a folder to fill, whose files move to another one when all of them are complete.

    Parameters
    ----------
    folder : Path
        Target folder, created if necessary. Its other files stay.

    Raises
    ------
    FileNotWrittenError
        A file cannot be written, or a folder has the name of a file; the target stays unchanged.
    """
    try:
        made = _made(folder)
        _sweep(folder)
        parts = Path(tempfile.mkdtemp(dir=folder, prefix=_own_mark()))
        try:
            yield parts
            files = [each.relative_to(parts) for each in sorted(parts.rglob("*")) if each.is_file()]
            for name in files:
                if (folder / name).is_dir():
                    raise IsADirectoryError(21, f"{os.strerror(21)}: {name}")
            for name in files:
                _put(parts / name, folder / name)
            made = []
        finally:
            shutil.rmtree(parts, ignore_errors=True)
            for each in made:
                each.rmdir()
    except OSError as error:
        raise FileNotWrittenError(folder, error) from error


def _own_mark() -> str:
    """Return the prefix of unfinished files of this process."""
    return f"{_machine_mark()}{os.getpid()}-"


def _machine_mark() -> str:
    # Process ids of another machine mean nothing here, and its files may be in a shared folder.
    return f"{_PART_MARK}{zlib.crc32(os.uname().nodename.encode()):08x}-"


def _sweep(folder: Path) -> None:
    """Remove unfinished files that killed processes of this machine left in a folder."""
    if folder in _swept:
        return
    _swept.add(folder)
    mark = _machine_mark()
    for left in folder.glob(f"{mark}*"):
        number = left.name.removeprefix(mark).partition("-")[0]
        if number.isdigit() and not _is_running(int(number)):
            if left.is_dir():
                shutil.rmtree(left, ignore_errors=True)
            else:
                left.unlink(missing_ok=True)


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True


def _made(folder: Path) -> list[Path]:
    """Create a folder and its parents; return the created ones, innermost first."""
    missing = [each for each in (folder, *folder.parents) if not each.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    return missing


def _put(part: Path, target: Path) -> None:
    """Move a complete file to its place, through links; write to a device like to any file."""
    target.parent.mkdir(parents=True, exist_ok=True)
    mode = target.lstat().st_mode if target.is_symlink() or target.exists() else None
    if mode is None or stat.S_ISREG(mode):
        if mode is not None:
            part.chmod(stat.S_IMODE(mode))
        part.replace(target)
    else:
        write_whole(target, part.read_bytes())


def _write_through(target: Path, part: Path) -> None:
    """Write a file to a device or a pipe; a pipe without a reader is an error, not a wait."""
    handle = os.open(target, os.O_WRONLY | os.O_NONBLOCK)
    os.set_blocking(handle, True)
    with os.fdopen(handle, "wb") as stream, part.open("rb") as whole:
        shutil.copyfileobj(whole, stream)


def is_cache_on() -> bool:
    """Whether cached results may be used."""
    return os.environ.get(SWITCH) != "off"


def user_cache(kind: str) -> Path:
    """Return the user's folder for one kind of files."""
    return Path(platformdirs.user_cache_dir("fleetplan")) / kind


def cache_key(parts: Iterable[str]) -> str:
    """Hash the parts that a cached result depends on; the hash is the name of its file."""
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def forget_oldest(folder: Path, pattern: str, most: int) -> None:
    """Delete the least recently used files of a cache folder beyond a number."""
    files = list(folder.glob(pattern))
    if len(files) <= most:
        return
    files.sort(key=lambda path: path.stat().st_mtime_ns)
    for path in files[: len(files) - most]:
        path.unlink(missing_ok=True)
