"""The operators of attention with a recurrent state: delta rules, Mamba-2, lightning attention."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from fleetplan.perfmodel.architecture import LinearAttention, LinearVariant
from fleetplan.perfmodel.operators import FloatArray, IntArray, Operator, OperatorKind
from fleetplan.perfmodel.steps.communication import attention_reduction
from fleetplan.perfmodel.steps.parts import constant, elementwise, gemm
from fleetplan.perfmodel.steps.precision import PartDtypes
from fleetplan.perfmodel.steps.shapes import StepShape
from fleetplan.perfmodel.steps.sharding import linear_heads, linear_input_width

_SCANS: Final = (OperatorKind.SCAN_PREFILL, OperatorKind.SCAN_DECODE)
_KINDS: Final = {
    LinearVariant.GATED_DELTA_NET: (OperatorKind.DELTA_PREFILL, OperatorKind.DELTA_DECODE),
    LinearVariant.KIMI_DELTA: (OperatorKind.KIMI_DELTA_PREFILL, OperatorKind.KIMI_DELTA_DECODE),
    LinearVariant.MAMBA2: _SCANS,
    LinearVariant.LIGHTNING: _SCANS,
}
"""Recurrence over prompts, and of generated tokens."""


def linear_attention(
    hidden_size: int, dtypes: PartDtypes, attention: LinearAttention, layers: int, shape: StepShape
) -> Iterator[Operator]:
    """Yield the operators of `layers` layers with a recurrent state.

    A prompt's cached prefix is its state: continuing from it is free, whatever its length.

    Parameters
    ----------
    hidden_size : int
        Width of the residual stream.
    dtypes : PartDtypes
        Data types by part.
    attention : LinearAttention
        Layer.
    layers : int
        Number of such layers.
    shape : StepShape
        Parallelism, sequences and lengths of n configurations.
    """
    tokens, tp = shape.local_tokens, shape.layouts.tp
    hidden = constant(hidden_size, tokens)
    width = linear_input_width(attention, tp)
    _, value_heads = linear_heads(attention, tp)
    output = value_heads * attention.value_head_dim
    # The norm reads and writes both residual streams; the gated norm of the output reads it and the gate.
    yield elementwise("attention_norm", 4 * tokens * hidden_size, layers)
    yield elementwise("gated_norm", 3 * tokens * output, layers)
    if attention.variant is LinearVariant.GATED_DELTA_NET:
        # Decay and beta have a separate projection, in BF16 in every published checkpoint; a kernel then
        # arranges the outputs of both projections for the recurrence.
        scalars = value_heads * attention.scalars
        yield elementwise("linear_rearrangement", 2 * tokens * width, layers)
        yield gemm("linear_scalar_projection", dtypes.other, tokens, scalars, hidden, layers)
        width = width - scalars
    if attention.decay_rank:
        # Beta and the decay's latent vector are one narrow product, in every accelerator whole; Kimi-K3 keeps
        # both in the data type of its attention. Source: aiconfigurator-core 0.12.0, sdk/models/kimi_k3.py.
        key_heads, _ = linear_heads(attention, tp)
        scalars = constant(attention.value_heads * attention.scalars + attention.decay_rank, tokens)
        rank = constant(attention.decay_rank, tokens)
        channels = key_heads * attention.key_head_dim
        yield gemm("linear_scalar_projection", dtypes.attention, tokens, scalars, hidden, layers)
        yield gemm("linear_decay_projection", dtypes.attention, tokens, channels, rank, layers)
        width = width - value_heads * attention.scalars
    yield gemm("linear_input_projection", dtypes.attention, tokens, width, hidden, layers)
    yield from _recurrences(attention, layers, shape)
    yield gemm("output_projection", dtypes.attention, tokens, hidden, output, layers)
    yield from attention_reduction(hidden_size, tokens, shape.layouts, layers)


def _recurrences(attention: LinearAttention, layers: int, shape: StepShape) -> Iterator[Operator]:
    prefill_kind, decode_kind = _KINDS[attention.variant]
    key_heads, value_heads = linear_heads(attention, shape.layouts.tp)
    common = {
        "key_heads": key_heads,
        "value_heads": value_heads,
        "key_head_dim": constant(attention.key_head_dim, key_heads),
        "value_head_dim": constant(attention.value_head_dim, key_heads),
        "taps": constant(attention.convolution_width, key_heads),
    }
    if shape.prefill_sequences.any():
        prompts = {
            "batch": np.maximum(1, shape.prefill_sequences),
            "new_tokens": np.maximum(1, shape.new_tokens),
        }
        count = _layers_where(shape.prefill_sequences, layers)
        yield Operator("prefill_recurrence", prefill_kind, "bf16", {**prompts, **common}, count)
    if shape.decode_sequences.any():
        batch = {"batch": np.maximum(1, shape.decode_sequences)}
        count = _layers_where(shape.decode_sequences, layers)
        yield Operator("decode_recurrence", decode_kind, "bf16", {**batch, **common}, count)


def _layers_where(sequences: IntArray, layers: int) -> FloatArray:
    return np.where(sequences > 0, float(layers), 0.0)
