"""Operator times from an accelerator's data sheet and efficiency constants, without measurements.

Every time grows with every dimension. The launch of a kernel is included; `Efficiency.layer_overhead_us`,
which is a property of a layer and not of an operator, is not.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from fleetplan.fleet.inventory import Accelerator
from fleetplan.fleet.units import MS_PER_S, US_PER_MS
from fleetplan.perfmodel.operators import (
    BYTES_PER_ELEMENT,
    FloatArray,
    IntArray,
    Limit,
    OperatorKind,
    Work,
    groups_reached,
    work,
)
from fleetplan.perfmodel.optables.formulas.chosen import CHOSEN_LIMITS, chosen_attention_ms
from fleetplan.perfmodel.optables.formulas.collectives import (
    group_ms,
    groups,
    inside_ms,
    send_recv_ms,
    with_network_ms,
)
from fleetplan.perfmodel.optables.times import UnsupportedDtype

OVERLAP_EXPONENT: Final = 3.0
"""Exponent of the p-norm that joins memory and compute time: 1 would add them, infinity would take the
larger. Source: fitted, with the efficiencies, on published dense decode rows of H100, H200 and B200."""

KERNEL_LAUNCH_US: Final = 1.0
"""Least time of any operator: launch and drain of a kernel of a captured graph. [us] A chosen figure, under
the 2.3 us of the smallest GEMM in the H100 and H200 tables of aiconfigurator-core 0.12.0."""

RECURRENCE_RATIO: Final = 0.2
"""Matrix throughput of recurrences over prompts, over that of prefill attention: their products are small.
Source: lies between the delta-net tables of vLLM 0.24.0 (faster) and TensorRT-LLM 1.3.0rc20 (slower) on H200
in aiconfigurator-core 0.12.0; no other part was compared."""


def roofline_ms(
    accelerator: Accelerator, kind: OperatorKind, dtype: str, dims: dict[str, IntArray]
) -> FloatArray:
    """Return the time of an operator on one accelerator by the roofline.

    Parameters
    ----------
    accelerator : Accelerator
        Peaks, bandwidths and efficiencies.
    kind, dtype, dims
        As in `fleetplan.perfmodel.operators.Operator`.

    Returns
    -------
    FloatArray
        Shape (n_configs,); infinite for a group that leaves the scale-up domain of a part without a
        network. [ms]

    Raises
    ------
    UnsupportedDtype
        The part has no matrix units for the weights of a gemm, batched gemm or moe.
    """
    match kind.record.limit:
        case Limit.COLLECTIVE:
            return group_ms(accelerator, kind, dims)
        case Limit.SEND:
            return send_recv_ms(accelerator, dims)
        case Limit.ROUTED_TOKENS:
            return routed_ms(accelerator, dtype, dims)
        case limit if limit in CHOSEN_LIMITS:
            return chosen_attention_ms(accelerator, kind, dtype, dims)
        case _:
            return busy_ms(accelerator, kind, dtype, work(kind, dtype, dims)) + KERNEL_LAUNCH_US / US_PER_MS


def routed_ms(accelerator: Accelerator, dtype: str, dims: dict[str, IntArray]) -> FloatArray:
    """Return the time of a dispatch or a combine by latency and bandwidth, in ms.

    Within a scale-up domain, a token is sent once to every rank with one of its experts. Over the network,
    kernels for throughput send it once to every domain, which distributes it; those for low latency send it
    directly to every rank.
    """
    ep = dims["ep"]
    row = dims["tokens"] * dims["hidden"] * BYTES_PER_ELEMENT[dtype]
    placed = groups(accelerator, ep, np.ones_like(ep))
    copies = groups_reached(dims["top_k"], ep)
    over_network = np.where(
        dims["low_latency"] > 0, copies, groups_reached(dims["top_k"], np.maximum(placed.outer, 1))
    )
    kind = OperatorKind.ALL_TO_ALL
    inside = inside_ms(accelerator, kind, row * copies / placed.outer, placed.inner)
    fixed = inside_ms(accelerator, kind, np.zeros(row.shape), placed.inner)
    sent_bytes = row * over_network * (1.0 - 1.0 / placed.outer)
    return with_network_ms(accelerator, kind, sent_bytes, placed, inside, fixed)


def busy_ms(accelerator: Accelerator, kind: OperatorKind, dtype: str, done: Work) -> FloatArray:
    """Return the time that memory and matrix units need for some work, without the launch, in ms."""
    efficiency = accelerator.efficiency
    memory_bytes_per_ms = accelerator.hbm_gb_per_s * 1e9 / MS_PER_S
    attention_flops_per_ms = accelerator.bf16_tflops * 1e12 / MS_PER_S * efficiency.prefill_attention_ratio
    match kind.record.limit:
        case Limit.WEIGHTS:
            flops_per_ms = matrix_flops_per_ms(accelerator, dtype) * efficiency.gemm_ratio
            traffic = done.weight_bytes + done.activation_bytes
            return _p_norm(
                traffic / (memory_bytes_per_ms * efficiency.weight_read_ratio), done.flops / flops_per_ms
            )
        case Limit.DECODE_STATE:
            # The states are read and written in one piece each, as weights are.
            traffic = done.kv_bytes + done.activation_bytes
            return traffic / (memory_bytes_per_ms * efficiency.weight_read_ratio)
        case Limit.PREFILL_STATE:
            traffic = done.kv_bytes + done.activation_bytes
            return _p_norm(
                traffic / (memory_bytes_per_ms * efficiency.kv_read_ratio),
                done.flops / (attention_flops_per_ms * RECURRENCE_RATIO),
            )
        case Limit.PREFILL_ATTENTION:
            traffic = done.kv_bytes + done.activation_bytes
            return _p_norm(
                traffic / (memory_bytes_per_ms * efficiency.kv_read_ratio),
                done.flops / attention_flops_per_ms,
            )
        case Limit.DECODE_ATTENTION:
            traffic = done.kv_bytes + done.activation_bytes
            reading: FloatArray = np.maximum(
                traffic / (memory_bytes_per_ms * efficiency.kv_read_ratio),
                done.flops / attention_flops_per_ms,
            )
            return reading
        case Limit.MEMORY:
            return done.activation_bytes / (memory_bytes_per_ms * efficiency.weight_read_ratio)
        case _:
            raise ValueError(f"{kind} is not an operator of one accelerator")


def matrix_flops_per_ms(accelerator: Accelerator, dtype: str) -> float:
    """Return the dense peak for weights of `dtype`, in operations per millisecond.

    Raises
    ------
    UnsupportedDtype
        The part has no units for it.
    """
    peak_tflops = accelerator.peak_tflops(dtype)
    if peak_tflops is None:
        raise UnsupportedDtype(accelerator.name, dtype)
    return peak_tflops * 1e12 / MS_PER_S


def _p_norm(first: FloatArray, second: FloatArray) -> FloatArray:
    larger = np.maximum(first, second)
    # Scaled by the larger one, so that neither tiny nor huge times lose digits in the powers.
    ratio = np.minimum(first, second) / np.where(larger > 0, larger, 1.0)
    joined: FloatArray = larger * np.power(1.0 + np.power(ratio, OVERLAP_EXPONENT), 1.0 / OVERLAP_EXPONENT)
    return joined
