"""Part of an attention layer on one accelerator: heads, weights, cache, recurrent state."""

from __future__ import annotations

import numpy as np

from fleetplan.perfmodel.architecture import (
    Attention,
    CompressedAttention,
    GroupedQueryAttention,
    LatentAttention,
    LinearAttention,
)
from fleetplan.perfmodel.architecture.decoder import STATE_BYTES_PER_ELEMENT
from fleetplan.perfmodel.operators import FloatArray, IntArray


def heads_per_accelerator(attention: GroupedQueryAttention, tp: IntArray) -> tuple[IntArray, IntArray]:
    """Return query heads and key-value heads of one accelerator, shape (n_configs,); at least one."""
    return -(-attention.heads // tp), np.maximum(1, -(-attention.kv_heads // tp))


def qkv_width(attention: GroupedQueryAttention, tp: IntArray) -> IntArray:
    """Return the output width of the query, key and value projection per accelerator, shape (n_configs,)."""
    heads, kv_heads = heads_per_accelerator(attention, tp)
    gate = heads * attention.value_head_dim if attention.output_gate else 0
    return heads * attention.head_dim + gate + kv_heads * (attention.head_dim + attention.value_head_dim)


def index_heads(attention: GroupedQueryAttention, tp: IntArray) -> IntArray:
    """Return the index heads of one accelerator, shape (n_configs,): one per key-value head, or 0."""
    if attention.index is None:
        return np.zeros_like(tp)
    return np.maximum(1, -(-attention.index.heads // tp))


def index_width(attention: GroupedQueryAttention, tp: IntArray) -> IntArray:
    """Return the width of the index queries and of the index key on one accelerator, shape (n_configs,)."""
    if attention.index is None:
        return np.zeros_like(tp)
    return (index_heads(attention, tp) + 1) * attention.index.head_dim


def latent_query_width(attention: LatentAttention, tp: IntArray) -> IntArray:
    """Return the width of the queries of one accelerator, shape (n_configs,)."""
    return -(-attention.heads // tp) * (attention.nope_head_dim + attention.rope_head_dim)


def linear_heads(attention: LinearAttention, tp: IntArray) -> tuple[IntArray, IntArray]:
    """Return key heads (groups of B and C) and value heads per accelerator, shape (n_configs,), >= 1."""
    return np.maximum(1, -(-attention.key_heads // tp)), -(-attention.value_heads // tp)


def linear_channels(attention: LinearAttention, tp: IntArray) -> IntArray:
    """Return the channels that the causal convolution of one accelerator mixes, shape (n_configs,)."""
    key_heads, value_heads = linear_heads(attention, tp)
    return value_heads * attention.value_head_dim + 2 * key_heads * attention.key_head_dim


def linear_input_width(attention: LinearAttention, tp: IntArray) -> IntArray:
    """Return the output width of the input projection on one accelerator, shape (n_configs,).

    Queries, keys and values, the gate, and the scalars of each value head.
    """
    _, value_heads = linear_heads(attention, tp)
    return linear_channels(attention, tp) + value_heads * (attention.value_head_dim + attention.scalars)


def weights_per_accelerator(hidden_size: int, attention: Attention, tp: IntArray) -> IntArray:
    """Return the weights of one layer's attention on one accelerator, shape (n_configs,).

    The projections down to a latent space, and an indexer, are on every accelerator; all others are shared
    out by heads.
    """
    match attention:
        case GroupedQueryAttention():
            heads, _ = heads_per_accelerator(attention, tp)
            projected = qkv_width(attention, tp) + index_width(attention, tp)
            return hidden_size * (projected + heads * attention.value_head_dim)
        case LatentAttention():
            heads = -(-attention.heads // tp)
            queries = latent_query_width(attention, tp)
            down = attention.kv_elements_per_token + (attention.query_rank or 0)
            up = (attention.query_rank or hidden_size) * queries
            rebuilt = attention.kv_rank * heads * (attention.nope_head_dim + attention.value_head_dim)
            outputs = heads * attention.value_head_dim * (2 if attention.output_gate else 1)
            projected = hidden_size * (down + outputs) + up + rebuilt
            return projected + attention.index_weights(hidden_size)
        case CompressedAttention():
            split = -(-attention.split_weights(hidden_size) // tp)
            return attention.whole_weights(hidden_size) + split
        case LinearAttention():
            key_heads, value_heads = linear_heads(attention, tp)
            output = value_heads * attention.value_head_dim
            taps = linear_channels(attention, tp) * attention.convolution_weights(1)
            decay = attention.decay_rank * (hidden_size + key_heads * attention.key_head_dim)
            return hidden_size * (linear_input_width(attention, tp) + output) + decay + taps


def activation_width(attention: Attention, tp: IntArray) -> IntArray:
    """Return the elements a token that a layer's attention keeps on one accelerator, shape (n_configs,)."""
    match attention:
        case GroupedQueryAttention():
            heads, _ = heads_per_accelerator(attention, tp)
            projected = qkv_width(attention, tp) + index_width(attention, tp)
            return projected + heads * attention.value_head_dim
        case LatentAttention():
            heads = -(-attention.heads // tp)
            # Prompts rebuild the keys and values of every head beside the queries and the output.
            outputs = 3 if attention.output_gate else 2
            rebuilt = heads * (attention.nope_head_dim + outputs * attention.value_head_dim)
            latent = attention.kv_elements_per_token + (attention.query_rank or 0)
            return latent_query_width(attention, tp) + rebuilt + latent
        case CompressedAttention():
            # Queries and outputs of the heads, their outputs by group, and the latent vectors.
            heads = -(-attention.heads // tp) * attention.head_dim
            groups = -(-attention.output_groups // tp) * attention.output_rank
            return 2 * heads + groups + attention.query_rank + attention.head_dim
        case LinearAttention():
            _, value_heads = linear_heads(attention, tp)
            return linear_input_width(attention, tp) + value_heads * attention.value_head_dim


def cache_elements_per_token(attention: Attention, tp: IntArray) -> IntArray:
    """Return the cached elements of one token and layer on one accelerator, shape (n_configs,).

    A key-value head is never split, and the latent vector serves all heads: every accelerator holds it.
    """
    match attention:
        case GroupedQueryAttention():
            _, kv_heads = heads_per_accelerator(attention, tp)
            return kv_heads * (attention.head_dim + attention.value_head_dim)
        case _:
            return np.full(tp.shape, attention.kv_elements_per_token, dtype=np.int64)


def state_bytes_per_sequence(attention: Attention, tp: IntArray) -> FloatArray:
    """Return the recurrent state of one sequence and layer on one accelerator, shape (n_configs,). [bytes].

    Compressors keep unfinished entries on every accelerator.
    """
    if isinstance(attention, CompressedAttention):
        return np.full(tp.shape, attention.state_bytes)
    if not isinstance(attention, LinearAttention):
        return np.zeros(tp.shape)
    _, value_heads = linear_heads(attention, tp)
    recurrent = value_heads * attention.value_head_dim * attention.key_head_dim
    recent = linear_channels(attention, tp) * (attention.convolution_width - 1)
    return (recurrent + recent).astype(np.float64) * STATE_BYTES_PER_ELEMENT
