"""Kernels that only move activations: norms, rotary positions, activation functions, quantisation.

None of them is slow; but a decode step runs a handful in every layer, and each has a least time that no
bandwidth shortens. At tensor parallelism 8 they are a tenth of a step. GEMMs in 8 and 4 bits need their
activations quantised first; the fastest tables of them time the product alone.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from fleetplan.fleet.inventory import Accelerator
from fleetplan.fleet.units import BYTES_PER_MS_OF_GB_PER_S, US_PER_MS
from fleetplan.perfmodel.operators import ACTIVATION_BYTES, BYTES_PER_ELEMENT, FloatArray, IntArray

SMALL_KERNEL_US: Final = {"trtllm": 1.4, "sglang": 2.0, "vllm": 2.0}
"""Least time of a small kernel of each framework in a captured graph. [us] Source: the smallest kernels that
quantise activations in aiconfigurator-core 0.12.0, scale_matrix_perf of h200_sxm: TensorRT-LLM 1.3.0rc20
1.3-1.4 us, vLLM 0.24.0 2.0 us. The table of SGLang times a kernel that serving fuses; its figure is that of
vLLM."""

KERNELS_PER_OPERATOR: Final = {"trtllm": 1, "sglang": 2, "vllm": 2}
"""Small kernels behind an elementwise operator of a step. A dense layer has three such operators:
TensorRT-LLM runs as many kernels, as its attention writes the cache and turns positions itself; vLLM and
SGLang run six (norm, rotary positions, cache write, quantisation of the attention output, norm,
activation)."""

ACTIVATION_BANDWIDTH_RATIO: Final = 0.8
"""Bandwidth of small kernels over the HBM bandwidth. Source: aiconfigurator-core 0.12.0
systems/h200_sxm.yaml, mem_bw_empirical_scaling_factor; its scale_matrix_perf tables reach 0.8 to 0.9 from 20
MB on."""

SCALED_TOGETHER: Final = frozenset({"fp8"})
"""Data types whose activations have one scale that is known beforehand: the kernel before the GEMM quantises
them on the way, at the price of the traffic alone."""

SCALED_IN_BLOCKS: Final = frozenset({"fp8_block", "fp4"})
"""Data types with activations scaled in blocks by a separate kernel. GEMMs of other types take BF16
activations."""


def small_kernel_ms(
    accelerator: Accelerator, framework: str, traffic_bytes: IntArray | FloatArray
) -> FloatArray:
    """Return the time of an elementwise operator with `traffic_bytes` in all, shape (n,), in ms."""
    bytes_per_ms = accelerator.hbm_gb_per_s * ACTIVATION_BANDWIDTH_RATIO * BYTES_PER_MS_OF_GB_PER_S
    launches = KERNELS_PER_OPERATOR[framework] * SMALL_KERNEL_US[framework]
    time: FloatArray = traffic_bytes / bytes_per_ms + launches / US_PER_MS
    return time


def quantisation_ms(
    accelerator: Accelerator, framework: str, dtype: str, dims: dict[str, IntArray]
) -> FloatArray:
    """Return the time to quantise the activations of a GEMM [m, k] x [k, n], 0 for BF16; shape (n,), ms."""
    elements = dims["m"].astype(np.float64) * dims["k"]
    if dtype not in SCALED_TOGETHER | SCALED_IN_BLOCKS:
        return np.zeros(elements.shape)
    bytes_per_ms = accelerator.hbm_gb_per_s * ACTIVATION_BANDWIDTH_RATIO * BYTES_PER_MS_OF_GB_PER_S
    launch_us = SMALL_KERNEL_US[framework] if dtype in SCALED_IN_BLOCKS else 0.0
    traffic_bytes = elements * (ACTIVATION_BYTES + BYTES_PER_ELEMENT[dtype])
    time: FloatArray = traffic_bytes / bytes_per_ms + launch_us / US_PER_MS
    return time
