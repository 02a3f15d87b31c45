"""Importer of the measured tables of multi-head latent attention: attention itself, and absorbed products.

The tables were measured with DeepSeek-V3's widths and do not name them. Tables of whole attention modules,
which also hold the projections, are not read: their projections are in the GEMM tables, with more shapes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from fleetplan.perfmodel.operators import IntArray, OperatorKind
from fleetplan.perfmodel.optables.rows import MeasuredRows, measured_rows

if TYPE_CHECKING:
    import pandas as pd

KV_RANK: Final = 512
NOPE_HEAD_DIM: Final = 128
ROPE_HEAD_DIM: Final = 64
VALUE_HEAD_DIM: Final = 128
"""Widths of DeepSeek-V3 (config.json of deepseek-ai/DeepSeek-V3), which every measured model shares."""

_DTYPES: Final = {"bfloat16": "bf16", "fp8": "fp8"}


def latent_attention_tables(frame: pd.DataFrame) -> list[MeasuredRows]:
    """Attention of prompts (rebuilt keys and values) or of generated tokens (absorbed), a table a KV type."""
    is_prefill = frame["op_name"].str.contains("context").all()
    tables = []
    for theirs, dtype in _DTYPES.items():
        part = frame[frame["kv_cache_dtype"] == theirs]
        if part.empty:
            continue
        dims = {"batch": _integers(part, "batch_size"), "heads": _integers(part, "num_heads")}
        if is_prefill:
            kind = OperatorKind.LATENT_PREFILL_ATTENTION
            dims["new_tokens"] = _integers(part, "isl")
            dims["key_head_dim"] = np.full(len(part), NOPE_HEAD_DIM + ROPE_HEAD_DIM, dtype=np.int64)
            dims["value_head_dim"] = np.full(len(part), VALUE_HEAD_DIM, dtype=np.int64)
        else:
            kind = OperatorKind.LATENT_DECODE_ATTENTION
            # `step` tokens are cached, and the new one is attended to as well.
            dims["context_tokens"] = _integers(part, "step") + 1
            dims["kv_rank"] = np.full(len(part), KV_RANK, dtype=np.int64)
            dims["rope_head_dim"] = np.full(len(part), ROPE_HEAD_DIM, dtype=np.int64)
        tables.append(measured_rows(kind, dtype, dims, part["latency"].to_numpy(dtype=np.float64)))
    return tables


def absorbed_product_tables(frame: pd.DataFrame) -> list[MeasuredRows]:
    """Products of queries (pre) and outputs (post) with the absorbed matrices, a table a data type."""
    tables = []
    for theirs, dtype in _DTYPES.items():
        part = frame[frame["bmm_dtype"] == theirs]
        if part.empty:
            continue
        is_pre = (part["op_name"] == "mla_gen_pre").to_numpy()
        dims = {
            "m": _integers(part, "num_tokens"),
            "groups": _integers(part, "num_heads"),
            "n": np.where(is_pre, KV_RANK, VALUE_HEAD_DIM),
            "k": np.where(is_pre, NOPE_HEAD_DIM, KV_RANK),
        }
        latency_ms = part["latency"].to_numpy(dtype=np.float64)
        tables.append(measured_rows(OperatorKind.BATCHED_GEMM, dtype, dims, latency_ms))
    return tables


def _integers(frame: pd.DataFrame, column: str) -> IntArray:
    return frame[column].to_numpy(dtype=np.int64)
