"""Which measured rows stand for an operator under a framework.

The rules come from predictions of published closed-loop results, without any fit; each was the better one:

* A framework uses its own tables, the newest version of every site.
* TensorRT-LLM: GEMM takes the fastest of the three frameworks, because its own tables are slow at small m.
* vLLM on Blackwell: block-FP8 takes the fastest of the three frameworks.
* A site that the framework lacks takes the fastest of the other frameworks, and counts as interpolated.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Final

from fleetplan.perfmodel.operators import OperatorKind
from fleetplan.perfmodel.optables.cache import file_sha256, imported
from fleetplan.perfmodel.optables.measured import FAMILIES, FRAMEWORKS, PACKAGE, TableFile, table_files
from fleetplan.perfmodel.optables.rows import MeasuredRows, fastest, with_missing_sites

_BLACKWELL: Final = frozenset({"b200_sxm", "b300_sxm", "gb200", "gb300", "rtx_pro_6000_server"})


@dataclass(frozen=True, slots=True)
class TableSource:
    """Where the rows of a table come from.

    Attributes
    ----------
    package, package_version : str
        The package that brings the file along.
    system, family, framework, framework_version : str
        What was measured.
    path : str
        The file, from the folder of the systems on.
    sha256 : str
        Hash of its contents.
    """

    package: str
    package_version: str
    system: str
    family: str
    framework: str
    framework_version: str
    path: str
    sha256: str


@dataclass(frozen=True, slots=True)
class ChosenRows:
    """Rows of one operator kind and data type, with the files they come from."""

    rows: MeasuredRows
    sources: tuple[TableSource, ...]


class TableLibrary:
    """All measured tables of one system, read as they are asked for.

    Attributes
    ----------
    system : str
        h200_sxm and the like.
    """

    def __init__(
        self, system: str, data_folder: Path | None = None, cache_folder: Path | None = None
    ) -> None:
        self.system = system
        self._data_folder = data_folder
        self._cache_folder = cache_folder
        self._read: dict[Path, tuple[list[MeasuredRows], TableSource]] = {}

    def rows(self, kind: OperatorKind, dtype: str, framework: str) -> ChosenRows | None:
        """Rows of an operator under a framework; None where nothing was measured."""
        own = self._of_framework(kind, dtype, framework)
        others = [
            found
            for name in FRAMEWORKS
            if name != framework and (found := self._of_framework(kind, dtype, name)) is not None
        ]
        if self._takes_fastest(kind, dtype, framework) and (own is not None or others):
            return _fastest([found for found in (own, *others) if found is not None])
        if not others:
            return own
        if own is not None and kind is OperatorKind.GEMM:
            # The sites of GEMM tables form a grid that needs no others in between.
            return own
        lent = _fastest(others)
        borrowed = ChosenRows(lent.rows.borrowed(), lent.sources)
        return borrowed if own is None else _with_missing_sites(own, borrowed)

    def _takes_fastest(self, kind: OperatorKind, dtype: str, framework: str) -> bool:
        if framework == "trtllm":
            return kind is OperatorKind.GEMM
        return (
            framework == "vllm"
            and self.system in _BLACKWELL
            and dtype == "fp8_block"
            and kind in (OperatorKind.GEMM, OperatorKind.MOE)
        )

    def _of_framework(self, kind: OperatorKind, dtype: str, framework: str) -> ChosenRows | None:
        """Own tables of a framework: newer versions before older ones, the preferred family before others."""
        found = []
        for family in FAMILIES[kind]:
            for file in table_files(self.system, family, framework, self._data_folder):
                tables, source = self._table(file)
                found += [
                    ChosenRows(rows, (source,))
                    for rows in tables
                    if rows.kind is kind and rows.dtype == dtype
                ]
        return reduce(_with_missing_sites, found) if found else None

    def _table(self, file: TableFile) -> tuple[list[MeasuredRows], TableSource]:
        if file.path not in self._read:
            sha256 = file_sha256(file.path)
            source = TableSource(
                PACKAGE,
                file.package_version,
                self.system,
                file.family,
                file.framework,
                file.version,
                "/".join(file.path.parts[-5:]),
                sha256,
            )
            self._read[file.path] = (imported(file, sha256, self._cache_folder), source)
        return self._read[file.path]


def _fastest(found: list[ChosenRows]) -> ChosenRows:
    sources = tuple(dict.fromkeys(source for chosen in found for source in chosen.sources))
    return ChosenRows(fastest([chosen.rows for chosen in found]), sources)


def _with_missing_sites(first: ChosenRows, second: ChosenRows) -> ChosenRows:
    rows = with_missing_sites(first.rows, second.rows)
    # A file that adds nothing is not a source.
    added = second.sources if rows.n_rows > first.rows.n_rows else ()
    return ChosenRows(rows, tuple(dict.fromkeys((*first.sources, *added))))
