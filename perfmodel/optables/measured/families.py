"""Families of table files: paths, operators, and readers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from fleetplan.perfmodel.operators import ACTIVATION_BYTES, OperatorKind
from fleetplan.perfmodel.optables.measured.block_sparse import block_sparse_tables
from fleetplan.perfmodel.optables.measured.columns import BoolArray, StoredColumns, split_by_dtype
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
from fleetplan.perfmodel.optables.measured.latent import absorbed_product_tables, latent_attention_tables
from fleetplan.perfmodel.optables.rows import MeasuredRows, measured_rows

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

_NCCL_KINDS: Final = {
    "all_reduce": OperatorKind.ALL_REDUCE,
    "all_gather": OperatorKind.ALL_GATHER,
    "reduce_scatter": OperatorKind.REDUCE_SCATTER,
    "alltoall": OperatorKind.ALL_TO_ALL,
}

_INTERRUPTED_RATIO: Final = 3.0
"""Ratio to both neighbours above which a measurement was interrupted: five of 17,448, of 3.6 to 17. The next
smaller one is 2.9, of TensorRT-LLM's kernels on H100 and H200 alike."""


def _attention(stored: StoredColumns, kind: OperatorKind, sequence: dict[str, str]) -> list[MeasuredRows]:
    is_plain: BoolArray = stored.numbers("beam_width") == 1
    if "window_size" not in stored:
        stored = stored.with_columns(window_size=np.zeros(is_plain.size, dtype=np.int64))
    if kind is OperatorKind.PREFILL_ATTENTION:
        is_plain = is_plain & (stored.numbers("step") == 0)
    columns = {
        "batch": "batch_size",
        "heads": "num_heads",
        "kv_heads": "num_key_value_heads",
        "head_dim": "head_dim",
        "window": "window_size",
    }
    return split_by_dtype(stored, kind, "kv_cache_dtype", columns | sequence, is_plain)


def _all_reduce(stored: StoredColumns) -> list[MeasuredRows]:
    # Serving captures graphs; eager rows measure the launch from Python.
    is_graph = ~stored.texts("kernel_source").where(lambda name: "eager" in name)
    return _collective(stored, OperatorKind.ALL_REDUCE, is_graph if is_graph.any() else ~is_graph)


def _collective(
    stored: StoredColumns, kind: OperatorKind, is_counted: BoolArray, per_rank: bool = False
) -> list[MeasuredRows]:
    """Return a collective, whose sizes are counts of values of the whole message or of what a rank sends."""
    rows = np.flatnonzero(is_counted)
    if not rows.size:
        return []
    ranks = stored.whole("num_gpus")[rows]
    size = stored.whole("message_size")[rows] * int(ACTIVATION_BYTES) * (ranks if per_rank else 1)
    dims = {"ranks": ranks, "message_bytes": size}
    return [_uninterrupted(measured_rows(kind, "bf16", dims, stored.latency_ms()[rows]))]


def _uninterrupted(table: MeasuredRows) -> MeasuredRows:
    """Return a collective without the messages that take far longer than the next smaller and larger one.

    These timed something else as well: oneCCL's reduce-scatter of 16 MiB among eight cards takes 28 ms, of
    32 MiB 1.6 ms. A surface that never falls would spread them over the larger messages.
    """
    keep = np.ones(table.n_rows, dtype=np.bool_)
    for ranks in np.unique(table.dims["ranks"]):
        rows = np.flatnonzero(table.dims["ranks"] == ranks)
        rows = rows[np.argsort(table.dims["message_bytes"][rows])]
        times = table.latency_ms[rows]
        keep[rows[1:-1]] = times[1:-1] <= _INTERRUPTED_RATIO * np.maximum(times[:-2], times[2:])
    return table.select(keep)


def _nccl(stored: StoredColumns, per_rank: str = "") -> list[MeasuredRows]:
    is_half = stored.texts("nccl_dtype").equal("half")
    operators = stored.texts("op_name")
    return [
        table
        for name, kind in _NCCL_KINDS.items()
        for table in _collective(stored, kind, is_half & operators.equal(name), name == per_rank)
    ]


def _oneccl(stored: StoredColumns) -> list[MeasuredRows]:
    """Read collectives of oneCCL, which counts of an all-gather what a rank sends.

    Source: an all-gather moves half of what an all-reduce of as long a message does. The largest of oneCCL's
    take 1, 2 and 4 times as long on 2, 4 and 8 cards, NCCL's 0.54 to 0.64 times.
    """
    return _nccl(stored, per_rank="all_gather")


_ReadColumns = Callable[[StoredColumns], list[MeasuredRows]]
_ReadTable = Callable[["pa.Table"], list[MeasuredRows]]


def _by_columns(read: _ReadColumns) -> _ReadTable:
    """Read a table by its columns."""
    return lambda table: read(StoredColumns.of_arrow(table))


def _by_frame(read: Callable[[pd.DataFrame], list[MeasuredRows]]) -> _ReadTable:
    """Read a table as a frame, where rows of it are grouped or joined; such families have few rows."""
    return lambda table: read(table.to_pandas(strings_to_categorical=True))


@dataclass(frozen=True, slots=True)
class TableFamily:
    """A kind of table file of the package.

    Attributes
    ----------
    folder : str
        Folder of a system that holds it.
    kinds : tuple[OperatorKind, ...]
        Operators of its rows.
    read : Callable
        Its Arrow table in our long format.
    texts : tuple[str, ...]
        Text columns that `read` uses: every file has more, such as the name of the part, which would take as
        long to read as all its numbers.
    """

    folder: str
    kinds: tuple[OperatorKind, ...]
    read: _ReadTable
    texts: tuple[str, ...]


_ROUTED: Final = (OperatorKind.EXPERT_DISPATCH, OperatorKind.EXPERT_COMBINE)
_DISPATCHED: Final = (OperatorKind.DISPATCHED_MOE, OperatorKind.EVEN_DISPATCHED_MOE)

_OF_EXPERTS: Final = ("distribution", "moe_dtype")
_OF_LATENT: Final = ("op_name", "kv_cache_dtype")
_OF_BLOCK_SPARSE: Final = ("op_name", "framework", "gemm_type", "kv_cache_dtype")
_OF_COLLECTIVES: Final = ("nccl_dtype", "op_name")

TABLE_FAMILIES: Final[dict[str, TableFamily]] = {
    "gemm": TableFamily(
        "gemm",
        (OperatorKind.GEMM,),
        _by_columns(
            lambda stored: split_by_dtype(
                stored, OperatorKind.GEMM, "gemm_dtype", {"m": "m", "n": "n", "k": "k"}
            )
        ),
        ("gemm_dtype",),
    ),
    "context_attention": TableFamily(
        "attention",
        (OperatorKind.PREFILL_ATTENTION,),
        _by_columns(lambda stored: _attention(stored, OperatorKind.PREFILL_ATTENTION, {"new_tokens": "isl"})),
        ("kv_cache_dtype",),
    ),
    "generation_attention": TableFamily(
        "attention",
        (OperatorKind.DECODE_ATTENTION,),
        _by_columns(
            lambda stored: _attention(stored, OperatorKind.DECODE_ATTENTION, {"context_tokens": "step"})
        ),
        ("kv_cache_dtype",),
    ),
    "context_mla": TableFamily(
        "mla", (OperatorKind.LATENT_PREFILL_ATTENTION,), _by_columns(latent_attention_tables), _OF_LATENT
    ),
    "generation_mla": TableFamily(
        "mla", (OperatorKind.LATENT_DECODE_ATTENTION,), _by_columns(latent_attention_tables), _OF_LATENT
    ),
    "mla_bmm": TableFamily(
        "mla_bmm",
        (OperatorKind.BATCHED_GEMM,),
        _by_columns(absorbed_product_tables),
        ("op_name", "bmm_dtype"),
    ),
    "msa_context_module": TableFamily(
        "msa", (OperatorKind.BLOCK_SPARSE_PREFILL,), _by_frame(block_sparse_tables), _OF_BLOCK_SPARSE
    ),
    "msa_generation_module": TableFamily(
        "msa", (OperatorKind.BLOCK_SPARSE_DECODE,), _by_frame(block_sparse_tables), _OF_BLOCK_SPARSE
    ),
    "moe": TableFamily(
        "moe",
        (OperatorKind.MOE, OperatorKind.UNGATED_MOE, OperatorKind.EVEN_MOE),
        _by_columns(expert_tables),
        (*_OF_EXPERTS, "kernel_source"),
    ),
    "wideep_context_moe": TableFamily(
        "moe", _DISPATCHED, _by_columns(lambda stored: dispatched_expert_tables(stored, 0)), _OF_EXPERTS
    ),
    "wideep_generation_moe": TableFamily(
        "moe", _DISPATCHED, _by_columns(lambda stored: dispatched_expert_tables(stored, 1)), _OF_EXPERTS
    ),
    "wideep_moe": TableFamily("moe", _DISPATCHED, _by_frame(wide_expert_tables), _OF_EXPERTS),
    "gdn": TableFamily(
        "linear_attention",
        (OperatorKind.DELTA_PREFILL, OperatorKind.DELTA_DECODE),
        _by_frame(delta_net_tables),
        ("phase", "kernel_source"),
    ),
    "kda": TableFamily(
        "kda",
        (OperatorKind.KIMI_DELTA_PREFILL, OperatorKind.KIMI_DELTA_DECODE),
        _by_frame(kimi_delta_tables),
        ("phase", "kernel_source", "version"),
    ),
    **{
        f"dsv4_{block}_{phase}_module": TableFamily(
            "sparse_attention", (kind,), _by_frame(read), ("model", "kv_cache_dtype", "gemm_type")
        )
        for block in ("csa", "hca")
        for phase, kind, read in (
            ("context", OperatorKind.COMPRESSED_PREFILL, compressed_prefill_tables),
            ("generation", OperatorKind.COMPRESSED_DECODE, compressed_decode_tables),
        )
    },
    "mhc_module": TableFamily(
        "mhc", (OperatorKind.HYPER_CONNECTION,), _by_frame(hyper_connection_tables), ("op_name",)
    ),
    "trtllm_alltoall": TableFamily(
        "comm", _ROUTED, _by_frame(nvlink_tables), ("op_name", "moe_dtype", "kernel_source")
    ),
    "moe_a2a": TableFamily(
        "comm", _ROUTED, _by_frame(all_to_all_tables), ("comm_backend", "phase", "comm_dtype")
    ),
    "wideep_deepep_ll": TableFamily("comm", _ROUTED, _by_frame(low_latency_tables), ("device",)),
    "wideep_deepep_normal": TableFamily("comm", _ROUTED, _by_frame(throughput_tables), ("device",)),
    "custom_allreduce": TableFamily(
        "comm",
        (OperatorKind.ALL_REDUCE,),
        _by_columns(_all_reduce),
        ("kernel_source",),
    ),
    "nccl": TableFamily("comm", tuple(_NCCL_KINDS.values()), _by_columns(_nccl), _OF_COLLECTIVES),
    # Its tables have no all-to-all.
    "oneccl": TableFamily("comm", tuple(_NCCL_KINDS.values())[:3], _by_columns(_oneccl), _OF_COLLECTIVES),
}
"""The families that are understood; of two that hold one kind the preferred one first."""

FAMILIES: Final[dict[OperatorKind, tuple[str, ...]]] = {
    kind: names
    for kind in OperatorKind
    if (names := tuple(name for name, family in TABLE_FAMILIES.items() if kind in family.kinds))
}
"""The families that hold a kind, the preferred one first."""
