"""Floating-point operations and bytes of operators on one accelerator.

Each function takes the bytes of an element of the operator's data type and its dimensions, once as integers
and once as floats. `fleetplan.perfmodel.operators.kinds` assigns functions to operator kinds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from fleetplan.perfmodel.operators.arrays import FloatArray, IntArray
from fleetplan.perfmodel.operators.counts import active_experts, attended_pairs, groups_reached
from fleetplan.perfmodel.operators.formats import ACTIVATION_BYTES, BLOCK_INDEX_KEY_BYTES, STATE_BYTES

RECURRENCE_CHUNK_TOKENS: Final = 64
"""Tokens that a recurrence over a prompt handles at once, as attention among themselves. [tokens]

Source: flash-linear-attention, `chunk_gated_delta_rule`, which the measured frameworks call: chunks of 64."""

SCORE_BYTES: Final = 4.0
"""Scores of an indexer are FP32. [bytes] Source: the published inference code of DeepSeek-V3.2."""


@dataclass(frozen=True, slots=True)
class Work:
    """Operations and bytes of an operator on one accelerator, each of shape (n_configs,).

    A multiply-add is two operations. Link bytes are those that the busiest rank sends.
    """

    flops: FloatArray
    weight_bytes: FloatArray
    kv_bytes: FloatArray
    activation_bytes: FloatArray
    link_bytes: FloatArray


Ints = dict[str, IntArray]
Floats = dict[str, FloatArray]


def gemm_work(size: float, dims: Ints, d: Floats) -> Work:
    """Multiply activations by weights; once, or once in every group."""
    groups = d["groups"] if "groups" in d else np.ones(d["m"].shape)
    flops = 2 * groups * d["m"] * d["n"] * d["k"]
    activations = ACTIVATION_BYTES * groups * d["m"] * (d["n"] + d["k"])
    zero = np.zeros(flops.shape)
    return Work(flops, size * groups * d["n"] * d["k"], zero, activations, zero)


def prefill_attention_work(size: float, dims: Ints, d: Floats) -> Work:
    """Attend causally to a prompt, within a window if there is one."""
    pairs = attended_pairs(dims["new_tokens"], dims["prefix_tokens"], dims["window"])
    flops = 4 * d["batch"] * d["heads"] * d["head_dim"] * pairs
    inside = np.where(dims["window"] > 0, np.minimum(d["prefix_tokens"], d["window"]), d["prefix_tokens"])
    kv = 2 * size * d["batch"] * d["kv_heads"] * d["head_dim"] * (d["new_tokens"] + inside)
    activations = 2 * ACTIVATION_BYTES * d["batch"] * d["new_tokens"] * d["heads"] * d["head_dim"]
    zero = np.zeros(flops.shape)
    return Work(flops, zero, kv, activations, zero)


def decode_attention_work(size: float, dims: Ints, d: Floats) -> Work:
    """Attend to the context of one new token a sequence."""
    seen = np.where(dims["window"] > 0, np.minimum(d["context_tokens"], d["window"]), d["context_tokens"])
    flops = 4 * d["batch"] * d["heads"] * d["head_dim"] * seen
    kv = 2 * size * d["batch"] * d["kv_heads"] * d["head_dim"] * seen
    activations = 2 * ACTIVATION_BYTES * d["batch"] * d["heads"] * d["head_dim"]
    zero = np.zeros(flops.shape)
    return Work(flops, zero, kv, activations, zero)


def latent_prefill_work(size: float, dims: Ints, d: Floats) -> Work:
    """Attend to the rebuilt keys and values of a prompt."""
    pairs = attended_pairs(dims["new_tokens"], dims["prefix_tokens"], np.zeros_like(dims["batch"]))
    both = d["heads"] * (d["key_head_dim"] + d["value_head_dim"])
    # The rebuilt keys and values are activations; the cache was read to rebuild them.
    rows = d["batch"] * (2 * d["new_tokens"] + d["prefix_tokens"])
    zero = np.zeros(rows.shape)
    return Work(2 * d["batch"] * both * pairs, zero, zero, ACTIVATION_BYTES * rows * both, zero)


def latent_decode_work(size: float, dims: Ints, d: Floats) -> Work:
    """Attend to latent vectors, in the absorbed form."""
    latent = d["kv_rank"] + d["rope_head_dim"]
    flops = 2 * d["batch"] * d["heads"] * (latent + d["kv_rank"]) * d["context_tokens"]
    kv = size * d["batch"] * latent * d["context_tokens"]
    activations = ACTIVATION_BYTES * d["batch"] * d["heads"] * (latent + d["kv_rank"])
    zero = np.zeros(flops.shape)
    return Work(flops, zero, kv, activations, zero)


def sparse_attention_work(size: float, dims: Ints, d: Floats) -> Work:
    """Attend to the chosen tokens, in the absorbed form."""
    queries = d["batch"] * d["new_tokens"]
    latent = d["kv_rank"] + d["rope_head_dim"]
    # A kernel works on a list of `top_k` tokens for every query, which a short context does not fill.
    listed = np.minimum(d["prefix_tokens"] + d["new_tokens"], d["top_k"])
    flops = 2 * queries * d["heads"] * (latent + d["kv_rank"]) * listed
    gathered = size * queries * latent * listed
    activations = ACTIVATION_BYTES * queries * d["heads"] * (latent + d["kv_rank"])
    zero = np.zeros(flops.shape)
    return Work(flops, zero, gathered, activations, zero)


def token_selection_work(size: float, dims: Ints, d: Floats) -> Work:
    """Score every earlier token and keep the best."""
    pairs = attended_pairs(dims["new_tokens"], dims["prefix_tokens"], np.zeros_like(dims["batch"]))
    scored = d["batch"] * pairs
    keys = d["batch"] * (d["prefix_tokens"] + d["new_tokens"])
    # Scores are written once and read once; those of a context within top_k are not read.
    chosen = d["prefix_tokens"] + d["new_tokens"] > d["top_k"]
    scores = np.where(chosen, 2.0, 1.0) * SCORE_BYTES * scored
    zero = np.zeros(scored.shape)
    return Work(2 * d["heads"] * d["head_dim"] * scored, zero, size * keys * d["head_dim"], scores, zero)


def block_sparse_work(size: float, dims: Ints, d: Floats) -> Work:
    """Score all earlier tokens with the index heads, and attend to the best blocks alone."""
    none = np.zeros_like(dims["batch"])
    is_prefill = "new_tokens" in d
    new = d["new_tokens"] if is_prefill else np.ones(none.shape)
    context = d["prefix_tokens"] + new if is_prefill else d["context_tokens"]
    limit = dims["blocks"] * dims["block_tokens"]
    if is_prefill:
        scored = attended_pairs(dims["new_tokens"], dims["prefix_tokens"], none)
        attended = attended_pairs(dims["new_tokens"], dims["prefix_tokens"], limit)
    else:
        scored, attended = context, np.minimum(context, limit)
    index = d["index_heads"] * d["index_head_dim"]
    flops = d["batch"] * (4 * d["heads"] * d["head_dim"] * attended + 2 * index * scored)
    # Neighbouring queries of a prompt choose much the same blocks, and find them in the chip's own cache.
    read = np.minimum(context, limit * new)
    kv = (
        size * 2 * d["kv_heads"] * d["head_dim"] * read
        + BLOCK_INDEX_KEY_BYTES * d["index_head_dim"] * context
    )
    projected = (d["heads"] + 2 * d["kv_heads"]) * d["head_dim"] + index + d["index_head_dim"]
    # The projections are normed and turned in place; attention reads the queries and writes as much. Scores
    # are those of blocks, and few.
    moved = new * (2 * projected + 2 * d["heads"] * d["head_dim"])
    zero = np.zeros(flops.shape)
    return Work(flops, zero, d["batch"] * kv, d["batch"] * ACTIVATION_BYTES * moved, zero)


def recurrence_work(size: float, dims: Ints, d: Floats, *, is_delta: bool) -> Work:
    """Update a state of fixed size by a prompt, or by one new token a sequence."""
    is_prefill = "new_tokens" in d
    tokens = d["batch"] * d["new_tokens"] if is_prefill else d["batch"]
    key, value = d["key_head_dim"], d["value_head_dim"]
    channels = d["value_heads"] * value + 2 * d["key_heads"] * key
    # The state is read and updated once per token; the delta rule also subtracts its prediction.
    flops = (6 if is_delta else 4) * key * value
    if is_prefill:
        # Within a chunk as attention does it, with one more product of keys for the delta rule.
        flops = flops + 2 * RECURRENCE_CHUNK_TOKENS * ((2 if is_delta else 1) * key + value)
    state = d["value_heads"] * key * value + channels * (d["taps"] - 1)
    # The convolution writes what the recurrence reads; the recurrence writes the output.
    moved = tokens * (3 * channels + d["value_heads"] * value)
    convolution = 2 * tokens * channels * d["taps"]
    zero = np.zeros(tokens.shape)
    return Work(
        tokens * d["value_heads"] * flops + convolution,
        zero,
        2 * STATE_BYTES * d["batch"] * state,
        ACTIVATION_BYTES * moved,
        zero,
    )


def experts_work(size: float, dims: Ints, d: Floats, *, products: int = 3) -> Work:
    """Run the experts that tokens are routed to, each as this many matrix products."""
    routed = d["tokens"] * d["top_k"] / d["moe_ep"]
    width = d["intermediate"] / d["moe_tp"]
    flops = 2 * products * routed * d["hidden"] * width
    reached = active_experts(dims["tokens"], dims["top_k"], dims["experts"]) / d["moe_ep"]
    weights = products * size * reached * d["hidden"] * width
    activations = ACTIVATION_BYTES * routed * (2 * d["hidden"] + products * width)
    zero = np.zeros(flops.shape)
    return Work(flops, weights, zero, activations, zero)


def collective_work(size: float, dims: Ints, d: Floats, *, trips: int = 1) -> Work:
    """Pass a message round all ranks, once or twice."""
    zero = np.zeros(d["message_bytes"].shape)
    return Work(zero, zero, zero, zero, trips * d["message_bytes"] * (1 - 1 / d["ranks"]))


def send_work(size: float, dims: Ints, d: Floats) -> Work:
    """Send a message to one rank."""
    zero = np.zeros(d["message_bytes"].shape)
    return Work(zero, zero, zero, zero, d["message_bytes"])


def routed_work(size: float, dims: Ints, d: Floats) -> Work:
    """Send tokens to the ranks of their experts, or back."""
    copies = groups_reached(dims["top_k"], dims["ep"])
    zero = np.zeros(d["tokens"].shape)
    sent = ACTIVATION_BYTES * d["tokens"] * copies * d["hidden"] * (1 - 1 / d["ep"])
    return Work(zero, zero, zero, zero, sent)


def elementwise_work(size: float, dims: Ints, d: Floats) -> Work:
    """Return the memory traffic with negligible computation."""
    zero = np.zeros(d["traffic_bytes"].shape)
    return Work(zero, zero, zero, d["traffic_bytes"], zero)


def sampling_work(size: float, dims: Ints, d: Floats) -> Work:
    """Draw a token from the logits of the whole vocabulary."""
    # Logits are read once at least; how often a kernel goes over them is its own affair.
    logits = d["rows"] * d["vocab"]
    zero = np.zeros(logits.shape)
    return Work(zero, zero, zero, ACTIVATION_BYTES * logits, zero)
