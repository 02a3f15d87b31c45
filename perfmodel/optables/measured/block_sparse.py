"""Importer of the measured tables of attention to chosen blocks: whole modules with their projections.

The tables were measured with MiniMax-M3's widths. A row holds the projections of queries, keys, values and of
the indexer, everything between them and the output projection, and the output projection. Rows with BF16
weights are read; `fleetplan.perfmodel.optables.block_sparse` takes the projections off, whose time with any
weights is in the GEMM tables.

Rows that do not time what a server runs are left out: those under TensorRT-LLM 1.3.0rc23, whose kernels on
Hopper attend to everything (1,000 times the roofline for a prompt of 32,768 tokens) and whose prompts on
Blackwell take 2 to 540 ms without order; decode of SGLang beyond the largest captured batch, which waits 0.4
ms for its launches from Python, as its prompts of few tokens wait 0.7 ms (host launches are counted apart).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from fleetplan.perfmodel.operators import OperatorKind
from fleetplan.perfmodel.optables.measured.columns import StoredColumns, split_by_dtype
from fleetplan.perfmodel.optables.rows import MeasuredRows

if TYPE_CHECKING:
    import pandas as pd

HIDDEN_SIZE: Final = 6144
HEAD_DIM: Final = 128
QUERIES_PER_KV_HEAD: Final = 16
INDEX_HEAD_DIM: Final = 128
BLOCK_TOKENS: Final = 128
BLOCKS: Final = 16
"""Widths of MiniMax-M3 (config.json of MiniMaxAI/MiniMax-M3), the only model that was measured."""

MOST_HEADS: Final = 64
"""Heads of the whole model; rows with more heads exist but are not part of it."""

SGLANG_LEAST_PROMPT_MS: Final = 1.0
"""Prompts under SGLang that are faster wait for launches from Python: all sizes take 0.65 to 0.8 ms. [ms]"""

SGLANG_LARGEST_GRAPH: Final = 256
"""Sequences of the largest captured batch of SGLang's rows on H100 and H200; other parts go to 512."""

_EAGER_FRAMEWORK: Final = "SGLang"
_LEFT_OUT: Final = "TRTLLM"


def block_sparse_tables(frame: pd.DataFrame) -> list[MeasuredRows]:
    """Return prompts without a prefix, or generated tokens: whole modules, a table a type of the KV cache."""
    is_prefill = frame["op_name"].str.contains("context").all()
    rows = frame[
        (frame["framework"] != _LEFT_OUT)
        & (frame["gemm_type"] == "bfloat16")
        & (frame["num_heads"] <= MOST_HEADS)
    ]
    eager = rows["framework"] == _EAGER_FRAMEWORK
    if is_prefill:
        rows = rows[(rows["step"] == 0) & ~(eager & (rows["latency"] < SGLANG_LEAST_PROMPT_MS))]
    else:
        rows = rows[~(eager & (rows["batch_size"] > SGLANG_LARGEST_GRAPH))]
    if rows.empty:
        return []
    kv_heads = np.maximum(1, rows["num_heads"] // QUERIES_PER_KV_HEAD)
    rows = rows.assign(
        kv_heads=kv_heads,
        head_dim=HEAD_DIM,
        index_heads=kv_heads,
        index_head_dim=INDEX_HEAD_DIM,
        block_tokens=BLOCK_TOKENS,
        blocks=BLOCKS,
        # `step` tokens are cached, and the new one is attended to as well.
        context=rows["step"] + 1,
    )
    columns = {name: name for name in ("kv_heads", "head_dim", "index_heads", "index_head_dim")}
    columns |= {"block_tokens": "block_tokens", "blocks": "blocks"}
    columns |= {"batch": "batch_size", "heads": "num_heads"}
    stored = StoredColumns.of_frame(rows)
    if is_prefill:
        columns["new_tokens"] = "isl"
        return split_by_dtype(stored, OperatorKind.BLOCK_SPARSE_PREFILL, "kv_cache_dtype", columns)
    columns["context_tokens"] = "context"
    return split_by_dtype(stored, OperatorKind.BLOCK_SPARSE_DECODE, "kv_cache_dtype", columns)
