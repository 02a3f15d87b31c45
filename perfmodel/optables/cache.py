"""Our own columnar copy of an imported file, so that a plan reads Parquet only once.

One file per source file, named by the hash of its contents and the version of the importer. It is written
beside its name and then renamed: a reader sees a whole file or none, and of two writers the later one wins
with the same contents. A file holds the name that it was written for: one that lies under another name is
imported anew, as is one that cannot be read.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import zipfile
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, BinaryIO, Final

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
_ENTRY_SUFFIX: Final = ".npy"

_PREFIX_BYTES: Final = 10
"""Before the header of an array in NumPy's format 1.0: magic, version, and in two bytes its length."""

_BESIDE_DIGITS: Final = 16
# What a damaged file makes zipfile and numpy raise.
_UNREADABLE: Final = (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile)


def cache_folder() -> Path:
    """Folder of the imported tables of this user."""
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


def imported(file: TableFile, sha256: str, folder: Path | None = None) -> list[MeasuredRows]:
    """Read a source file from the cache; import it, and keep the import, where the cache has none.

    Parameters
    ----------
    file : TableFile
        What to read.
    sha256 : str
        Hash of its contents.
    folder : Path, optional
        Cache folder; that of the user by default.

    Returns
    -------
    list[MeasuredRows]
        Tables by kind and data type, as `read_table` returns them.
    """
    # An import may also depend on tables beside the file.
    beside = "".join(f"-{known_sha256(path)[:_BESIDE_DIGITS]}" for path in file.quantisation_files)
    name = f"{sha256}{beside}-v{IMPORTER_VERSION}.npz"
    target = (cache_folder() if folder is None else folder) / name
    if target.exists():
        try:
            return _load(target)
        except _UNREADABLE:
            # Damaged: imported anew, and replaced, below.
            pass
    tables = read_table(file)
    # A read-only or full cache costs time in every process, but no plan.
    with contextlib.suppress(OSError):
        _store(target, tables)
    return tables


def _load(path: Path) -> list[MeasuredRows]:
    columns: dict[tuple[str, str, str], dict[str, _AnyArray]] = {}
    own_name = ""
    with zipfile.ZipFile(path) as archive:
        for entry in archive.namelist():
            values = _values(archive.read(entry))
            name = entry.removesuffix(_ENTRY_SUFFIX)
            if name == _OWN_NAME:
                own_name = values.tobytes().decode()
                continue
            number, kind, dtype, column = name.split(".")
            columns.setdefault((number, kind, dtype), {})[column] = values
    if own_name != path.name:
        raise ValueError("this is the import of another file")
    return [_table(OperatorKind(kind), dtype, found) for (_, kind, dtype), found in columns.items()]


def _values(entry: bytes) -> _AnyArray:
    """Array of an entry as `_write` writes it, read-only; `numpy.load` takes four times as long."""
    start = _PREFIX_BYTES + int.from_bytes(entry[_PREFIX_BYTES - 2 : _PREFIX_BYTES], "little")
    shape, dtype = _header(entry[:start])
    values: _AnyArray = np.frombuffer(entry, dtype, offset=start).reshape(shape)
    return values


@lru_cache(maxsize=1024)
def _header(header: bytes) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Shape and type of an array: columns of one table have the same, which numpy reads as Python source."""
    stream = io.BytesIO(header)
    if np.lib.format.read_magic(stream) != (1, 0):
        raise ValueError("an array in another format")
    shape, is_fortran, dtype = np.lib.format.read_array_header_1_0(stream)
    if is_fortran or dtype.hasobject:
        raise ValueError("an array of another order or type")
    return shape, dtype


def _table(kind: OperatorKind, dtype: str, found: dict[str, _AnyArray]) -> MeasuredRows:
    latency_ms = found[_LATENCY].astype(np.float64)
    dims = {name: column.astype(np.int64) for name, column in found.items() if name != _LATENCY}
    if dims.keys() != {*site_dimensions(kind), *AXES[kind]}:
        raise ValueError(f"columns of another kind for {kind} {dtype}")
    if any(column.shape != latency_ms.shape for column in dims.values()):
        raise ValueError(f"columns of unequal length for {kind} {dtype}")
    label = np.full(latency_ms.shape, Provenance.MEASURED, dtype=np.uint8)
    return MeasuredRows(kind, dtype, dims, latency_ms, label)


def _store(target: Path, tables: list[MeasuredRows]) -> None:
    arrays: dict[str, _AnyArray] = {_OWN_NAME: np.frombuffer(target.name.encode(), dtype=np.uint8)}
    for number, table in enumerate(tables):
        # A file may hold several tables of one kind: kernels for small batches beside those for large ones.
        prefix = f"{number}.{table.kind}.{table.dtype}."
        for name, column in table.dims.items():
            arrays[prefix + name] = _smallest(column)
        arrays[prefix + _LATENCY] = table.latency_ms
    with written_whole(target) as part, part.open("wb") as stream:
        _write(stream, arrays)


def _smallest(column: IntArray) -> _AnyArray:
    """Whole numbers in the smallest type that holds them: a third less than four bytes each."""
    low, high = int(column.min(initial=0)), int(column.max(initial=0))
    return column.astype(np.result_type(np.min_scalar_type(low), np.min_scalar_type(high)))


def _write(stream: BinaryIO, arrays: dict[str, _AnyArray]) -> None:
    """Write the archive that `numpy.load` reads, without pickled objects."""
    with zipfile.ZipFile(stream, "w") as archive:
        for name, array in arrays.items():
            with archive.open(f"{name}{_ENTRY_SUFFIX}", "w") as entry:
                np.lib.format.write_array(entry, array, allow_pickle=False)
