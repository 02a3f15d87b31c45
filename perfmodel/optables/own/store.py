"""Store operator tables of users, and merge them with the tables of the package.

`plan optables import` copies the file into the user's data folder; a fleet file may name other files. Both
are read in the same way, and their sites take precedence over the package's.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Final
from urllib.parse import quote

from fleetplan.fleet.errors import InputError
from fleetplan.perfmodel.operators import OperatorKind
from fleetplan.perfmodel.optables.choice import ChosenRows, TableSource
from fleetplan.perfmodel.optables.measured.folders import own_tables_folder
from fleetplan.perfmodel.optables.own.formats import ANY_FRAMEWORK, OwnTable, read_own_table
from fleetplan.perfmodel.optables.rows import with_missing_sites

OWN_PACKAGE: Final = "own table"
"""Package name in provenance for a user's table."""

_NOTE: Final = "import.json"


@dataclass(frozen=True, slots=True)
class StoredTable:
    """A file in the user's data folder, with the arguments of its import."""

    path: Path
    framework: str


def store_own_table(table: OwnTable, hardware: str, framework: str, folder: Path | None = None) -> Path:
    """Keep a copy of a file for plans to come; the same contents are kept once.

    Parameters
    ----------
    table : OwnTable
        As read for that hardware and framework.
    hardware, framework : str
        Arguments of the import; `framework` may be `ANY_FRAMEWORK`.
    folder : Path, optional
        The user's data folder by default.

    Returns
    -------
    Path
        The copy.
    """
    place = (own_tables_folder() if folder is None else folder) / quote(hardware, safe="") / table.sha256[:16]
    place.mkdir(parents=True, exist_ok=True)
    source = Path(table.path)
    copy = place / source.name
    if source.resolve() != copy.resolve():
        shutil.copyfile(source, copy)
    note = {"file": source.name, "framework": framework, "sha256": table.sha256}
    (place / _NOTE).write_text(json.dumps(note, indent=2) + "\n", encoding="utf-8")
    return copy


def stored_tables(hardware: str, folder: Path | None = None) -> tuple[StoredTable, ...]:
    """List the imported files of a part, in a fixed order."""
    place = (own_tables_folder() if folder is None else folder) / quote(hardware, safe="")
    found = []
    for note in sorted(place.glob(f"*/{_NOTE}")):
        said = json.loads(note.read_text(encoding="utf-8"))
        found.append(StoredTable(note.parent / str(said["file"]), str(said["framework"])))
    return tuple(found)


class OwnTables:
    """All user tables of a part, read at the first query.

    Attributes
    ----------
    hardware : str
        The part.
    """

    def __init__(self, hardware: str, files: tuple[str, ...], folder: Path | None = None) -> None:
        self.hardware = hardware
        self._files = files
        self._folder = folder
        self._tables: tuple[OwnTable, ...] | None = None

    def tables(self) -> tuple[OwnTable, ...]:
        """Return the files named by the fleet first, then the imported ones.

        Raises
        ------
        InputError
            A file that the fleet names cannot be read, or has rows that cannot be used.
        """
        if self._tables is None:
            named = tuple(_faultless(Path(file), self.hardware) for file in self._files)
            stored = tuple(
                read_own_table(each.path, self.hardware, each.framework)
                for each in stored_tables(self.hardware, self._folder)
            )
            self._tables = (*named, *stored)
        return self._tables

    def fingerprint(self) -> tuple[str, ...]:
        """Return a fingerprint of the rows: their files and frameworks."""
        return tuple(
            " ".join((table.sha256, *sorted({part.framework for part in table.parts})))
            for table in self.tables()
        )

    def rows(self, kind: OperatorKind, dtype: str, framework: str) -> ChosenRows | None:
        """Return the rows of an operator under a framework; None without any.

        Rows of the framework take precedence over those for any framework, and earlier files over later ones.
        """
        found = []
        for wanted in (framework, ANY_FRAMEWORK):
            for table in self.tables():
                for part in table.parts:
                    if part.framework == wanted and part.rows.kind is kind and part.rows.dtype == dtype:
                        source = self._source(table, kind, part.framework, part.version)
                        found.append(ChosenRows(part.rows, (source,)))
        return reduce(own_before, found) if found else None

    def _source(self, table: OwnTable, kind: OperatorKind, framework: str, version: str) -> TableSource:
        name = framework or "any"
        return TableSource(
            OWN_PACKAGE, "", self.hardware, kind.value, name, version, table.path, table.sha256
        )


def own_before(first: ChosenRows, second: ChosenRows | None) -> ChosenRows:
    """Merge user rows with others: whole sites, the user's first."""
    if second is None:
        return first
    rows = with_missing_sites(first.rows, second.rows)
    # A file without further rows is not a source.
    added = second.sources if rows.n_rows > first.rows.n_rows else ()
    return ChosenRows(rows, tuple(dict.fromkeys((*first.sources, *added))))


def _faultless(path: Path, hardware: str) -> OwnTable:
    table = read_own_table(path, hardware)
    if table.rejected:
        raise InputError(table.rejected)
    return table
