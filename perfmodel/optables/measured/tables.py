"""Importer of the measured operator tables that the package aiconfigurator-core brings along.

The package is never imported: that would load its engine. Its folder of Parquet files is found and read by
column name, because the column order differs between versions. `latency` is in milliseconds in the families
read here (it is microseconds in others of that package), and `message_size` counts elements, not bytes:
the 16-bit rows of one size take as long as the 8-bit rows of twice that size.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from fleetplan.fleet.errors import InputError, Issue
from fleetplan.perfmodel.operators import ACTIVATION_BYTES, OperatorKind
from fleetplan.perfmodel.optables.measured.block_sparse import block_sparse_tables
from fleetplan.perfmodel.optables.measured.columns import split_by_dtype, whole_numbers
from fleetplan.perfmodel.optables.measured.compressed import (
    compressed_decode_tables,
    compressed_prefill_tables,
    hyper_connection_tables,
)
from fleetplan.perfmodel.optables.measured.delta import delta_net_tables, kimi_delta_tables
from fleetplan.perfmodel.optables.measured.dispatch import (
    all_to_all_tables,
    low_latency_tables,
    nvlink_tables,
    throughput_tables,
)
from fleetplan.perfmodel.optables.measured.experts import (
    dispatched_expert_tables,
    expert_tables,
    wide_expert_tables,
)
from fleetplan.perfmodel.optables.measured.folders import PACKAGE, TableRoot, table_roots
from fleetplan.perfmodel.optables.measured.latent import absorbed_product_tables, latent_attention_tables
from fleetplan.perfmodel.optables.measured.products import products_alone, quantisation_files
from fleetplan.perfmodel.optables.rows import MeasuredRows, fastest, measured_rows

if TYPE_CHECKING:
    import pandas as pd

IMPORTER_VERSION: Final = 9
"""Raised whenever the rows that come out of the same file change: older cached imports are not read."""

FRAMEWORKS: Final = ("trtllm", "sglang", "vllm")
BLACKWELL_SYSTEMS: Final = frozenset({"b200_sxm", "b300_sxm", "gb200", "gb300", "rtx_pro_6000_server"})
"""Systems of one generation, whose kernels differ from those of the others."""

_LIBRARIES: Final = frozenset({"nccl", "oneccl"})
"""Communication libraries: their tables are the same for all frameworks."""

_NCCL_KINDS: Final = {
    "all_reduce": OperatorKind.ALL_REDUCE,
    "all_gather": OperatorKind.ALL_GATHER,
    "reduce_scatter": OperatorKind.REDUCE_SCATTER,
    "alltoall": OperatorKind.ALL_TO_ALL,
}


@dataclass(frozen=True, slots=True)
class TableFile:
    """One file of measurements.

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
        What the file came with.
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
        Empty where nothing was measured or the package is absent.
    """
    roots = table_roots() if folder is None else (TableRoot(folder, PACKAGE, "local folder"),)
    owner = family if family in _LIBRARIES else framework
    found: dict[str, TableFile] = {}
    for root in roots:
        place = root.path / system / _FAMILY[family].folder / owner
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

    if file.family not in _FAMILY:
        raise ValueError(f"unknown table family {file.family!r}")
    family = _FAMILY[file.family]
    # Columns of text are numbered, as they are in the file: texts are slow to copy, and frames are cut up.
    schema = pyarrow.parquet.read_schema(file.path)
    texts = {
        field.name
        for field in schema
        if pyarrow.types.is_string(field.type) or pyarrow.types.is_large_string(field.type)
    }
    asked = [name for name in schema.names if name not in texts or name in family.texts]
    numbered = [name for name in asked if name in texts]
    with pyarrow.parquet.ParquetFile(file.path, read_dictionary=numbered) as stored:
        frame = stored.read(columns=asked, use_threads=False).to_pandas(strings_to_categorical=True)
    tables = family.read(frame)
    found: dict[tuple[OperatorKind, str], list[MeasuredRows]] = {}
    # Kernels that serve steps with prompts and without come once for each.
    for rows in (*tables, *products_alone(tables, file.quantisation_files)):
        found.setdefault((rows.kind, rows.dtype), []).append(rows)
    return [parts[0] if len(parts) == 1 else fastest(parts) for parts in found.values()]


def _attention(frame: pd.DataFrame, kind: OperatorKind, sequence: dict[str, str]) -> list[MeasuredRows]:
    if "window_size" not in frame.columns:
        frame = frame.assign(window_size=0)
    is_plain = frame["beam_width"] == 1
    if kind is OperatorKind.PREFILL_ATTENTION:
        is_plain &= frame["step"] == 0
    columns = {
        "batch": "batch_size",
        "heads": "num_heads",
        "kv_heads": "num_key_value_heads",
        "head_dim": "head_dim",
        "window": "window_size",
    }
    return split_by_dtype(frame, kind, "kv_cache_dtype", columns | sequence, is_plain)


def _without_eager(frame: pd.DataFrame) -> pd.DataFrame:
    # Serving captures graphs; eager rows measure the launch from Python.
    graph = frame[~frame["kernel_source"].str.contains("eager")]
    return frame if graph.empty else graph


def _collective(frame: pd.DataFrame, kind: OperatorKind) -> list[MeasuredRows]:
    if frame.empty:
        return []
    size = whole_numbers(frame, "message_size") * int(ACTIVATION_BYTES)
    dims = {"ranks": whole_numbers(frame, "num_gpus"), "message_bytes": size}
    return [measured_rows(kind, "bf16", dims, frame["latency"].to_numpy(dtype=np.float64))]


def _nccl(frame: pd.DataFrame) -> list[MeasuredRows]:
    half = frame[frame["nccl_dtype"] == "half"]
    return [
        table
        for name, kind in _NCCL_KINDS.items()
        for table in _collective(half[half["op_name"] == name], kind)
    ]


@dataclass(frozen=True, slots=True)
class TableFamily:
    """A kind of table file of the package.

    Attributes
    ----------
    folder : str
        Folder of a system that holds it.
    kinds : tuple[OperatorKind, ...]
        What its rows measure.
    read : Callable
        Its frame in our long format.
    texts : tuple[str, ...]
        Columns of text that `read` asks for: every file has some more, such as the name of the part, which
        cost as much to read as all of its numbers.
    """

    folder: str
    kinds: tuple[OperatorKind, ...]
    read: Callable[[pd.DataFrame], list[MeasuredRows]]
    texts: tuple[str, ...]


_ROUTED: Final = (OperatorKind.EXPERT_DISPATCH, OperatorKind.EXPERT_COMBINE)
_DISPATCHED: Final = (OperatorKind.DISPATCHED_MOE, OperatorKind.EVEN_DISPATCHED_MOE)

_OF_EXPERTS: Final = ("distribution", "moe_dtype")
_OF_LATENT: Final = ("op_name", "kv_cache_dtype")
_OF_BLOCK_SPARSE: Final = ("op_name", "framework", "gemm_type", "kv_cache_dtype")
_OF_COLLECTIVES: Final = ("nccl_dtype", "op_name")

_FAMILY: Final[dict[str, TableFamily]] = {
    "gemm": TableFamily(
        "gemm",
        (OperatorKind.GEMM,),
        lambda frame: split_by_dtype(frame, OperatorKind.GEMM, "gemm_dtype", {"m": "m", "n": "n", "k": "k"}),
        ("gemm_dtype",),
    ),
    "context_attention": TableFamily(
        "attention",
        (OperatorKind.PREFILL_ATTENTION,),
        lambda frame: _attention(frame, OperatorKind.PREFILL_ATTENTION, {"new_tokens": "isl"}),
        ("kv_cache_dtype",),
    ),
    "generation_attention": TableFamily(
        "attention",
        (OperatorKind.DECODE_ATTENTION,),
        lambda frame: _attention(frame, OperatorKind.DECODE_ATTENTION, {"context_tokens": "step"}),
        ("kv_cache_dtype",),
    ),
    "context_mla": TableFamily(
        "mla", (OperatorKind.LATENT_PREFILL_ATTENTION,), latent_attention_tables, _OF_LATENT
    ),
    "generation_mla": TableFamily(
        "mla", (OperatorKind.LATENT_DECODE_ATTENTION,), latent_attention_tables, _OF_LATENT
    ),
    "mla_bmm": TableFamily(
        "mla_bmm", (OperatorKind.BATCHED_GEMM,), absorbed_product_tables, ("op_name", "bmm_dtype")
    ),
    "msa_context_module": TableFamily(
        "msa", (OperatorKind.BLOCK_SPARSE_PREFILL,), block_sparse_tables, _OF_BLOCK_SPARSE
    ),
    "msa_generation_module": TableFamily(
        "msa", (OperatorKind.BLOCK_SPARSE_DECODE,), block_sparse_tables, _OF_BLOCK_SPARSE
    ),
    "moe": TableFamily(
        "moe",
        (OperatorKind.MOE, OperatorKind.UNGATED_MOE, OperatorKind.EVEN_MOE),
        expert_tables,
        (*_OF_EXPERTS, "kernel_source"),
    ),
    "wideep_context_moe": TableFamily(
        "moe", _DISPATCHED, lambda frame: dispatched_expert_tables(frame, 0), _OF_EXPERTS
    ),
    "wideep_generation_moe": TableFamily(
        "moe", _DISPATCHED, lambda frame: dispatched_expert_tables(frame, 1), _OF_EXPERTS
    ),
    "wideep_moe": TableFamily("moe", _DISPATCHED, wide_expert_tables, _OF_EXPERTS),
    "gdn": TableFamily(
        "linear_attention",
        (OperatorKind.DELTA_PREFILL, OperatorKind.DELTA_DECODE),
        delta_net_tables,
        ("phase", "kernel_source"),
    ),
    "kda": TableFamily(
        "kda",
        (OperatorKind.KIMI_DELTA_PREFILL, OperatorKind.KIMI_DELTA_DECODE),
        kimi_delta_tables,
        ("phase", "kernel_source", "version"),
    ),
    **{
        f"dsv4_{block}_{phase}_module": TableFamily(
            "sparse_attention", (kind,), read, ("model", "kv_cache_dtype", "gemm_type")
        )
        for block in ("csa", "hca")
        for phase, kind, read in (
            ("context", OperatorKind.COMPRESSED_PREFILL, compressed_prefill_tables),
            ("generation", OperatorKind.COMPRESSED_DECODE, compressed_decode_tables),
        )
    },
    "mhc_module": TableFamily("mhc", (OperatorKind.HYPER_CONNECTION,), hyper_connection_tables, ("op_name",)),
    "trtllm_alltoall": TableFamily("comm", _ROUTED, nvlink_tables, ("op_name", "moe_dtype", "kernel_source")),
    "moe_a2a": TableFamily("comm", _ROUTED, all_to_all_tables, ("comm_backend", "phase", "comm_dtype")),
    "wideep_deepep_ll": TableFamily("comm", _ROUTED, low_latency_tables, ("device",)),
    "wideep_deepep_normal": TableFamily("comm", _ROUTED, throughput_tables, ("device",)),
    "custom_allreduce": TableFamily(
        "comm",
        (OperatorKind.ALL_REDUCE,),
        lambda frame: _collective(_without_eager(frame), OperatorKind.ALL_REDUCE),
        ("kernel_source",),
    ),
    "nccl": TableFamily("comm", tuple(_NCCL_KINDS.values()), _nccl, _OF_COLLECTIVES),
    # Its tables have no all-to-all.
    "oneccl": TableFamily("comm", tuple(_NCCL_KINDS.values())[:3], _nccl, _OF_COLLECTIVES),
}
"""The families that are understood; of two that hold one kind the preferred one first."""

FAMILIES: Final[dict[OperatorKind, tuple[str, ...]]] = {
    kind: names
    for kind in OperatorKind
    if (names := tuple(name for name, family in _FAMILY.items() if kind in family.kinds))
}
"""The families that hold a kind, the preferred one first."""


def check_folder(folder: Path) -> dict[tuple[str, str], set[str]]:
    """Read one table of every family and framework of a folder of systems, and say what it has.

    Returns
    -------
    dict[tuple[str, str], set[str]]
        Versions by system and framework.

    Raises
    ------
    InputError
        There is no table that is understood, or one cannot be read.
    """
    found: dict[tuple[str, str], set[str]] = {}
    for system in sorted(each.name for each in folder.iterdir() if each.is_dir()):
        for family in _FAMILY:
            for framework in FRAMEWORKS:
                files = table_files(system, family, framework, folder)
                for file in files:
                    found.setdefault((system, file.framework), set()).add(file.version)
                if files:
                    _try(files[0])
    if not found:
        raise InputError([Issue(str(folder), 0, 0, "", "has no table that is understood", _LAYOUT)])
    return found


_LAYOUT: Final = "tables lie in SYSTEM/FAMILY/FRAMEWORK/VERSION/FAMILY_perf.parquet"


def _try(file: TableFile) -> None:
    try:
        read_table(file)
    # What a table of another layout, or a damaged one, makes pandas and pyarrow raise.
    except (OSError, ValueError, KeyError, AttributeError) as error:
        what = f"cannot be read as a table of {file.family}: {error}"
        raise InputError([Issue(str(file.path), 0, 0, "", what, _LAYOUT)]) from error
