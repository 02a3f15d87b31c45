"""The operators of one step of a decoder: prompts, generated tokens, or both in one fused iteration.

A step runs over all pipeline stages; its operators are counted over all of them. Every attention-DP rank
holds sequences of its own, so attention sees the sequences of one rank and the feed-forward part may see
the tokens of all ranks of a stage.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fleetplan.perfmodel.architecture import (
    Attention,
    DenseFfn,
    Ffn,
    GroupedQueryAttention,
    ModelArchitecture,
    MoeFfn,
    UnsupportedArchitecture,
)
from fleetplan.perfmodel.communication import (
    attention_reduction,
    dense_ffn_communication,
    embedding_reduction,
    expert_communication,
    pipeline_communication,
)
from fleetplan.perfmodel.operators import (
    ACTIVATION_BYTES,
    FloatArray,
    IntArray,
    Operator,
    OperatorKind,
)
from fleetplan.perfmodel.precision import PartDtypes
from fleetplan.perfmodel.shapes import StepShape


def step_operators(
    architecture: ModelArchitecture, dtypes: PartDtypes, shape: StepShape
) -> Iterator[Operator]:
    """Yield the operators of a step, each with its dimensions and its count over all pipeline stages.

    Parameters
    ----------
    architecture : ModelArchitecture
        Layers of grouped-query attention with dense or mixture-of-experts feed-forward blocks.
    dtypes : PartDtypes
        Data types by part.
    shape : StepShape
        Parallelism, sequences and lengths of n configurations.

    Raises
    ------
    UnsupportedArchitecture
        Another kind of layer, named.
    """
    yield from _embedding(architecture, shape)
    attention_counts: dict[GroupedQueryAttention, int] = {}
    ffn_counts: dict[Ffn, int] = {}
    # Layers of one shape run the same operators, wherever in the model they stand.
    for group in architecture.groups:
        if group.attention is not None:
            attention = supported_attention(architecture, group.attention)
            attention_counts[attention] = attention_counts.get(attention, 0) + group.count
        if group.ffn is not None:
            ffn_counts[group.ffn] = ffn_counts.get(group.ffn, 0) + group.count
    for attention, layers in attention_counts.items():
        yield from _attention(architecture, dtypes, attention, layers, shape)
    for ffn, layers in ffn_counts.items():
        if isinstance(ffn, DenseFfn):
            yield from _dense_ffn(architecture, dtypes, ffn, layers, shape)
        else:
            yield from _mixture(architecture, dtypes, ffn, layers, shape)
    yield from _head(architecture, dtypes, shape)
    yield from pipeline_communication(architecture.hidden_size, shape.rank_tokens, shape.layouts)


def supported_attention(architecture: ModelArchitecture, attention: Attention) -> GroupedQueryAttention:
    """Return the attention of a layer, or refuse what is not evaluated yet.

    Raises
    ------
    UnsupportedArchitecture
        Multi-head latent or linear attention.
    """
    if not isinstance(attention, GroupedQueryAttention):
        raise UnsupportedArchitecture(
            architecture.name, architecture.model_type, f"{attention.kind} attention is not evaluated yet"
        )
    return attention


def heads_per_accelerator(attention: GroupedQueryAttention, tp: IntArray) -> tuple[IntArray, IntArray]:
    """Query heads and key-value heads of one accelerator, shape (n_configs,); never below one."""
    return -(-attention.heads // tp), np.maximum(1, -(-attention.kv_heads // tp))


def qkv_width(attention: GroupedQueryAttention, tp: IntArray) -> IntArray:
    """Output width of the query, key and value projection on one accelerator, shape (n_configs,)."""
    heads, kv_heads = heads_per_accelerator(attention, tp)
    gate = heads * attention.value_head_dim if attention.output_gate else 0
    return heads * attention.head_dim + gate + kv_heads * (attention.head_dim + attention.value_head_dim)


def _constant(value: int, like: IntArray) -> IntArray:
    return np.full(like.shape, value, dtype=np.int64)


def _counts(count: float, like: IntArray) -> FloatArray:
    return np.full(like.shape, float(count))


def _gemm(name: str, dtype: str, m: IntArray, n: IntArray, k: IntArray, layers: int) -> Operator:
    return Operator(name, OperatorKind.GEMM, dtype, {"m": m, "n": n, "k": k}, _counts(layers, m))


def _elementwise(name: str, elements: IntArray, layers: int) -> Operator:
    traffic = elements * int(ACTIVATION_BYTES)
    dims = {"traffic_bytes": traffic}
    return Operator(name, OperatorKind.ELEMENTWISE, "bf16", dims, _counts(layers, elements))


def _embedding(architecture: ModelArchitecture, shape: StepShape) -> Iterator[Operator]:
    # Each row is read once and written once.
    yield _elementwise("embedding", 2 * shape.rank_tokens * architecture.hidden_size, 1)
    yield from embedding_reduction(architecture.hidden_size, shape.rank_tokens, shape.layouts)


def _attention(
    architecture: ModelArchitecture,
    dtypes: PartDtypes,
    attention: GroupedQueryAttention,
    layers: int,
    shape: StepShape,
) -> Iterator[Operator]:
    tokens, tp = shape.rank_tokens, shape.layouts.tp
    hidden = _constant(architecture.hidden_size, tokens)
    heads, kv_heads = heads_per_accelerator(attention, tp)
    width = qkv_width(attention, tp)
    # The norm with its residual reads and writes both streams; rotary positions and the write to the
    # cache read and write the projections once.
    yield _elementwise("attention_norm", tokens * (4 * architecture.hidden_size + 2 * width), layers)
    yield _gemm("qkv_projection", dtypes.attention, tokens, width, hidden, layers)
    yield from _attention_cores(dtypes.kv, attention, heads, kv_heads, layers, shape)
    yield _gemm(
        "output_projection", dtypes.attention, tokens, hidden, heads * attention.value_head_dim, layers
    )
    yield from attention_reduction(architecture.hidden_size, tokens, shape.layouts, layers)


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
        "head_dim": _constant(attention.head_dim, heads),
        "window": _constant(attention.window, heads),
    }
    # A step without prompts, or without generated tokens, runs the operator no times; its dimensions
    # stay at the smallest valid shape.
    if shape.prefill_sequences.any():
        prefill = {
            "batch": np.maximum(1, shape.prefill_sequences),
            "new_tokens": np.maximum(1, shape.new_tokens),
            "prefix_tokens": shape.prefix_tokens,
            **common,
        }
        count = np.where(shape.prefill_sequences > 0, float(layers), 0.0)
        yield Operator("prefill_attention", OperatorKind.PREFILL_ATTENTION, kv_dtype, prefill, count)
    if shape.decode_sequences.any():
        decode = {
            "batch": np.maximum(1, shape.decode_sequences),
            "context_tokens": np.maximum(1, shape.context_tokens),
            **common,
        }
        count = np.where(shape.decode_sequences > 0, float(layers), 0.0)
        yield Operator("decode_attention", OperatorKind.DECODE_ATTENTION, kv_dtype, decode, count)


def _dense_block(
    prefix: str, dtype: str, hidden_size: int, ffn: DenseFfn, layers: int, shape: StepShape
) -> Iterator[Operator]:
    tokens = shape.ffn_tokens
    hidden = _constant(hidden_size, tokens)
    width = -(-ffn.intermediate_size // shape.layouts.ffn_tp)
    wide = (2 if ffn.gated else 1) * width
    yield _gemm(f"{prefix}_gate_up", dtype, tokens, wide, hidden, layers)
    yield _elementwise(f"{prefix}_activation", tokens * (wide + width), layers)
    yield _gemm(f"{prefix}_down", dtype, tokens, hidden, width, layers)


def _dense_ffn(
    architecture: ModelArchitecture, dtypes: PartDtypes, ffn: DenseFfn, layers: int, shape: StepShape
) -> Iterator[Operator]:
    hidden_size = architecture.hidden_size
    yield _elementwise("ffn_norm", 4 * shape.rank_tokens * hidden_size, layers)
    yield from _dense_block("ffn", dtypes.dense_ffn, hidden_size, ffn, layers, shape)
    yield from dense_ffn_communication(hidden_size, shape.rank_tokens, shape.layouts, layers)


def _mixture(
    architecture: ModelArchitecture, dtypes: PartDtypes, ffn: MoeFfn, layers: int, shape: StepShape
) -> Iterator[Operator]:
    if not ffn.gated or ffn.latent_size is not None:
        what = "experts in a latent space" if ffn.latent_size is not None else "experts without a gate"
        raise UnsupportedArchitecture(
            architecture.name, architecture.model_type, f"{what} are not evaluated yet"
        )
    hidden_size, tokens = architecture.hidden_size, shape.rank_tokens
    yield _elementwise("ffn_norm", 4 * tokens * hidden_size, layers)
    hidden = _constant(hidden_size, tokens)
    yield _gemm("router", dtypes.other, tokens, _constant(ffn.experts, tokens), hidden, layers)
    dims = {
        "tokens": shape.stage_tokens,
        "hidden": hidden,
        "intermediate": _constant(ffn.intermediate_size, tokens),
        "top_k": _constant(ffn.top_k, tokens),
        "experts": _constant(ffn.experts, tokens),
        "moe_tp": shape.layouts.ffn_tp,
        "moe_ep": shape.layouts.ep,
    }
    experts = _counts(layers, tokens)
    yield Operator("routed_experts", OperatorKind.MOE, dtypes.routed_experts, dims, experts)
    if ffn.shared_intermediate_size:
        shared = DenseFfn(ffn.shared_intermediate_size, ffn.gated)
        yield from _dense_block("shared_experts", dtypes.shared_experts, hidden_size, shared, layers, shape)
    yield from expert_communication(hidden_size, ffn.top_k, tokens, shape.layouts, layers)


def _head(architecture: ModelArchitecture, dtypes: PartDtypes, shape: StepShape) -> Iterator[Operator]:
    # Only the last token of a prompt needs logits.
    rows = shape.prefill_sequences + shape.decode_sequences
    hidden = _constant(architecture.hidden_size, rows)
    vocab = -(-architecture.vocab_size // shape.layouts.tp)
    yield _elementwise("final_norm", 4 * rows * architecture.hidden_size, 1)
    yield _gemm("lm_head", dtypes.other, rows, vocab, hidden, 1)
    message = rows * architecture.vocab_size * int(ACTIVATION_BYTES)
    dims = {"message_bytes": message, "ranks": shape.layouts.tp, "stride": _constant(1, rows)}
    count = np.where(shape.layouts.tp > 1, 1.0, 0.0)
    yield Operator("lm_head_all_gather", OperatorKind.ALL_GATHER, "bf16", dims, count)
