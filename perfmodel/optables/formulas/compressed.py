"""Times of blocks of compressed attention without measurements, and of the parts that tables lack."""

from __future__ import annotations

from typing import Final

import numpy as np

from fleetplan.fleet.inventory import Accelerator
from fleetplan.fleet.units import BYTES_PER_MS_OF_GB_PER_S, US_PER_MS
from fleetplan.perfmodel.operators import (
    BYTES_PER_ELEMENT,
    FloatArray,
    IntArray,
    compressed_parts,
)
from fleetplan.perfmodel.optables.formulas.sparse import (
    CHOICE_US_PER_1000_TOKENS,
    SCORE_MATRIX_RATIO,
    SPARSE_MATRIX_RATIO,
    head_fill_ratio,
)
from fleetplan.perfmodel.optables.times import UnsupportedDtype

BLOCK_LAUNCHES_US: Final = 40.0
INDEX_LAUNCHES_US: Final = 18.0
"""Launches and small kernels of a block, and of its indexer. [us] Source: aiconfigurator-core 0.12.0,
smallest rows of dsv4_hca_generation_module and dsv4_csa_generation_module: 41 to 61 us and 62 to 78 us on
h200_sxm and b200_sxm, in which the weights of eight heads take 5 us and less."""

BLOCK_RATIO: Final = 0.75
"""Time of the pieces of a block divided by the time of the block. Source: the same package, all four tables
dsv4_{csa,hca}_{context,generation}_module of three frameworks on h100_sxm, h200_sxm, b200_sxm and gb200:
medians of 1.18 to 1.51 for measured times over those of the pieces."""

_FLOPS_PER_MS_OF_TFLOPS: Final = 1e9


def compressed_ms(accelerator: Accelerator, dtype: str, dims: dict[str, IntArray]) -> FloatArray:
    """Return the time of a block of compressed attention with its projections, shape (n,), in ms.

    Raises
    ------
    UnsupportedDtype
        The part has no matrix units for the weights.
    """
    peak_tflops = accelerator.peak_tflops(dtype)
    if peak_tflops is None:
        raise UnsupportedDtype(accelerator.name, dtype)
    efficiency = accelerator.efficiency
    floats = {name: values.astype(np.float64) for name, values in dims.items()}
    parts = compressed_parts(BYTES_PER_ELEMENT[dtype], dims, floats)
    per_tflops = _FLOPS_PER_MS_OF_TFLOPS
    bytes_per_ms = accelerator.hbm_gb_per_s * BYTES_PER_MS_OF_GB_PER_S
    products = parts.projections.flops / (
        peak_tflops * per_tflops * efficiency.gemm_ratio
    ) + parts.compressors.flops / (accelerator.bf16_tflops * per_tflops * efficiency.gemm_ratio)
    weights = parts.projections.weight_bytes + parts.compressors.weight_bytes
    read = weights / (bytes_per_ms * efficiency.weight_read_ratio)
    moved = parts.projections.activation_bytes + parts.compressors.activation_bytes
    passing = moved / (bytes_per_ms * efficiency.weight_read_ratio)
    filled = head_fill_ratio(accelerator, dims["heads"])
    attending = np.maximum(
        parts.attention.flops * filled / (accelerator.bf16_tflops * per_tflops * SPARSE_MATRIX_RATIO),
        (parts.attention.kv_bytes + parts.attention.activation_bytes)
        / (bytes_per_ms * efficiency.kv_read_ratio),
    )
    launches = BLOCK_LAUNCHES_US + np.where(dims["index_heads"] > 0, INDEX_LAUNCHES_US, 0.0)
    pieces_ms: FloatArray = (
        np.maximum(products, read)
        + passing
        + attending
        + _selecting(accelerator, dims, parts.selection.flops, parts.selection.kv_bytes)
        + parts.selection.activation_bytes / (bytes_per_ms * efficiency.weight_read_ratio)
    )
    return pieces_ms / BLOCK_RATIO + launches / US_PER_MS


def _selecting(
    accelerator: Accelerator, dims: dict[str, IntArray], flops: FloatArray, key_bytes: FloatArray
) -> FloatArray:
    """Return the time of the scores of an index, and of a query's choice among them, in ms."""
    peak_tflops = accelerator.peak_tflops("fp8") or accelerator.bf16_tflops
    bytes_per_ms = accelerator.hbm_gb_per_s * BYTES_PER_MS_OF_GB_PER_S
    scoring = np.maximum(
        flops / (peak_tflops * _FLOPS_PER_MS_OF_TFLOPS * SCORE_MATRIX_RATIO),
        key_bytes / (bytes_per_ms * accelerator.efficiency.kv_read_ratio),
    )
    whole = dims["context_tokens"] if "context_tokens" in dims else dims["prefix_tokens"] + dims["new_tokens"]
    entries = whole / np.maximum(dims["ratio"], 1)
    choosing_us = np.where(dims["index_heads"] > 0, CHOICE_US_PER_1000_TOKENS * entries / 1e3, 0.0)
    time_ms: FloatArray = scoring + choosing_us / US_PER_MS
    return time_ms
