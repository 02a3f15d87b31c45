"""The operators of latent attention behind an indexer (DeepSeek Sparse Attention: DeepSeek-V3.2, GLM-5).

An indexer scores all earlier tokens for every query and keeps the best `top_k`; attention gathers only those.
Kernels work in the absorbed form: all heads of a query read the same latent vectors, so a gathered vector
serves all of them. Prompts of at most `top_k` tokens see all tokens anyway; `SparseIndex.dense_prompts` tells
whether the framework uses attention without an index for them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from fleetplan.perfmodel.architecture import LatentAttention, ModelArchitecture, SparseIndex
from fleetplan.perfmodel.operators import FloatArray, IntArray, Operator, OperatorKind
from fleetplan.perfmodel.steps.parts import LIMITED_PROMPTS, absorbed_product, constant, elementwise, gemm
from fleetplan.perfmodel.steps.precision import PartDtypes
from fleetplan.perfmodel.steps.shapes import StepShape

DENSE_PROMPT_FRAMEWORKS: Final = frozenset({"sglang"})
"""Frameworks whose prompts within `top_k` attend as without an index.

Source: kernel_source of the tables dsa_context_module of aiconfigurator-core 0.12.0: SGLang 0.5.14 names
dense_mha for them; vLLM 0.24.0 and TensorRT-LLM 1.3.0rc20 name their sparse kernel at every length."""

SPARSE_ABSORBED_DTYPE: Final = "bf16"
"""Data type of the absorbed products around sparse attention, for any weights.

Source: aiconfigurator-core 0.12.0: the blocks of dsa_context_module on h200_sxm leave a sixth of the time
that mla_bmm needs in FP8, with its quantisation, and as much as it needs in BF16."""


@cache
def with_dense_prompts(architecture: ModelArchitecture) -> ModelArchitecture:
    """Return the decoder with short prompts that attend as without an index."""
    groups = []
    for group in architecture.groups:
        attention = group.attention
        if isinstance(attention, LatentAttention) and attention.index is not None:
            attention = replace(attention, index=replace(attention.index, dense_prompts=True))
        groups.append(replace(group, attention=attention))
    return replace(architecture, groups=tuple(groups))


def dense_prompts(attention: LatentAttention, shape: StepShape) -> NDArray[np.bool_]:
    """Return which configurations have prompts that attend to all earlier tokens, without an index."""
    runs = shape.prefill_sequences > 0
    index = attention.index
    if index is None:
        return runs
    short = shape.new_tokens + shape.prefix_tokens <= index.top_k
    return runs & short & index.dense_prompts


def indexer(
    hidden_size: int, dtypes: PartDtypes, attention: LatentAttention, layers: int, shape: StepShape
) -> Iterator[Operator]:
    """Yield the projections of the indexer, and the choice of the tokens that queries attend to.

    A layer that takes over the choice of an earlier one has none of them.
    """
    index = attention.index
    if index is None or index.is_shared:
        return
    tokens = shape.local_tokens
    rank = constant(attention.query_rank or hidden_size, tokens)
    queries = constant(index.heads * index.head_dim, tokens)
    key_and_weights = constant(index.head_dim + index.heads, tokens)
    hidden = constant(hidden_size, tokens)
    yield gemm("index_query_projection", dtypes.attention, tokens, queries, rank, layers)
    yield gemm("index_key_projection", dtypes.other, tokens, key_and_weights, hidden, layers)
    # Queries and keys are turned, quantised, and the keys written to their cache.
    turned = 3 * (index.heads + 1) * index.head_dim
    yield elementwise("index_rotation", tokens * turned, layers)
    needed = (shape.prefill_sequences > 0) & ~dense_prompts(attention, shape)
    if needed.any():
        yield _selection("prefill_index", index, _prompt_dims(shape), np.where(needed, float(layers), 0.0))
    if shape.decode_sequences.any():
        context = np.maximum(1, shape.local_context_tokens)
        dims = _token_dims(shape, context)
        yield _selection("decode_index", index, dims, _layers_where(shape.decode_sequences, layers))


def sparse_prompts(
    dtypes: PartDtypes, attention: LatentAttention, layers: int, shape: StepShape
) -> Iterator[Operator]:
    """Yield the attention of prompts to the tokens that were chosen, in the absorbed form."""
    index = attention.index
    if index is None:
        return
    needed = (shape.prefill_sequences > 0) & ~dense_prompts(attention, shape)
    if not needed.any():
        return
    count = np.where(needed, float(layers), 0.0)
    dims = _prompt_dims(shape)
    tokens = dims["batch"] * dims["new_tokens"]
    dtype, rank = SPARSE_ABSORBED_DTYPE, attention.kv_rank
    heads = -(-attention.heads // shape.layouts.tp)
    # Products of the queries and outputs of prompts are separate from those of generated tokens.
    widths = (rank, attention.nope_head_dim)
    yield absorbed_product("prefill_absorbed_queries", dtype, tokens, heads, widths, count)
    yield _attention(LIMITED_PROMPTS, dtypes.kv, attention, index, heads, dims, count)
    widths = (attention.value_head_dim, rank)
    yield absorbed_product("prefill_absorbed_outputs", dtype, tokens, heads, widths, count)


def sparse_generation(
    dtypes: PartDtypes, attention: LatentAttention, layers: int, shape: StepShape
) -> Operator:
    """Return the attention of generated tokens to the tokens that were chosen.

    Context-parallel ranks hold equally many of them each.
    """
    index = attention.index
    if index is None:
        raise ValueError("attention without an index is not sparse")
    heads = -(-attention.heads // shape.layouts.tp)
    seen = -(-np.minimum(np.maximum(1, shape.context_tokens), index.top_k) // shape.layouts.cp)
    count = _layers_where(shape.decode_sequences, layers)
    return _attention("decode_attention", dtypes.kv, attention, index, heads, _token_dims(shape, seen), count)


def _prompt_dims(shape: StepShape) -> dict[str, IntArray]:
    return {
        "batch": np.maximum(1, shape.prefill_sequences),
        "new_tokens": np.maximum(1, shape.local_new_tokens),
        "prefix_tokens": shape.local_prefix_tokens,
    }


def _token_dims(shape: StepShape, context_tokens: IntArray) -> dict[str, IntArray]:
    """One new token, the last of `context_tokens`."""
    return {
        "batch": np.maximum(1, shape.decode_sequences),
        "new_tokens": constant(1, context_tokens),
        "prefix_tokens": context_tokens - 1,
    }


def _selection(name: str, index: SparseIndex, dims: dict[str, IntArray], count: FloatArray) -> Operator:
    like = dims["batch"]
    fixed = {
        "heads": constant(index.heads, like),
        "head_dim": constant(index.head_dim, like),
        "top_k": constant(index.top_k, like),
    }
    return Operator(name, OperatorKind.TOKEN_SELECTION, "fp8", {**dims, **fixed}, count)


def _attention(
    name: str,
    kv_dtype: str,
    attention: LatentAttention,
    index: SparseIndex,
    heads: IntArray,
    dims: dict[str, IntArray],
    count: FloatArray,
) -> Operator:
    like = dims["batch"]
    fixed = {
        "heads": heads,
        "kv_rank": constant(attention.kv_rank, like),
        "rope_head_dim": constant(attention.rope_head_dim, like),
        "top_k": constant(index.top_k, like),
    }
    return Operator(name, OperatorKind.SPARSE_ATTENTION, kv_dtype, {**dims, **fixed}, count)


def _layers_where(sequences: IntArray, layers: int) -> FloatArray:
    return np.where(sequences > 0, float(layers), 0.0)
