"""Our own columnar copy of an imported file, so that a plan reads Parquet only once.

One file per source file, named by the hash of its contents and the version of the importer. It is written
under another name and then renamed: a reader sees a complete file or none, and if two processes write it,
both have the same contents. A file contains the name that it was written for: one with another name is
imported again, like an unreadable one.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Final

import numpy as np
import platformdirs
from numpy.typing import NDArray

from fleetplan.fleet.files import written_whole
from fleetplan.perfmodel.operators import AXES, IntArray, OperatorKind, Provenance
from fleetplan.perfmodel.optables.measured.tables import IMPORTER_VERSION, TableFile, read_table
from fleetplan.perfmodel.optables.rows import MeasuredRows, site_dimensions

_AnyArray = NDArray[np.uint8] | NDArray[np.int32] | NDArray[np.int64] | NDArray[np.float64]

_LATENCY: Final = "latency_ms"
_OWN_NAME: Final = "name"
_BESIDE_DIGITS: Final = 16
# Errors that zipfile, json and numpy raise for a damaged file.
_UNREADABLE: Final = (OSError, TypeError, ValueError, KeyError, EOFError, zipfile.BadZipFile)


def cache_folder() -> Path:
    """Return the folder of the imported tables of this user."""
    return Path(platformdirs.user_cache_dir("fleetplan")) / "optables"


def file_sha256(path: Path) -> str:
    """Hash of a file's contents, in hexadecimal digits."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def known_sha256(path: Path) -> str:
    """Hash of a file's contents, from memory where its size and time of change are still the same."""
    state = path.stat()
    return _sha256_of_state(path, state.st_size, state.st_mtime_ns)


@cache
def _sha256_of_state(path: Path, size_bytes: int, changed_ns: int) -> str:
    return file_sha256(path)


class ImportedTables(Mapping[tuple[OperatorKind, str], MeasuredRows]):
    """Tables of a source file by kind and data type, each read from the cached copy on demand.

    Nothing is kept in memory but their names: operators ask for a third of what the files hold, and each
    table once.

    Parameters
    ----------
    file : TableFile
        Source file; imported if the cache has no copy.
    sha256 : str
        Hash of its contents.
    folder : Path, optional
        Cache folder; that of the user by default.
    """

    def __init__(self, file: TableFile, sha256: str, folder: Path | None = None) -> None:
        self._file = file
        # An import may also depend on tables beside the file.
        beside = "".join(f"-{known_sha256(path)[:_BESIDE_DIGITS]}" for path in file.quantisation_files)
        name = f"{sha256}{beside}-v{IMPORTER_VERSION}.zip"
        self._path = (cache_folder() if folder is None else folder) / name
        self._held: dict[tuple[OperatorKind, str], MeasuredRows] = {}
        try:
            self._names = _names(self._path)
        except _UNREADABLE:
            self._names = tuple(self._imported())

    def __getitem__(self, key: tuple[OperatorKind, str]) -> MeasuredRows:
        if key not in self._names:
            raise KeyError(key)
        if key in self._held:
            return self._held[key]
        try:
            return _table(*key, _columns(self._path, key))
        except _UNREADABLE:
            # Damaged, or gone since.
            return self._imported()[key]

    def __iter__(self) -> Iterator[tuple[OperatorKind, str]]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def _imported(self) -> dict[tuple[OperatorKind, str], MeasuredRows]:
        """Import the file, in the place of a copy that is damaged."""
        tables = {(rows.kind, rows.dtype): rows for rows in read_table(self._file)}
        try:
            _store(self._path, tables.values())
        except OSError:
            # A read-only or full cache costs time in every process, but no plan.
            self._held = tables
        return tables


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[zipfile.ZipFile]:
    """Open a copy that says that it is for its name."""
    with zipfile.ZipFile(path) as archive:
        if archive.read(_OWN_NAME).decode() != path.name:
            raise ValueError("this is the import of another file")
        yield archive


def _key(entry: str) -> tuple[OperatorKind, str]:
    """Return the table of an entry as `_store` names it."""
    _, kind, dtype = entry.split(".")
    return OperatorKind(kind), dtype


def _names(path: Path) -> tuple[tuple[OperatorKind, str], ...]:
    """Return the kinds and data types of a copy, in its order."""
    with _opened(path) as archive:
        return tuple(map(_key, archive.namelist()[1:]))


def _columns(path: Path, key: tuple[OperatorKind, str]) -> dict[str, _AnyArray]:
    """Return the columns of one table of a copy, read-only."""
    with _opened(path) as archive:
        (entry,) = (name for name in archive.namelist()[1:] if _key(name) == key)
        content = archive.read(entry)
    described, found = content.index(b"\n"), {}
    start = described + 1
    rows, columns = json.loads(content[:described])
    for name, dtype in columns:
        values = np.frombuffer(content, np.dtype(dtype), rows, start)
        start += values.nbytes
        found[name] = values
    return found


def _table(kind: OperatorKind, dtype: str, found: dict[str, _AnyArray]) -> MeasuredRows:
    latency_ms = found[_LATENCY].astype(np.float64)
    dims = {name: column.astype(np.int64) for name, column in found.items() if name != _LATENCY}
    if dims.keys() != {*site_dimensions(kind), *AXES[kind]}:
        raise ValueError(f"columns of another kind for {kind} {dtype}")
    if any(column.shape != latency_ms.shape for column in dims.values()):
        raise ValueError(f"columns of unequal length for {kind} {dtype}")
    label = np.full(latency_ms.shape, Provenance.MEASURED, dtype=np.uint8)
    return MeasuredRows(kind, dtype, dims, latency_ms, label)


def _store(target: Path, tables: Iterable[MeasuredRows]) -> None:
    """Write an archive with one entry per table: a line that describes its columns, and the columns.

    An entry a column, as `numpy.load` reads, takes longer to write and to find than its numbers.
    """
    with written_whole(target) as part, zipfile.ZipFile(part, "w") as archive:
        archive.writestr(_OWN_NAME, target.name)
        for number, table in enumerate(tables):
            columns = {name: _smallest(column) for name, column in table.dims.items()}
            columns[_LATENCY] = table.latency_ms
            described = [table.n_rows, [[name, column.dtype.str] for name, column in columns.items()]]
            parts = [json.dumps(described).encode(), b"\n", *(each.tobytes() for each in columns.values())]
            archive.writestr(f"{number}.{table.kind}.{table.dtype}", b"".join(parts))


def _smallest(column: IntArray) -> _AnyArray:
    """Convert whole numbers to the smallest type that fits: a third less than four bytes each."""
    low, high = int(column.min(initial=0)), int(column.max(initial=0))
    return column.astype(np.result_type(np.min_scalar_type(low), np.min_scalar_type(high)))
