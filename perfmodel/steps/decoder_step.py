"""The operators of one step of a decoder: prompts, generated tokens, or both in one fused iteration.

A step runs over all pipeline stages, and its operators are counted over all of them. Every attention-DP rank
has separate sequences, so attention sees the sequences of one rank, and the feed-forward part may see the
tokens of all ranks of a stage.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import numpy as np

from fleetplan.perfmodel.architecture import (
    Attention,
    CompressedAttention,
    DenseFfn,
    Ffn,
    GroupedQueryAttention,
    LatentAttention,
    LinearAttention,
    ModelArchitecture,
    MoeFfn,
    index_bytes_per_token,
)
from fleetplan.perfmodel.operators import (
    ACTIVATION_BYTES,
    BYTES_PER_ELEMENT,
    IntArray,
    Operator,
    OperatorKind,
)
from fleetplan.perfmodel.steps.block_sparse import block_sparse_attention
from fleetplan.perfmodel.steps.communication import (
    attention_reduction,
    context_communication,
    dense_ffn_communication,
    dispatched,
    embedding_reduction,
    expert_communication,
    norm_reduction,
    pipeline_communication,
)
from fleetplan.perfmodel.steps.compressed import compressed_attention, hyper_connections
from fleetplan.perfmodel.steps.experts import ExpertSpread, routed_experts, skewed_spread
from fleetplan.perfmodel.steps.latent import latent_attention
from fleetplan.perfmodel.steps.linear import linear_attention
from fleetplan.perfmodel.steps.output_norms import attention_output_norm, ffn_output_norm
from fleetplan.perfmodel.steps.parts import constant, elementwise, gemm, softmax_attention
from fleetplan.perfmodel.steps.precision import PartDtypes
from fleetplan.perfmodel.steps.residuals import residual_mixing
from fleetplan.perfmodel.steps.shapes import StepShape
from fleetplan.perfmodel.steps.sharding import cache_elements_per_token, heads_per_accelerator, qkv_width

QK_NORM_MODEL_TYPES: Final = frozenset(
    {
        "exaone4",
        "gemma3",
        "gemma3_text",
        "gemma4_text",
        "minimax_m2",
        "minimax_m3",
        "olmo2",
        "olmo3",
        "olmoe",
        "qwen3",
        "qwen3_moe",
        "qwen3_vl_text",
        "qwen3_vl_moe_text",
        "qwen3_5_text",
        "qwen3_5_moe",
        "qwen3_5_moe_text",
        "qwen3_next",
        "step3p5",
        "step3p7",
    }
)
"""Decoders that norm the query and key heads after their projection, whatever their config says. Source:
their modeling code in Hugging Face transformers."""

WHOLE_NORM_MODEL_TYPES: Final = frozenset({"minimax_m2"})
"""Those of them that norm all query heads of a token as one vector, and all key heads as another, so that
ranks which share the heads have to add up their squares first. Source: `MiniMaxText01RMSNormTP` of vLLM and
`MiniMaxM2RMSNormTP` of SGLang (minimax_m2.py): three kernels, for sums, all-reduce and norm (SGLang pull
request 14416, December 2025; vLLM pull request 31493). vLLM joins them since pull request 43410 (May 2026),
which saves the launches of two, and nothing of the exchange; that is not modelled."""

HEAD_GATE_MODEL_TYPES: Final = frozenset({"step3p5", "step3p7"})
"""Decoders that scale what each head puts out by a gate of its own, from a projection of the hidden state.
Source: `use_head_wise_attn_gate` of Step-3.5-Flash's modeling code."""

GATED_SHARED_EXPERT_MODEL_TYPES: Final = frozenset(
    {"qwen2_moe", "qwen3_5_moe", "qwen3_5_moe_text", "qwen3_next"}
)
"""Decoders that scale the output of the shared expert by a learned gate of each token. Source: as above."""


def step_operators(
    architecture: ModelArchitecture,
    dtypes: PartDtypes,
    shape: StepShape,
    spread: ExpertSpread | None = None,
) -> Iterator[Operator]:
    """Yield the operators of a step, each with its dimensions and its count over all pipeline stages.

    Parameters
    ----------
    architecture : ModelArchitecture
        Layers of any kind of attention with dense or mixture-of-experts feed-forward blocks.
    dtypes : PartDtypes
        Data types by part.
    shape : StepShape
        Parallelism, sequences and lengths of n configurations.
    spread : ExpertSpread or None
        Load of the expert-parallel ranks; default: no load balancing.
    """
    spread = skewed_spread(shape.layouts) if spread is None else spread
    yield from _embedding(architecture, shape)
    attention_counts: dict[Attention, int] = {}
    ffn_counts: dict[Ffn, int] = {}
    # Layers of one shape run the same operators at any position in the model.
    for group in architecture.groups:
        if group.attention is not None:
            attention_counts[group.attention] = attention_counts.get(group.attention, 0) + group.count
        if group.ffn is not None:
            ffn_counts[group.ffn] = ffn_counts.get(group.ffn, 0) + group.count
    for attention, layers in attention_counts.items():
        match attention:
            case GroupedQueryAttention():
                yield from _attention(architecture, dtypes, attention, layers, shape)
            case LatentAttention():
                yield from latent_attention(architecture.hidden_size, dtypes, attention, layers, shape)
            case LinearAttention():
                yield from linear_attention(architecture.hidden_size, dtypes, attention, layers, shape)
            case CompressedAttention():
                yield from compressed_attention(architecture.hidden_size, dtypes, attention, layers, shape)
    for ffn, layers in ffn_counts.items():
        if isinstance(ffn, DenseFfn):
            yield from _dense_ffn(architecture, dtypes, ffn, layers, shape)
        else:
            yield from _mixture(architecture, dtypes, ffn, layers, shape, spread)
        kind, hidden = architecture.model_type, architecture.hidden_size
        yield from ffn_output_norm(kind, hidden, ffn, shape.share_tokens, layers)
    blocks = sum(attention_counts.values()) + sum(ffn_counts.values())
    streams = architecture.residual_streams
    yield from hyper_connections(architecture.hidden_size, streams, blocks, shape)
    yield from residual_mixing(architecture, shape)
    yield from _head(architecture, dtypes, shape)
    # A stage also hands on the residuals of earlier blocks.
    handed_on = (streams + architecture.residual_blocks) * architecture.hidden_size
    yield from pipeline_communication(handed_on, shape.share_tokens, shape.layouts)


def _embedding(architecture: ModelArchitecture, shape: StepShape) -> Iterator[Operator]:
    # Each row is read once and written once.
    yield elementwise("embedding", 2 * shape.share_tokens * architecture.hidden_size, 1)
    yield from embedding_reduction(architecture.hidden_size, shape.share_tokens, shape.layouts)


def _attention(
    architecture: ModelArchitecture,
    dtypes: PartDtypes,
    attention: GroupedQueryAttention,
    layers: int,
    shape: StepShape,
) -> Iterator[Operator]:
    tokens, tp = shape.local_tokens, shape.layouts.tp
    hidden = constant(architecture.hidden_size, tokens)
    heads, kv_heads = heads_per_accelerator(attention, tp)
    width = qkv_width(attention, tp)
    # The norm with its residual reads and writes both streams; rotary positions and the write to the
    # cache read and write the projections once.
    turned = 2 * width if attention.index is None else 0
    yield elementwise("attention_norm", tokens * (4 * architecture.hidden_size + turned), layers)
    yield gemm("qkv_projection", dtypes.attention, tokens, width, hidden, layers)
    if attention.index is not None:
        yield from block_sparse_attention(hidden, dtypes, attention, layers, shape)
    else:
        if attention.query_key_norm or architecture.model_type in QK_NORM_MODEL_TYPES:
            normed = heads * attention.head_dim + kv_heads * attention.head_dim
            yield elementwise("query_key_norm", 2 * tokens * normed, layers)
            if architecture.model_type in WHOLE_NORM_MODEL_TYPES:
                yield from norm_reduction(tokens, tokens * normed, shape.layouts, layers)
        yield from _attention_cores(dtypes.kv, attention, heads, kv_heads, layers, shape)
    yield from context_communication(
        architecture.hidden_size,
        cache_elements_per_token(attention, tp),
        BYTES_PER_ELEMENT[dtypes.kv] + index_bytes_per_token(attention) / attention.kv_elements_per_token,
        heads * attention.value_head_dim,
        layers,
        shape,
    )
    if architecture.model_type in HEAD_GATE_MODEL_TYPES:
        yield gemm("head_gate_projection", dtypes.attention, tokens, heads, hidden, layers)
        yield elementwise("head_gate", 2 * tokens * heads * attention.value_head_dim, layers)
    yield gemm(
        "output_projection", dtypes.attention, tokens, hidden, heads * attention.value_head_dim, layers
    )
    yield from attention_reduction(
        architecture.hidden_size, tokens, shape.layouts, layers, architecture.parallel_blocks
    )
    values = kv_heads * attention.value_head_dim
    yield from attention_output_norm(
        architecture.model_type, architecture.hidden_size, values, tokens, layers
    )


def _attention_cores(
    kv_dtype: str,
    attention: GroupedQueryAttention,
    heads: IntArray,
    kv_heads: IntArray,
    layers: int,
    shape: StepShape,
) -> Iterator[Operator]:
    common = {
        "heads": heads,
        "kv_heads": kv_heads,
        "head_dim": constant(attention.head_dim, heads),
        "window": constant(attention.window, heads),
    }
    kinds = OperatorKind.PREFILL_ATTENTION, OperatorKind.DECODE_ATTENTION
    # The last tokens, which are all that a window leaves, are not spread over context-parallel ranks.
    context = shape.context_tokens if attention.window else None
    yield from softmax_attention(kinds, kv_dtype, common, layers, shape, context)


def _dense_block(
    prefix: str, dtype: str, hidden_size: int, ffn: DenseFfn, layers: int, shape: StepShape
) -> Iterator[Operator]:
    tokens = shape.ffn_tokens
    hidden = constant(hidden_size, tokens)
    width = -(-ffn.intermediate_size // shape.layouts.ffn_tp)
    wide = (2 if ffn.gated else 1) * width
    yield gemm(f"{prefix}_gate_up", dtype, tokens, wide, hidden, layers)
    yield elementwise(f"{prefix}_activation", tokens * (wide + width), layers)
    yield gemm(f"{prefix}_down", dtype, tokens, hidden, width, layers)


def _dense_ffn(
    architecture: ModelArchitecture, dtypes: PartDtypes, ffn: DenseFfn, layers: int, shape: StepShape
) -> Iterator[Operator]:
    hidden_size = architecture.hidden_size
    if not architecture.parallel_blocks:
        yield elementwise("ffn_norm", 4 * shape.share_tokens * hidden_size, layers)
    yield from _dense_block("ffn", dtypes.dense_ffn, hidden_size, ffn, layers, shape)
    yield from dense_ffn_communication(hidden_size, shape.share_tokens, shape.layouts, layers)


def _mixture(
    architecture: ModelArchitecture,
    dtypes: PartDtypes,
    ffn: MoeFfn,
    layers: int,
    shape: StepShape,
    spread: ExpertSpread,
) -> Iterator[Operator]:
    hidden_size, tokens = architecture.hidden_size, shape.share_tokens
    # A norm also adds to the residual stream, unless hyper-connections do.
    passes = 4 if architecture.residual_streams == 1 else 2
    yield elementwise("ffn_norm", passes * tokens * hidden_size, layers)
    hidden = constant(hidden_size, tokens)
    yield gemm("router", dtypes.other, tokens, constant(ffn.experts, tokens), hidden, layers)
    width = hidden
    if ffn.latent_size is not None:
        # Tokens enter a narrower space before they are sent to the experts, and leave it afterwards.
        width = constant(ffn.latent_size, tokens)
        yield gemm("latent_down", dtypes.other, tokens, width, hidden, layers)
        yield gemm("latent_up", dtypes.other, tokens, hidden, width, layers)
    yield from routed_experts(dtypes, ffn, width, layers, shape, spread)
    if ffn.shared_intermediate_size:
        shared = DenseFfn(ffn.shared_intermediate_size, ffn.gated)
        yield from _dense_block("shared_experts", dtypes.shared_experts, hidden_size, shared, layers, shape)
        if architecture.model_type in GATED_SHARED_EXPERT_MODEL_TYPES:
            # One row of weights, the sigmoid, its product with the output, the sum with the routed experts.
            yield elementwise("shared_experts_gate", tokens * hidden_size, layers)
            yield elementwise("shared_experts_sum", 5 * tokens * hidden_size, layers)
    elif ffn.merged_experts:
        # Dispatched tokens do not include the shared experts, which then run as a separate block.
        apart = dispatched(shape.layouts)
        if apart.any():
            alone = DenseFfn(ffn.merged_experts * ffn.intermediate_size, ffn.gated)
            block = _dense_block("shared_experts", dtypes.routed_experts, hidden_size, alone, layers, shape)
            for operator in block:
                yield replace(operator, count=np.where(apart, operator.count, 0.0))
    yield from expert_communication(hidden_size, ffn, dtypes.routed_experts, shape, layers)


def _head(architecture: ModelArchitecture, dtypes: PartDtypes, shape: StepShape) -> Iterator[Operator]:
    # Only the last token of a prompt needs logits.
    rows = shape.prefill_sequences + shape.decode_sequences
    hidden = constant(architecture.hidden_size, rows)
    vocab = -(-architecture.vocab_size // shape.layouts.tp)
    yield elementwise("final_norm", 4 * rows * architecture.hidden_size, 1)
    yield gemm("lm_head", dtypes.other, rows, vocab, hidden, 1)
    message = rows * architecture.vocab_size * int(ACTIVATION_BYTES)
    dims = {"message_bytes": message, "ranks": shape.layouts.tp, "stride": constant(1, rows)}
    count = np.where(shape.layouts.tp > 1, 1.0, 0.0)
    yield Operator("lm_head_all_gather", OperatorKind.ALL_GATHER, "bf16", dims, count)
