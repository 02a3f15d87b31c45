"""Importer of the measured operator tables that the package aiconfigurator-core brings along.

The package is never imported: that would load its engine. Its folder of Parquet files is found and read by
column name, because the column order differs between versions. `latency` is in milliseconds in the families
read here (it is microseconds in others of that package), and `message_size` counts elements, not bytes:
the 16-bit rows of one size take as long as the 8-bit rows of twice that size.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from fleetplan.fleet.errors import InputError, Issue
from fleetplan.perfmodel.operators import OperatorKind
from fleetplan.perfmodel.optables.measured.families import TABLE_FAMILIES
from fleetplan.perfmodel.optables.measured.folders import PACKAGE, TableRoot, table_roots
from fleetplan.perfmodel.optables.measured.products import products_alone, quantisation_files
from fleetplan.perfmodel.optables.rows import MeasuredRows, fastest

if TYPE_CHECKING:
    pass

IMPORTER_VERSION: Final = 13
"""Raised whenever the rows that come out of the same file change, or how copies hold them: older cached
imports are not read."""

FRAMEWORKS: Final = ("trtllm", "sglang", "vllm")
BLACKWELL_SYSTEMS: Final = frozenset({"b200_sxm", "b300_sxm", "gb200", "gb300", "rtx_pro_6000_server"})
"""Systems of one generation, whose kernels differ from those of the others."""

_LIBRARIES: Final = frozenset({"nccl", "oneccl"})
"""Communication libraries: their tables are the same for all frameworks."""


@dataclass(frozen=True, slots=True)
class TableFile:
    """A file of measurements.

    Attributes
    ----------
    path : Path
        The Parquet file.
    family : str
        A key of the folders of families: gemm, context_attention, moe, nccl and so on.
    framework : str
        trtllm, sglang, vllm or nccl.
    version : str
        Version of the framework that was measured.
    package_version, package : str
        Package of the file.
    """

    path: Path
    family: str
    framework: str
    version: str
    package_version: str
    package: str = PACKAGE

    @property
    def system(self) -> str:
        """Measured system: h200_sxm and the like."""
        return self.path.parts[-5]

    @property
    def quantisation_files(self) -> tuple[Path, ...]:
        """Tables of what a GEMM table holds beside the product; see `measured_products`."""
        return quantisation_files(self.path, self.family, self.framework)


def table_files(
    system: str, family: str, framework: str, folder: Path | None = None
) -> tuple[TableFile, ...]:
    """List the files of a family, the newest framework version first; of one version the first folder's.

    Parameters
    ----------
    system : str
        h200_sxm and the like: `Accelerator.measured_system`.
    family : str
        A key of the families named in `TableFile`.
    framework : str
        trtllm, sglang or vllm; NCCL tables are the same for all.
    folder : Path, optional
        Folder of the systems; those of the user and that of the installed package by default.

    Returns
    -------
    tuple[TableFile, ...]
        Empty without measurements or without the package.
    """
    roots = table_roots() if folder is None else (TableRoot(folder, PACKAGE, "local folder"),)
    owner = family if family in _LIBRARIES else framework
    found: dict[str, TableFile] = {}
    for root in roots:
        place = root.path / system / TABLE_FAMILIES[family].folder / owner
        for path in place.glob(f"*/{family}_perf.parquet"):
            version = path.parent.name
            file = TableFile(path, family, owner, version, root.version, root.package)
            found.setdefault(version, file)
    return tuple(sorted(found.values(), key=lambda file: _version_order(file.version), reverse=True))


def newest_first(versions: Iterable[str]) -> tuple[str, ...]:
    """Return versions in falling order of their numbers."""
    return tuple(sorted(versions, key=_version_order, reverse=True))


def _version_order(version: str) -> tuple[tuple[int, ...], str]:
    return tuple(int(number) for number in re.findall(r"\d+", version)), version


def read_table(file: TableFile) -> list[MeasuredRows]:
    """Read one Parquet file into our long format, one table a kind and data type."""
    import pyarrow.parquet  # noqa: PLC0415  (half a second that a cached import does not need)

    if file.family not in TABLE_FAMILIES:
        raise ValueError(f"unknown table family {file.family!r}")
    family = TABLE_FAMILIES[file.family]
    # Text columns are stored as codes, as in the file, because texts are slow to copy.
    with pyarrow.parquet.ParquetFile(file.path) as stored:
        metadata, schema = stored.metadata, stored.schema_arrow
    texts = {
        field.name
        for field in schema
        if pyarrow.types.is_string(field.type) or pyarrow.types.is_large_string(field.type)
    }
    asked = [name for name in schema.names if name not in texts or name in family.texts]
    numbered = [name for name in asked if name in texts]
    with pyarrow.parquet.ParquetFile(file.path, metadata=metadata, read_dictionary=numbered) as stored:
        tables = family.read(stored.read(columns=asked, use_threads=False))
    found: dict[tuple[OperatorKind, str], list[MeasuredRows]] = {}
    # Kernels that serve steps with prompts and without come once for each.
    for rows in (*tables, *products_alone(tables, file.quantisation_files)):
        found.setdefault((rows.kind, rows.dtype), []).append(rows)
    return [parts[0] if len(parts) == 1 else fastest(parts) for parts in found.values()]


def check_folder(folder: Path) -> dict[tuple[str, str], set[str]]:
    """Check a folder of systems by reading one table of every family and framework, and report its contents.

    Returns
    -------
    dict[tuple[str, str], set[str]]
        Versions by system and framework.

    Raises
    ------
    InputError
        No table is understood, or one cannot be read.
    """
    found: dict[tuple[str, str], set[str]] = {}
    for system in sorted(each.name for each in folder.iterdir() if each.is_dir()):
        for family in TABLE_FAMILIES:
            for framework in FRAMEWORKS:
                files = table_files(system, family, framework, folder)
                for file in files:
                    found.setdefault((system, file.framework), set()).add(file.version)
                if files:
                    _try(files[0])
    if not found:
        raise InputError([Issue(str(folder), 0, 0, "", "contains no table of a known layout", _LAYOUT)])
    return found


_LAYOUT: Final = "tables are in SYSTEM/FAMILY/FRAMEWORK/VERSION/FAMILY_perf.parquet"


def _try(file: TableFile) -> None:
    try:
        read_table(file)
    # Errors that pandas and pyarrow raise for damaged tables and other layouts.
    except (OSError, ValueError, KeyError, AttributeError) as error:
        what = f"cannot be read as a table of {file.family}: {error}"
        raise InputError([Issue(str(file.path), 0, 0, "", what, _LAYOUT)]) from error
