"""Operators that every block of a decoder step is made of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np

from fleetplan.perfmodel.operators import ACTIVATION_BYTES, FloatArray, IntArray, Operator, OperatorKind
from fleetplan.perfmodel.steps.shapes import StepShape

UNLIMITED_PROMPTS: Final = "prefill_attention"
"""Name of the operator in which every token of a prompt attends to all tokens before it."""

LIMITED_PROMPTS: Final = "prefill_limited_attention"
"""Name of the operator in which it attends to a window of them, or to those that were selected."""


def constant(value: int, like: IntArray) -> IntArray:
    """Return `value` for every configuration."""
    return np.full(like.shape, value, dtype=np.int64)


def counts(count: float, like: IntArray) -> FloatArray:
    """Return how often an operator runs that every configuration has."""
    return np.full(like.shape, float(count))


def gemm(
    name: str,
    dtype: str,
    m: IntArray,
    n: IntArray,
    k: IntArray,
    layers: int,
    count: FloatArray | None = None,
) -> Operator:
    """Return C[m, n] = A[m, k] B[k, n], once a layer where `count` does not say otherwise."""
    runs = counts(layers, m) if count is None else count
    return Operator(name, OperatorKind.GEMM, dtype, {"m": m, "n": n, "k": k}, runs)


def elementwise(name: str, elements: IntArray, layers: int) -> Operator:
    """Return an operator that reads and writes a number of BF16 elements, once per layer."""
    traffic = elements * int(ACTIVATION_BYTES)
    dims = {"traffic_bytes": traffic}
    return Operator(name, OperatorKind.ELEMENTWISE, "bf16", dims, counts(layers, elements))


def absorbed_product(
    name: str, dtype: str, m: IntArray, groups: IntArray, widths: tuple[int, int], count: FloatArray
) -> Operator:
    """Return one product a head, [m, k] x [k, n] with (n, k) = `widths`: the absorbed form's."""
    n, k = widths
    dims = {"m": m, "groups": groups, "n": constant(n, groups), "k": constant(k, groups)}
    return Operator(name, OperatorKind.BATCHED_GEMM, dtype, dims, count)


def softmax_attention(
    kinds: tuple[OperatorKind, OperatorKind],
    dtype: str,
    fixed: Mapping[str, IntArray],
    layers: int,
    shape: StepShape,
    context_tokens: IntArray | None = None,
) -> Iterator[Operator]:
    """Yield attention of prompts and of generated tokens, once a layer.

    A step without prompts, or without generated tokens, runs the operator no times; its dimensions stay at
    the smallest valid shape.

    Parameters
    ----------
    kinds : tuple[OperatorKind, OperatorKind]
        For prompts, and for generated tokens.
    dtype : str
        Data types of both.
    fixed : Mapping[str, IntArray]
        Dimensions of the layer, shape (n_configs,) each.
    layers : int
        Number of such layers.
    shape : StepShape
        Parallelism, sequences and lengths of n configurations.
    context_tokens : IntArray, optional
        Tokens that generated tokens see, if not the context of one rank. [tokens]
    """
    prefill_kind, decode_kind = kinds
    if shape.prefill_sequences.any():
        prompts = {
            "batch": np.maximum(1, shape.prefill_sequences),
            "new_tokens": np.maximum(1, shape.local_new_tokens),
            "prefix_tokens": shape.local_prefix_tokens,
            **fixed,
        }
        count = np.where(shape.prefill_sequences > 0, float(layers), 0.0)
        is_limited = prefill_kind is not OperatorKind.PREFILL_ATTENTION or fixed["window"].any()
        name = LIMITED_PROMPTS if is_limited else UNLIMITED_PROMPTS
        yield Operator(name, prefill_kind, dtype, prompts, count)
    if shape.decode_sequences.any():
        context = shape.local_context_tokens if context_tokens is None else context_tokens
        generated = {
            "batch": np.maximum(1, shape.decode_sequences),
            "context_tokens": np.maximum(1, context),
            **fixed,
        }
        count = np.where(shape.decode_sequences > 0, float(layers), 0.0)
        yield Operator("decode_attention", decode_kind, dtype, generated, count)
