"""Operations and bytes of compressed attention with its projections, and of hyper-connections.

A block of compressed attention is one operator, as it was measured: projections of the queries and of the
latent vector, compressors, indexer, attention, and the output projection in two steps.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fleetplan.perfmodel.operators.arrays import FloatArray, IntArray
from fleetplan.perfmodel.operators.counts import attended_pairs
from fleetplan.perfmodel.operators.formats import (
    ACTIVATION_BYTES,
    BYTES_PER_ELEMENT,
    index_entry_bytes,
    latent_entry_bytes,
)
from fleetplan.perfmodel.operators.work_done import SCORE_BYTES, Floats, Ints, Work

HEAD_PASSES = 6
"""How often the elements of all heads are read or written beside attention itself: the projection writes the
queries, their norm and rotation read and write them; the rotation of the outputs and their quantisation read
and write those, and the projection reads them. [passes] Source: kernels of DeepSeek-V4 in vLLM 0.24."""


@dataclass(frozen=True, slots=True)
class CompressedParts:
    """The work of a block by what limits it.

    Attributes
    ----------
    projections : Work
        Products with weights of the operator's data type.
    compressors : Work
        Products with weights that stay in BF16.
    attention : Work
        Attention to the window and to entries.
    selection : Work
        Scores of the index over all entries; 0 in layers without one.
    """

    projections: Work
    compressors: Work
    attention: Work
    selection: Work


def compressed_parts(size: float, dims: Ints, d: Floats) -> CompressedParts:
    """Return the work of a block of compressed attention, by part.

    Parameters
    ----------
    size : float
        Bytes of an element of the weights.
    dims, d : dict[str, array]
        Dimensions of the operator, as integers and as floats.
    """
    if "context_tokens" in dims:
        new = np.ones_like(dims["context_tokens"])
        prefix = np.maximum(dims["context_tokens"], 1) - 1
    else:
        new, prefix = dims["new_tokens"], dims["prefix_tokens"]
    tokens = d["batch"] * new
    return CompressedParts(
        _projections(size, tokens, d),
        _compressors(tokens, d),
        _attention(new, prefix, dims, d),
        _selection(new, prefix, d),
    )


def compressed_work(size: float, dims: Ints, d: Floats) -> Work:
    """Run a block of compressed attention, with its projections."""
    parts = compressed_parts(size, dims, d)
    each = (parts.projections, parts.compressors, parts.attention, parts.selection)
    return Work(
        sum((part.flops for part in each), np.zeros(())),
        sum((part.weight_bytes for part in each), np.zeros(())),
        sum((part.kv_bytes for part in each), np.zeros(())),
        sum((part.activation_bytes for part in each), np.zeros(())),
        sum((part.link_bytes for part in each), np.zeros(())),
    )


def hyper_connection_work(size: float, dims: Ints, d: Floats) -> Work:
    """Mix the residual streams before a block, or add its output to them.

    Both go over the streams twice and over the one stream of the block once.
    """
    stream = d["tokens"] * d["hidden"]
    zero = np.zeros(stream.shape)
    return Work(zero, zero, zero, ACTIVATION_BYTES * stream * (2 * d["streams"] + 1), zero)


def _projections(size: float, tokens: FloatArray, d: Floats) -> Work:
    wide = d["heads"] * d["head_dim"]
    indexed = d["index_heads"] * d["index_head_dim"]
    down = d["query_rank"] + d["head_dim"]
    weights = d["hidden"] * (down + d["groups"] * d["output_rank"])
    weights = weights + wide * (d["query_rank"] + d["output_rank"]) + indexed * d["query_rank"]
    passed = 2 * d["hidden"] + 3 * (down + indexed) + HEAD_PASSES * wide + 2 * d["groups"] * d["output_rank"]
    zero = np.zeros((tokens * weights).shape)
    return Work(2 * tokens * weights, zero + size * weights, zero, ACTIVATION_BYTES * tokens * passed, zero)


def _compressors(tokens: FloatArray, d: Floats) -> Work:
    has_index = d["index_heads"] > 0
    # With an index, a token is part of two entries; each needs a value and a share.
    width = np.where(
        d["ratio"] > 0, 2 * np.where(has_index, 2, 1) * (d["head_dim"] + d["index_head_dim"]), 0.0
    )
    weights = d["hidden"] * (width + d["index_heads"])
    zero = np.zeros((tokens * weights).shape)
    kept = BYTES_PER_ELEMENT["bf16"] * weights
    return Work(2 * tokens * weights, zero + kept, zero, 2 * ACTIVATION_BYTES * tokens * width, zero)


def _attention(new: IntArray, prefix: IntArray, dims: Ints, d: Floats) -> Work:
    ratio = np.maximum(d["ratio"], 1.0)
    # A query behind an index sees `top_k` entries, which represent that many compressed tokens.
    reach = dims["top_k"] * dims["ratio"]
    entries = np.where(d["ratio"] > 0, attended_pairs(new, prefix, reach) / ratio, 0.0)
    pairs = attended_pairs(new, prefix, dims["window"]) + entries
    whole = (new + prefix) / ratio
    once = np.where((dims["top_k"] > 0) & (new == 1), np.minimum(whole, d["top_k"]), whole)
    held = new + np.minimum(prefix, d["window"] - 1) + np.where(d["ratio"] > 0, once, 0.0)
    full = latent_entry_bytes(1, 0, BYTES_PER_ELEMENT["bf16"]) * d["head_dim"]
    nope = d["head_dim"] - d["rope_head_dim"]
    narrow = nope * d["kv_bits"] / 8 + ACTIVATION_BYTES * d["rope_head_dim"]
    entry = np.where(d["kv_bits"] >= 16, full, narrow)
    wide = d["heads"] * d["head_dim"]
    zero = np.zeros((d["batch"] * pairs * wide).shape)
    activations = 2 * ACTIVATION_BYTES * d["batch"] * new * wide
    return Work(4 * d["batch"] * wide * pairs, zero, zero + d["batch"] * held * entry, activations, zero)


def _selection(new: IntArray, prefix: IntArray, d: Floats) -> Work:
    ratio = np.maximum(d["ratio"], 1.0)
    runs = d["index_heads"] > 0
    scored = np.where(runs, d["batch"] * attended_pairs(new, prefix, np.zeros_like(new)) / ratio, 0.0)
    keys = np.where(runs, d["batch"] * (new + prefix) / ratio, 0.0)
    zero = np.zeros(scored.shape)
    # Scores are written once and read once.
    return Work(
        2 * d["index_heads"] * d["index_head_dim"] * scored,
        zero,
        keys * index_entry_bytes(d["index_head_dim"]),
        2 * SCORE_BYTES * scored,
        zero,
    )
