"""Importer of the measured tables of DeepSeek-V4: blocks of compressed attention, and hyper-connections.

A row of attention is a whole block, from the normed stream to the output projection, on one accelerator of a
tensor-parallel group. It names the model and the degree; the widths are those of the model's config. Rows of
hyper-connections hold both of a layer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from fleetplan.perfmodel.operators import IntArray, OperatorKind
from fleetplan.perfmodel.operators.formats import INDEXED_RATIO
from fleetplan.perfmodel.optables.measured.columns import StoredColumns, split_by_dtype
from fleetplan.perfmodel.optables.rows import MeasuredRows, measured_rows

if TYPE_CHECKING:
    import pandas as pd

_FLASH: Final = "DeepSeek-V4-Flash"
_PRO: Final = "DeepSeek-V4-Pro"
_MODELS: Final = {
    "hidden": {_FLASH: 4096, _PRO: 7168},
    "query_rank": {_FLASH: 1024, _PRO: 1536},
    "output_groups": {_FLASH: 8, _PRO: 16},
    "top_k": {_FLASH: 512, _PRO: 1024},
}
_BOTH: Final = {"head_dim": 512, "rope_head_dim": 64, "window": 128, "output_rank": 1024}
_INDEX: Final = {"index_heads": 64, "index_head_dim": 128}
"""Widths of the measured models. Source: config.json of both, as packaged in aiconfigurator-core 0.12.0."""

_KV_BITS: Final = {"bfloat16": 16, "fp8": 8, "fp8_e4m3": 8}

SIDES: Final = {"pre": 1, "post": 2}
"""The `side` of a hyper-connection by its name in the package."""


def compressed_prefill_tables(frame: pd.DataFrame) -> list[MeasuredRows]:
    """Return the blocks over prompts without a prefix, a table a data type of the weights."""
    return _tables(frame[frame["step"] == 0], OperatorKind.COMPRESSED_PREFILL, {"new_tokens": "isl"})


def compressed_decode_tables(frame: pd.DataFrame) -> list[MeasuredRows]:
    """Return the blocks over one new token a sequence, a table a data type of the weights."""
    # `step` tokens are cached, and the new one is attended to as well.
    frame = frame.assign(context=frame["step"] + 1)
    return _tables(frame, OperatorKind.COMPRESSED_DECODE, {"context_tokens": "context"})


def hyper_connection_tables(frame: pd.DataFrame) -> list[MeasuredRows]:
    """One connection before or after a block."""
    known = frame[frame["op_name"].isin(SIDES)]
    dims = {
        "tokens": _integers(known, "num_tokens"),
        "hidden": _integers(known, "hidden_size"),
        "streams": _integers(known, "hc_mult"),
        "side": _integers(known.assign(side=known["op_name"].map(SIDES)), "side"),
    }
    latency_ms = (known["latency"] / known["num_sites"]).to_numpy(dtype=np.float64)
    return [measured_rows(OperatorKind.HYPER_CONNECTION, "bf16", dims, latency_ms)]


def _tables(frame: pd.DataFrame, kind: OperatorKind, sequence: dict[str, str]) -> list[MeasuredRows]:
    name = frame["model"].str.extract(f"({_FLASH}|{_PRO})", expand=False)
    frame = frame[name.notna() & frame["kv_cache_dtype"].isin(list(_KV_BITS))]
    if frame.empty:
        return []
    model = name[frame.index]
    frame = frame.assign(
        kv_bits=frame["kv_cache_dtype"].map(_KV_BITS),
        **{width: model.map(by_model) for width, by_model in _MODELS.items()},
        **_BOTH,
    )
    # Layers with an index are the CSA of the package; its HCA has none.
    has_index = frame["compress_ratio"] == INDEXED_RATIO
    frame = frame.assign(
        groups=frame["output_groups"] // frame["tp_size"],
        top_k=frame["top_k"].where(has_index, 0),
        **{width: has_index.astype(np.int64) * value for width, value in _INDEX.items()},
    )
    columns = {
        "batch": "batch_size",
        "heads": "num_heads",
        "ratio": "compress_ratio",
        **{each: each for each in ("groups", "hidden", "query_rank", "top_k", "kv_bits", *_BOTH, *_INDEX)},
    }
    return split_by_dtype(StoredColumns.of_frame(frame), kind, "gemm_type", columns | sequence)


def _integers(frame: pd.DataFrame, column: str) -> IntArray:
    return frame[column].to_numpy(dtype=np.int64)
