"""Choose the measured rows of an operator under a framework.

The rules come from predictions of published closed-loop results, without any fit; each was the better one:

* A framework uses its own tables, the newest version of every site, or those of the version that is asked
  for; sites that this version lacks are borrowed from its other versions and count as interpolated.
* GEMM takes the fastest of the three frameworks: all call the same libraries, but their tables time different
  things. Those of TensorRT-LLM hold the quantisation of the activations with its scales (14 us for the
  smallest FP8 product on H200, against 6 us), those of vLLM for block-FP8 the Python around it (60 us).
* TensorRT-LLM takes its own GEMM where its table times the product alone, or can be made to: in BF16, where
  nothing is quantised, and in FP8 with static scales, less the quantisation that was measured apart. With
  scales that are found while it serves (a checkpoint in BF16, quantised at load), it takes the fastest.
* Experts in block-FP8 take the fastest of the three frameworks, and so do those in FP4 (one kernel, of
  TensorRT-LLM, which the others call through FlashInfer) and those in MXFP4 under vLLM on Blackwell;
  TensorRT-LLM before Blackwell has kernels of its own and keeps them.
* Prompts over latent attention under SGLang before Blackwell take the fastest: its table times the absorbed
  form there (three times the operations, and 3.0 times TensorRT-LLM's time for 4 prompts of 4,096 tokens on
  H100), but its servers rebuild the keys and values of prompts. Its own table of whole modules says so: 9.7
  ms with all projections, where the absorbed form alone takes 16.4.
* Dispatch and combine within an NVLink rack are read from the rack of the same links where a part has no
  table of its own: GB300 from GB200.
* An all-reduce is never slower than one of a larger message, as a message can be padded: the tables of vLLM
  on B200 have steps where one algorithm takes over from another.
* Experts split by tensor parallelism that the framework did not measure take its own measurement of as many
  experts split by expert parallelism: an accelerator then holds as much of them.
* Experts that a server runs by Triton because it was not told otherwise (`steps.expert_kernels`) take the
  measurements of Triton, those of other frameworks too: it is one kernel.
* Experts for which a framework had no faster kernel yet (`steps.expert_kernels`) take its own measurements.
* Experts behind a dispatch have kernels of their own, of which a framework that has tables borrows none. What
  they stand for is in `fleetplan.perfmodel.optables.dispatched`.
* Experts in MXFP4 that no framework measured on a system (A100) take those in INT4, with weights of the same
  size: Marlin runs both there.
* A site that the framework still lacks takes the fastest of the others, and counts as interpolated too.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from typing import Final

import numpy as np

from fleetplan.perfmodel.operators import ActivationScales, OperatorKind
from fleetplan.perfmodel.optables.cache import ImportedTables, known_sha256
from fleetplan.perfmodel.optables.hashed_files import hashed_names
from fleetplan.perfmodel.optables.measured.experts import FASTEST_EXPERTS, TRITON, ExpertKernels
from fleetplan.perfmodel.optables.measured.families import FAMILIES
from fleetplan.perfmodel.optables.measured.folders import table_roots
from fleetplan.perfmodel.optables.measured.products import PRODUCT_ALONE, QUANTISATION_FAMILIES
from fleetplan.perfmodel.optables.measured.tables import (
    BLACKWELL_SYSTEMS,
    FRAMEWORKS,
    TableFile,
    newest_first,
    table_files,
)
from fleetplan.perfmodel.optables.rows import MeasuredRows, fastest, with_missing_sites

NVLINK_FAMILY: Final = "trtllm_alltoall"
"""Tables of dispatch and combine by kernels within an NVLink domain."""

SAME_LINKS: Final = {"gb300": "gb200"}
"""Systems whose NVLink domain is that of another one. Source: systems/gb200.yaml and gb300.yaml of
aiconfigurator-core 0.12.0 (72 accelerators, 900 GB/s a direction each)."""

PEER_ACCESS_TABLES: Final = {"l40s": ("sglang", "0.5.12")}
"""Systems without NVLink whose all-reduce was measured on hosts with and without access of one card to the
memory of another over PCIe: framework and version of the tables with it, which stand for all frameworks.
Source: 67 million values over eight L40S take 11 ms there (21 GB/s a card and direction, of PCIe 4.0 x16) and
90 to 126 ms in the tables of all others, NCCL's too. TensorRT-LLM's published rates on L40S with TP 4 and 8
are two to seven times what those allow, and mostly within 17 % of what these do."""

_SAME_KERNEL: Final = {"mxfp4": "int4"}
"""Formats of experts' weights, and the one whose kernel runs them where no other was measured. Source:
vLLM's Mxfp4Config, which takes Marlin below compute capability 9.0, as its INT4 experts do."""

_ORDINARY_EXPERTS: Final = frozenset({OperatorKind.MOE, OperatorKind.EVEN_MOE})
_OWN_PRODUCTS: Final = {("trtllm", "bf16"): "bf16", ("trtllm", "fp8"): PRODUCT_ALONE}
"""Framework and data type of GEMM whose own table times the product alone, and what an import calls it."""


@dataclass(frozen=True, slots=True)
class TableSource:
    """Sources of the rows of a table.

    Attributes
    ----------
    package, package_version : str
        The package that brings the file along.
    system, family, framework, framework_version : str
        Operator and data type.
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
    """All measured tables of one system, read on demand.

    Attributes
    ----------
    system : str
        h200_sxm and the like.
    version : str
        Framework version whose measurements to use; operators without one borrow from other versions. Empty
        for the newest of every site.
    activation_scales : {"static", "dynamic"}
        Quantisation of activations for products in FP8.
    expert_kernels : ExpertKernels
        Experts that do not run by the fastest kernel.
    """

    def __init__(
        self,
        system: str,
        data_folder: Path | None = None,
        cache_folder: Path | None = None,
        version: str = "",
        activation_scales: ActivationScales = "static",
        expert_kernels: ExpertKernels = FASTEST_EXPERTS,
    ) -> None:
        self.system = system
        self.version = version
        self.activation_scales: ActivationScales = activation_scales
        self.expert_kernels = expert_kernels
        self._data_folder = data_folder
        self._cache_folder = cache_folder
        self._read: dict[Path, tuple[ImportedTables, TableSource]] = {}
        self._found: dict[tuple[str, str], tuple[TableFile, ...]] = {}

    def versions(self, framework: str) -> tuple[str, ...]:
        """Return the versions of a framework that were measured, the newest first."""
        families = dict.fromkeys(family for each in FAMILIES.values() for family in each)
        files = [
            file
            for family in families
            for file in table_files(self.system, family, framework, self._data_folder)
            if file.framework == framework
        ]
        return newest_first({file.version for file in files})

    def file_hashes(self) -> tuple[str, ...]:
        """Return the name and SHA-256 of every file that could be read, whether it was or not."""
        named = self._data_folder
        roots = [root.path for root in table_roots()] if named is None else [named]
        return hashed_names(roots, (self.system, SAME_LINKS.get(self.system, self.system)))

    def rows(self, kind: OperatorKind, dtype: str, framework: str) -> ChosenRows | None:
        """Return the rows of an operator under a framework; None without measurements."""
        found = self._chosen(kind, dtype, framework)
        if found is None and kind in _ORDINARY_EXPERTS and dtype in _SAME_KERNEL:
            alike = self._chosen(kind, _SAME_KERNEL[dtype], framework)
            return alike and ChosenRows(replace(alike.rows.borrowed(), dtype=dtype), alike.sources)
        if found is not None and kind in _ORDINARY_EXPERTS and dtype in self.expert_kernels.triton:
            return self._by_triton(kind, dtype, framework, found)
        if found is None or kind is not OperatorKind.ALL_REDUCE:
            return found
        return ChosenRows(_never_slower_than_larger(found.rows), found.sources)

    def _chosen(self, kind: OperatorKind, dtype: str, framework: str) -> ChosenRows | None:
        peers = PEER_ACCESS_TABLES.get(self.system) if kind is OperatorKind.ALL_REDUCE else None
        if peers is not None:
            with_access = self._of_version(kind, dtype, *peers)
            if with_access is not None:
                return with_access
        own = self._of_framework(kind, dtype, framework, self.version)
        if kind in (OperatorKind.DISPATCHED_MOE, OperatorKind.EVEN_DISPATCHED_MOE) and own is not None:
            return own
        if own is not None and kind in _ORDINARY_EXPERTS:
            own = ChosenRows(with_missing_sites(own.rows, _split_the_other_way(own.rows)), own.sources)
        others = [
            found
            for name in FRAMEWORKS
            if name != framework and (found := self._of_framework(kind, dtype, name)) is not None
        ]
        product = self._own_product(kind, dtype, framework)
        if product is not None:
            own = product
        elif self._takes_fastest(kind, dtype, framework) and own is not None:
            return _fastest([own, *others])
        if not others:
            return own
        lent = _fastest(others)
        borrowed = ChosenRows(lent.rows.borrowed(), lent.sources)
        return borrowed if own is None else _with_missing_sites(own, borrowed)

    def _of_version(self, kind: OperatorKind, dtype: str, framework: str, version: str) -> ChosenRows | None:
        """Return the rows of one version of a framework's preferred family; None without any."""
        for file in self._files(FAMILIES[kind][0], framework):
            if file.version == version:
                tables, source = self._table(file)
                rows = tables.get((kind, dtype))
                if rows is not None:
                    return ChosenRows(rows, (source,))
        return None

    def _own_product(self, kind: OperatorKind, dtype: str, framework: str) -> ChosenRows | None:
        """Return the GEMM rows of a framework's own table only; None if it has none."""
        name = _OWN_PRODUCTS.get((framework, dtype)) if kind is OperatorKind.GEMM else None
        if name is None or (name == PRODUCT_ALONE and self.activation_scales == "dynamic"):
            return None
        found = self._of_framework(kind, name, framework, self.version)
        return None if found is None else ChosenRows(replace(found.rows, dtype=dtype), found.sources)

    def _by_triton(self, kind: OperatorKind, dtype: str, framework: str, instead: ChosenRows) -> ChosenRows:
        """Return experts by Triton: its measurements, those of others, and `instead` for other sites."""
        names = (framework, *(name for name in FRAMEWORKS if name != framework))
        tables = [self._of_framework(kind, dtype + TRITON, name) for name in names]
        named = [ChosenRows(replace(each.rows, dtype=dtype), each.sources) for each in tables if each]
        lent = [ChosenRows(each.rows.borrowed(), each.sources) for each in (*named[1:], instead)]
        return reduce(_with_missing_sites, [*named[:1], *lent])

    def _takes_fastest(self, kind: OperatorKind, dtype: str, framework: str) -> bool:
        if kind is OperatorKind.GEMM:
            return True
        blackwell = self.system in BLACKWELL_SYSTEMS
        if kind is OperatorKind.LATENT_PREFILL_ATTENTION:
            return framework == "sglang" and not blackwell
        if kind not in _ORDINARY_EXPERTS or dtype in self.expert_kernels.own:
            return False
        if dtype == "fp8_block":
            return blackwell or framework != "trtllm"
        return blackwell and (dtype == "fp4" or (framework == "vllm" and dtype == "mxfp4"))

    def _of_framework(
        self, kind: OperatorKind, dtype: str, framework: str, version: str = ""
    ) -> ChosenRows | None:
        """Return a framework's tables, newer versions first, the preferred family before others.

        With a version, its tables take precedence, and those of other versions are borrowed. Communication
        libraries have separate versions.
        """
        found = []
        borrowed = []
        for family in FAMILIES[kind]:
            for file in self._files(family, framework):
                tables, source = self._table(file)
                rows = tables.get((kind, dtype))
                if rows is None:
                    continue
                sources = (source, *self._quantisation_sources(file)) if dtype == PRODUCT_ALONE else (source,)
                if file.system != self.system:
                    rows = rows.borrowed()
                if version and file.framework == framework and file.version != version:
                    borrowed.append(ChosenRows(rows.borrowed(), sources))
                else:
                    found.append(ChosenRows(rows, sources))
        everything = [*found, *borrowed]
        return reduce(_with_missing_sites, everything) if everything else None

    def _files(self, family: str, framework: str) -> tuple[TableFile, ...]:
        """Return the files of a family, or those of the part with the same links if it has none; cached."""
        key = family, framework
        if key not in self._found:
            alike = SAME_LINKS.get(self.system) if family == NVLINK_FAMILY else None
            systems = (self.system,) if alike is None else (self.system, alike)
            found = (table_files(system, family, framework, self._data_folder) for system in systems)
            self._found[key] = next(filter(None, found), ())
        return self._found[key]

    def _table(self, file: TableFile) -> tuple[ImportedTables, TableSource]:
        if file.path not in self._read:
            source = self._source(file, file.family, file.path)
            self._read[file.path] = (ImportedTables(file, source.sha256, self._cache_folder), source)
        return self._read[file.path]

    def _quantisation_sources(self, file: TableFile) -> list[TableSource]:
        named = zip(QUANTISATION_FAMILIES, file.quantisation_files, strict=False)
        return [self._source(file, family, path) for family, path in named]

    def _source(self, file: TableFile, family: str, path: Path) -> TableSource:
        return TableSource(
            file.package,
            file.package_version,
            file.system,
            family,
            file.framework,
            file.version,
            "/".join(path.parts[-5:]),
            known_sha256(path),
        )


def _fastest(found: list[ChosenRows]) -> ChosenRows:
    sources = tuple(dict.fromkeys(source for chosen in found for source in chosen.sources))
    return ChosenRows(fastest([chosen.rows for chosen in found]), sources)


def _with_missing_sites(first: ChosenRows, second: ChosenRows) -> ChosenRows:
    rows = with_missing_sites(first.rows, second.rows)
    # A file without further rows is not a source.
    added = second.sources if rows.n_rows > first.rows.n_rows else ()
    return ChosenRows(rows, tuple(dict.fromkeys((*first.sources, *added))))


def _never_slower_than_larger(rows: MeasuredRows) -> MeasuredRows:
    """Take the fastest of all messages that are at least as large, among as many ranks."""
    latency_ms = rows.latency_ms.copy()
    for ranks in np.unique(rows.dims["ranks"]):
        group = np.flatnonzero(rows.dims["ranks"] == ranks)
        falling = group[np.argsort(-rows.dims["message_bytes"][group], kind="stable")]
        latency_ms[falling] = np.minimum.accumulate(latency_ms[falling])
    return MeasuredRows(rows.kind, rows.dtype, rows.dims, latency_ms, rows.provenance)


def _split_the_other_way(rows: MeasuredRows) -> MeasuredRows:
    """Return measurements of whole experts in `moe_ep` groups, as ones of all experts in `moe_ep` slices."""
    whole = rows.select(rows.dims["moe_tp"] == 1)
    dims = whole.dims | {"moe_tp": whole.dims["moe_ep"], "moe_ep": whole.dims["moe_tp"]}
    return MeasuredRows(whole.kind, whole.dtype, dims, whole.latency_ms, whole.provenance).borrowed()
