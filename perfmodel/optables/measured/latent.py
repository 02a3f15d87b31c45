"""Importer of the measured tables of multi-head latent attention: attention itself, and absorbed products.

The tables were measured with DeepSeek-V3's widths and do not name them. Tables of whole attention modules,
which also hold the projections, are not read: their projections are in the GEMM tables, with more shapes.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from fleetplan.perfmodel.operators import OperatorKind
from fleetplan.perfmodel.optables.measured.columns import StoredColumns
from fleetplan.perfmodel.optables.rows import MeasuredRows, measured_rows

KV_RANK: Final = 512
NOPE_HEAD_DIM: Final = 128
ROPE_HEAD_DIM: Final = 64
VALUE_HEAD_DIM: Final = 128
"""Widths of DeepSeek-V3 (config.json of deepseek-ai/DeepSeek-V3), which every measured model shares."""

_DTYPES: Final = {"bfloat16": "bf16", "fp8": "fp8"}


def latent_attention_tables(stored: StoredColumns) -> list[MeasuredRows]:
    """Attention of prompts (rebuilt keys and values) or of generated tokens (absorbed), a table a KV type."""
    operators = stored.texts("op_name")
    is_prefill = bool(operators.where(lambda name: "context" in name).all())
    latency_ms = stored.latency_ms()
    tables = []
    for theirs, dtype in _DTYPES.items():
        rows = np.flatnonzero(stored.texts("kv_cache_dtype").equal(theirs))
        if not rows.size:
            continue
        dims = {"batch": stored.whole("batch_size")[rows], "heads": stored.whole("num_heads")[rows]}
        if is_prefill:
            kind = OperatorKind.LATENT_PREFILL_ATTENTION
            dims["new_tokens"] = stored.whole("isl")[rows]
            dims["key_head_dim"] = np.full(rows.size, NOPE_HEAD_DIM + ROPE_HEAD_DIM, dtype=np.int64)
            dims["value_head_dim"] = np.full(rows.size, VALUE_HEAD_DIM, dtype=np.int64)
        else:
            kind = OperatorKind.LATENT_DECODE_ATTENTION
            # `step` tokens are cached, and the new one is attended to as well.
            dims["context_tokens"] = stored.whole("step")[rows] + 1
            dims["kv_rank"] = np.full(rows.size, KV_RANK, dtype=np.int64)
            dims["rope_head_dim"] = np.full(rows.size, ROPE_HEAD_DIM, dtype=np.int64)
        tables.append(measured_rows(kind, dtype, dims, latency_ms[rows]))
    return tables


def absorbed_product_tables(stored: StoredColumns) -> list[MeasuredRows]:
    """Products of queries (pre) and outputs (post) with the absorbed matrices, a table a data type."""
    is_pre = stored.texts("op_name").equal("mla_gen_pre")
    latency_ms = stored.latency_ms()
    tables = []
    for theirs, dtype in _DTYPES.items():
        rows = np.flatnonzero(stored.texts("bmm_dtype").equal(theirs))
        if not rows.size:
            continue
        dims = {
            "m": stored.whole("num_tokens")[rows],
            "groups": stored.whole("num_heads")[rows],
            "n": np.where(is_pre[rows], KV_RANK, VALUE_HEAD_DIM),
            "k": np.where(is_pre[rows], NOPE_HEAD_DIM, KV_RANK),
        }
        tables.append(measured_rows(OperatorKind.BATCHED_GEMM, dtype, dims, latency_ms[rows]))
    return tables
