"""The operators of multi-head latent attention (DeepSeek V2 and later, Kimi K2, GLM-5).

The cache has one latent vector per token. Prompts rebuild the keys and values of every head from it;
generated tokens move the rebuilding into the queries and outputs (the absorbed form), so that they read only
latent vectors. Attention behind an indexer is in `fleetplan.perfmodel.steps.sparse`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from fleetplan.perfmodel.architecture import LatentAttention, index_bytes_per_token
from fleetplan.perfmodel.operators import BYTES_PER_ELEMENT, Operator, OperatorKind
from fleetplan.perfmodel.steps.communication import attention_reduction, context_communication
from fleetplan.perfmodel.steps.parts import (
    LIMITED_PROMPTS,
    UNLIMITED_PROMPTS,
    absorbed_product,
    constant,
    elementwise,
    gemm,
)
from fleetplan.perfmodel.steps.precision import PartDtypes
from fleetplan.perfmodel.steps.shapes import StepShape
from fleetplan.perfmodel.steps.sharding import cache_elements_per_token, latent_query_width
from fleetplan.perfmodel.steps.sparse import (
    SPARSE_ABSORBED_DTYPE,
    dense_prompts,
    indexer,
    sparse_generation,
    sparse_prompts,
)

ABSORBED_DTYPES: Final = {"fp8": "fp8", "fp8_block": "fp8"}
"""Data type of the absorbed products by that of the attention weights; BF16 for all others, because
frameworks unpack narrower weights for them."""


def latent_attention(
    hidden_size: int, dtypes: PartDtypes, attention: LatentAttention, layers: int, shape: StepShape
) -> Iterator[Operator]:
    """Yield the operators of `layers` layers of latent attention.

    Parameters
    ----------
    hidden_size : int
        Width of the residual stream.
    dtypes : PartDtypes
        Data types by part.
    attention : LatentAttention
        Layer.
    layers : int
        Number of such layers.
    shape : StepShape
        Parallelism, sequences and lengths of n configurations.
    """
    tokens, tp = shape.local_tokens, shape.layouts.tp
    hidden, dtype = constant(hidden_size, tokens), dtypes.attention
    queries = latent_query_width(attention, tp)
    down = attention.kv_elements_per_token + (attention.query_rank or 0)
    # The norms read and write the residual streams and the latent vectors; rotary positions and the write
    # to the cache touch the queries and the latent vector once more.
    norm = tokens * (4 * hidden_size + 3 * down + queries)
    yield elementwise("attention_norm", norm, layers)
    yield gemm("latent_projection", dtype, tokens, constant(down, tokens), hidden, layers)
    rank = attention.query_rank or hidden_size
    yield gemm("query_projection", dtype, tokens, queries, constant(rank, tokens), layers)
    yield from indexer(hidden_size, dtypes, attention, layers, shape)
    yield from _prompts(dtypes, attention, layers, shape)
    yield from sparse_prompts(dtypes, attention, layers, shape)
    yield from _generation(dtypes, attention, layers, shape)
    width = -(-attention.heads // tp) * attention.value_head_dim
    yield from context_communication(
        hidden_size,
        cache_elements_per_token(attention, tp),
        BYTES_PER_ELEMENT[dtypes.kv] + index_bytes_per_token(attention) / attention.kv_elements_per_token,
        width,
        layers,
        shape,
    )
    if attention.output_gate:
        yield gemm("output_gate_projection", dtype, tokens, width, hidden, layers)
        yield elementwise("output_gate", 3 * tokens * width, layers)
    yield gemm("output_projection", dtype, tokens, hidden, width, layers)
    yield from attention_reduction(hidden_size, tokens, shape.layouts, layers)


def _prompts(
    dtypes: PartDtypes, attention: LatentAttention, layers: int, shape: StepShape
) -> Iterator[Operator]:
    needed = dense_prompts(attention, shape)
    if not needed.any():
        return
    heads = -(-attention.heads // shape.layouts.tp)
    count = np.where(needed, float(layers), 0.0)
    batch, new_tokens = np.maximum(1, shape.prefill_sequences), np.maximum(1, shape.local_new_tokens)
    # Keys and values of the cached prefix are rebuilt as well.
    rebuilt = batch * (new_tokens + shape.local_prefix_tokens)
    width = heads * (attention.nope_head_dim + attention.value_head_dim)
    rank = constant(attention.kv_rank, rebuilt)
    yield gemm("key_value_projection", dtypes.attention, rebuilt, width, rank, layers, count)
    dims = {
        "batch": batch,
        "new_tokens": new_tokens,
        "prefix_tokens": shape.local_prefix_tokens,
        "heads": heads,
        "key_head_dim": constant(attention.nope_head_dim + attention.rope_head_dim, heads),
        "value_head_dim": constant(attention.value_head_dim, heads),
    }
    kind = OperatorKind.LATENT_PREFILL_ATTENTION
    # With an index only short prompts attend to all earlier tokens.
    name = UNLIMITED_PROMPTS if attention.index is None else LIMITED_PROMPTS
    yield Operator(name, kind, dtypes.kv, dims, count)


def _generation(
    dtypes: PartDtypes, attention: LatentAttention, layers: int, shape: StepShape
) -> Iterator[Operator]:
    if not shape.decode_sequences.any():
        return
    heads = -(-attention.heads // shape.layouts.tp)
    batch = np.maximum(1, shape.decode_sequences)
    count = np.where(shape.decode_sequences > 0, float(layers), 0.0)
    dtype = _absorbed_dtype(dtypes, attention)
    rank, nope, value = attention.kv_rank, attention.nope_head_dim, attention.value_head_dim
    yield absorbed_product("absorbed_queries", dtype, batch, heads, (rank, nope), count)
    yield _generated_attention(dtypes, attention, layers, shape)
    yield absorbed_product("absorbed_outputs", dtype, batch, heads, (value, rank), count)


def _absorbed_dtype(dtypes: PartDtypes, attention: LatentAttention) -> str:
    if attention.index is not None:
        return SPARSE_ABSORBED_DTYPE
    return ABSORBED_DTYPES.get(dtypes.attention, "bf16")


def _generated_attention(
    dtypes: PartDtypes, attention: LatentAttention, layers: int, shape: StepShape
) -> Operator:
    if attention.index is not None:
        return sparse_generation(dtypes, attention, layers, shape)
    heads = -(-attention.heads // shape.layouts.tp)
    dims = {
        "batch": np.maximum(1, shape.decode_sequences),
        "context_tokens": np.maximum(1, shape.local_context_tokens),
        "heads": heads,
        "kv_rank": constant(attention.kv_rank, heads),
        "rope_head_dim": constant(attention.rope_head_dim, heads),
    }
    count = np.where(shape.decode_sequences > 0, float(layers), 0.0)
    kind = OperatorKind.LATENT_DECODE_ATTENTION
    return Operator("decode_attention", kind, dtypes.kv, dims, count)
