"""Operators that every block of a decoder step is made of."""

from __future__ import annotations

import numpy as np

from fleetplan.perfmodel.operators import ACTIVATION_BYTES, FloatArray, IntArray, Operator, OperatorKind


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
    """Return an operator that reads and writes so many BF16 elements, once a layer."""
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
