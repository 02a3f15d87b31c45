"""Collectives of a step under each parallelism, with their bytes.

Ranks are numbered tensor-parallel first, then by context, then by data: the accelerators 0 .. tp-1 of a stage
share the heads, the next context-parallel rank starts at tp, the next attention-DP rank at tp * cp. For the
feed-forward part, all of them are ranks with separate tokens (`Layouts.token_ranks`), and `rank_tokens` are
those of one rank. Groups of the feed-forward part are `ffn_tp` neighbours each.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from fleetplan.perfmodel.architecture import MoeFfn
from fleetplan.perfmodel.operators import ACTIVATION_BYTES, IntArray, Operator, OperatorKind, groups_reached
from fleetplan.perfmodel.parallelism import Layouts
from fleetplan.perfmodel.steps.parts import elementwise
from fleetplan.perfmodel.steps.shapes import StepShape

_SENT_AS: Final = {"fp8": "fp8", "fp8_block": "fp8", "fp4": "fp4"}
"""Data type in which tokens travel to experts, by that of the experts; BF16 for all others. Source of FP4:
TensorRT-LLM's NVLink kernels and vLLM's FlashInfer all-to-all quantise before they send; SGLang does with
`SGLANG_MOE_NVFP4_DISPATCH`, which launch scripts for DeepSeek in NVFP4 on GB200 set (ai-dynamo, 2025-12)."""


def embedding_reduction(hidden_size: int, rank_tokens: IntArray, layouts: Layouts) -> Iterator[Operator]:
    """Yield the sum of the embedding, whose vocabulary is split over the attention ranks."""
    yield from _collective(
        "embedding_all_reduce",
        OperatorKind.ALL_REDUCE,
        rank_tokens * _row_bytes(hidden_size),
        layouts.tp,
        np.ones_like(layouts.tp),
        1,
    )


def attention_reduction(
    hidden_size: int, rank_tokens: IntArray, layouts: Layouts, layers: int, joined: bool = False
) -> Iterator[Operator]:
    """Yield the sum of the output projection over the accelerators that share the heads.

    With `joined`, the feed-forward block reads the same input; if it is split over the same accelerators, its
    reduction sums both.
    """
    apart = (layouts.token_ranks > 1) | (layouts.ep > 1) if joined else np.ones_like(layouts.tp, dtype=bool)
    yield from _collective(
        "attention_all_reduce",
        OperatorKind.ALL_REDUCE,
        rank_tokens * _row_bytes(hidden_size),
        layouts.tp,
        np.ones_like(layouts.tp),
        layers,
        apart & (layouts.tp > 1),
    )


SUM_NAME: Final = "query_key_sums"
NORM_REDUCTION_NAME: Final = "query_key_all_reduce"

_SUMS_BYTES: Final = 2 * 4
"""The sums of squares of all queries and of all keys of a token, in FP32. [bytes]"""


def norm_reduction(
    rank_tokens: IntArray, elements: IntArray, layouts: Layouts, layers: int
) -> Iterator[Operator]:
    """Add up the squares of queries and keys whose heads several accelerators share, before they are normed.

    Parameters
    ----------
    rank_tokens, elements : IntArray
        Tokens of a rank, and query and key elements of an accelerator.
    layouts : Layouts
        Parallelism.
    layers : int
        Layers with such a norm.
    """
    shared = np.where(layouts.tp > 1, float(layers), 0.0)
    if not shared.any():
        return
    yield replace(elementwise(SUM_NAME, elements, layers), count=shared)
    yield from _collective(
        NORM_REDUCTION_NAME,
        OperatorKind.ALL_REDUCE,
        rank_tokens * _SUMS_BYTES,
        layouts.tp,
        np.ones_like(layouts.tp),
        layers,
    )


def dense_ffn_communication(
    hidden_size: int, rank_tokens: IntArray, layouts: Layouts, layers: int
) -> Iterator[Operator]:
    """Bring the tokens to a dense block and its partial sums back.

    If experts are split over several groups, each group has the dense block and computes its own tokens;
    otherwise the tokens of all attention-DP ranks go to one block.
    """
    whole = layouts.ep == 1
    yield from _shared_block(hidden_size, rank_tokens, layouts, layers, whole)
    if whole.all():
        return
    tokens = -(-rank_tokens * layouts.token_ranks // layouts.ep)
    ones = np.ones_like(tokens)
    message = tokens * _row_bytes(hidden_size)
    kind = OperatorKind.ALL_REDUCE
    yield from _collective("ffn_all_reduce", kind, message, layouts.ffn_tp, ones, layers, ~whole)
    # A rank whose heads span more accelerators than the block gathers the shares of its tokens.
    message = rank_tokens * _row_bytes(hidden_size)
    parts = np.maximum(1, layouts.tp // layouts.ffn_tp)
    kind = OperatorKind.ALL_GATHER
    yield from _collective("ffn_all_gather", kind, message, parts, layouts.ffn_tp, layers, ~whole)


def expert_communication(
    hidden_size: int, ffn: MoeFfn, expert_dtype: str, shape: StepShape, layers: int
) -> Iterator[Operator]:
    """Bring the tokens to the experts and their weighted sums back.

    Three cases. One expert group: as for a dense block. Several groups within one attention rank: every
    accelerator holds all tokens already, so only the sums travel, by an all-reduce over the rank. Several
    groups over several ranks: dispatch sends each accelerator's share of its rank's tokens to the groups
    of their experts and completes them there (all-gather); combine is the mirror image. What is sent is as
    wide as the hidden size, or as the latent space that the experts work in.
    """
    rank_tokens, layouts = shape.share_tokens, shape.layouts
    whole = layouts.ep == 1
    yield from _shared_block(hidden_size, rank_tokens, layouts, layers, whole)
    if whole.all():
        return
    row = _row_bytes(hidden_size)
    ones = np.ones_like(rank_tokens)
    local = ~whole & (layouts.token_ranks == 1)
    kind = OperatorKind.ALL_REDUCE
    yield from _collective("ffn_all_reduce", kind, rank_tokens * row, layouts.tp, ones, layers, local)
    spread = ~whole & (layouts.token_ranks > 1)
    yield from _routed(hidden_size, ffn, expert_dtype, shape, layers, dispatched(layouts))
    yield from _routed_to_groups(hidden_size, ffn, shape, layers, spread & (layouts.ffn_tp > 1))
    kind = OperatorKind.ALL_GATHER
    yield from _collective("ffn_all_gather", kind, rank_tokens * row, layouts.tp, ones, layers, spread)


def dispatched(layouts: Layouts) -> NDArray[np.bool_]:
    """Return where every accelerator is a separate expert group with tokens from a dispatch."""
    found: NDArray[np.bool_] = (layouts.ep > 1) & (layouts.token_ranks > 1) & (layouts.ffn_tp == 1)
    return found


def _routed(
    hidden_size: int,
    ffn: MoeFfn,
    expert_dtype: str,
    shape: StepShape,
    layers: int,
    needed: NDArray[np.bool_],
) -> Iterator[Operator]:
    """Dispatch and combine by dedicated kernels, if every accelerator is a separate group."""
    if not needed.any():
        return
    layouts = shape.layouts
    # Each accelerator of a rank sends its share of the rank's tokens.
    tokens = -(-shape.share_tokens // layouts.tp)
    dims = {
        "tokens": np.where(needed, tokens, 1),
        "hidden": np.full(needed.shape, ffn.latent_size or hidden_size, dtype=np.int64),
        "top_k": np.full(needed.shape, ffn.top_k - ffn.merged_experts, dtype=np.int64),
        "experts": np.full(needed.shape, ffn.experts - ffn.merged_experts, dtype=np.int64),
        "ep": np.where(needed, layouts.ep, 1),
        "low_latency": (shape.prefill_sequences == 0).astype(np.int64),
    }
    count = np.where(needed, float(layers), 0.0)
    # Experts that compute on FP8 or FP4 activations get those; what comes back is BF16.
    sent_as = _SENT_AS.get(expert_dtype, "bf16")
    yield Operator("expert_dispatch", OperatorKind.EXPERT_DISPATCH, sent_as, dims, count)
    yield Operator("expert_combine", OperatorKind.EXPERT_COMBINE, "bf16", dims, count)


def _routed_to_groups(
    hidden_size: int, ffn: MoeFfn, shape: StepShape, layers: int, needed: NDArray[np.bool_]
) -> Iterator[Operator]:
    """Dispatch and combine where several accelerators split each expert."""
    rank_tokens, layouts = shape.share_tokens, shape.layouts
    row = _row_bytes(ffn.latent_size or hidden_size)
    reached = groups_reached(ffn.top_k, layouts.ep)
    sent = np.ceil(rank_tokens * reached / layouts.tp).astype(np.int64) * row
    arrived = np.ceil(rank_tokens * layouts.token_ranks * reached / layouts.ep).astype(np.int64) * row
    stride, ones = layouts.ffn_tp, np.ones_like(rank_tokens)
    kind = OperatorKind.ALL_TO_ALL
    yield from _collective("expert_dispatch", kind, sent, layouts.ep, stride, layers, needed)
    kind = OperatorKind.ALL_GATHER
    yield from _collective("expert_all_gather", kind, arrived, layouts.ffn_tp, ones, layers, needed)
    kind = OperatorKind.REDUCE_SCATTER
    yield from _collective("expert_reduce_scatter", kind, arrived, layouts.ffn_tp, ones, layers, needed)
    kind = OperatorKind.ALL_TO_ALL
    yield from _collective("expert_combine", kind, sent, layouts.ep, stride, layers, needed)


def context_communication(
    hidden_size: int,
    cached_width: IntArray,
    kv_bytes: float,
    output_width: IntArray,
    layers: int,
    shape: StepShape,
) -> Iterator[Operator]:
    """Yield the collectives by which context-parallel ranks of a sequence attend to each other's tokens.

    Prompts: keys and values go around a ring, one hop per further rank. None of it is hidden behind
    attention, which matters for short prompts only, because attention grows faster than the transfers.
    Generated tokens: every rank attends to its part of the cache; the partial outputs are summed, and the
    tokens that the ranks divided for the feed-forward part are gathered.

    Parameters
    ----------
    hidden_size : int
        Width of the residual stream.
    cached_width : IntArray
        Cached elements of a token on one accelerator, shape (n_configs,).
    kv_bytes : float
        Size of a cached element. [bytes]
    output_width : IntArray
        Width of the heads' output on one accelerator, shape (n_configs,).
    layers : int
        Layers of this attention.
    shape : StepShape
        Parallelism, sequences and lengths.
    """
    layouts = shape.layouts
    if not (layouts.cp > 1).any():
        return
    held = -(-(shape.new_tokens + shape.prefix_tokens) // layouts.cp)
    message = np.ceil(shape.prefill_sequences * held * cached_width * kv_bytes).astype(np.int64)
    hops = np.where(shape.prefill_sequences > 0, layers * (layouts.cp - 1.0), 0.0)
    # The last rank of the ring is the farthest from the first, and its hop sets the pace.
    stride = np.maximum(1, layouts.tp * (layouts.cp - 1))
    dims = {"message_bytes": np.where(hops > 0, message, 1), "stride": stride}
    yield Operator("ring_send", OperatorKind.SEND_RECV, "bf16", dims, hops)
    needed = (shape.decode_sequences > 0) & (layouts.cp > 1)
    partial = shape.decode_sequences * output_width * int(ACTIVATION_BYTES)
    kind = OperatorKind.ALL_REDUCE
    yield from _collective("context_all_reduce", kind, partial, layouts.cp, layouts.tp, layers, needed)
    tokens = shape.decode_sequences * _row_bytes(hidden_size)
    kind = OperatorKind.ALL_GATHER
    yield from _collective("context_all_gather", kind, tokens, layouts.cp, layouts.tp, layers, needed)


def pipeline_communication(hidden_size: int, rank_tokens: IntArray, layouts: Layouts) -> Iterator[Operator]:
    """Hand activations from stage to stage: each accelerator sends its share, the peers complete it.

    Every hop is priced as the first one: over the scale-up links where neighbouring stages share a
    domain. The few hops of a longer pipeline that cross domains are then too cheap by one network
    latency each, below 0.1 ms in a pass.
    """
    if not (layouts.pp > 1).any():
        return
    message = rank_tokens * _row_bytes(hidden_size)
    hops = np.maximum(0.0, layouts.pp - 1.0)
    dims = {"message_bytes": -(-message // layouts.tp), "stride": layouts.accelerators_per_stage}
    yield Operator("pipeline_send", OperatorKind.SEND_RECV, "bf16", dims, hops)
    gather = {"message_bytes": message, "ranks": layouts.tp, "stride": np.ones_like(layouts.tp)}
    count = np.where(layouts.tp > 1, hops, 0.0)
    yield Operator("pipeline_all_gather", OperatorKind.ALL_GATHER, "bf16", gather, count)


def _shared_block(
    hidden_size: int, rank_tokens: IntArray, layouts: Layouts, layers: int, needed: NDArray[np.bool_]
) -> Iterator[Operator]:
    # One block over all accelerators of a stage: gather the tokens of the other ranks, and afterwards
    # return to each rank the sums of its own tokens, first over the ranks, then within the rank.
    row = _row_bytes(hidden_size)
    all_tokens = rank_tokens * layouts.token_ranks * row
    kind = OperatorKind.ALL_GATHER
    yield from _collective(
        "ffn_token_gather", kind, all_tokens, layouts.token_ranks, layouts.tp, layers, needed
    )
    kind = OperatorKind.REDUCE_SCATTER
    yield from _collective(
        "ffn_reduce_scatter", kind, all_tokens, layouts.token_ranks, layouts.tp, layers, needed
    )
    kind = OperatorKind.ALL_REDUCE
    ones = np.ones_like(rank_tokens)
    yield from _collective("ffn_all_reduce", kind, rank_tokens * row, layouts.tp, ones, layers, needed)


def _row_bytes(hidden_size: int) -> int:
    return int(hidden_size * ACTIVATION_BYTES)


def _collective(
    name: str,
    kind: OperatorKind,
    message_bytes: IntArray,
    ranks: IntArray,
    stride: IntArray,
    layers: int,
    needed: NDArray[np.bool_] | None = None,
) -> Iterator[Operator]:
    runs = ranks > 1 if needed is None else needed & (ranks > 1)
    if not runs.any():
        return
    # Rows that do not run it keep a valid shape, and few distinct ones.
    dims = {
        "message_bytes": np.where(runs, message_bytes, 1),
        "ranks": np.where(runs, ranks, 1),
        "stride": np.where(runs, stride, 1),
    }
    yield Operator(name, kind, "bf16", dims, np.where(runs, float(layers), 0.0))
