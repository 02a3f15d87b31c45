"""Times of attention behind an indexer, by latency and bandwidth: no table holds its operators alone.

The measured package holds whole attention blocks, and three kernels for one number of heads. The constants
below come from those kernels; a test holds the sum of a block's operators against the blocks.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from fleetplan.fleet.inventory import Accelerator
from fleetplan.fleet.units import BYTES_PER_MS_OF_GB_PER_S, US_PER_MS
from fleetplan.perfmodel.operators import FloatArray, IntArray, OperatorKind, attended_pairs, work
from fleetplan.perfmodel.optables.measured.tables import BLACKWELL_SYSTEMS

SPARSE_MATRIX_RATIO: Final = 0.55
"""Matrix throughput of attention to chosen tokens, over the BF16 peak. Source: aiconfigurator-core 0.12.0,
glm5_dsa_attn_module (flash_mla_sparse_fwd), 4,096 queries and more: 0.58-0.59 on h200_sxm, 0.52 on b200_sxm
with its heads filled up to a tile."""

HEAD_TILE: Final = 64
BLACKWELL_HEAD_TILE: Final = 128
"""Heads that a kernel computes together; fewer cost as much. Source: vLLM 0.24 pads query heads to 128 for
FlashMLA's sparse kernel on Blackwell and to 64 elsewhere."""

SPARSE_FLOOR_US: Final = 8.4
"""Least time of latent attention over a cache. [us] Source: the same package, smallest row of generation_mla:
8.4 us on b200_sxm, 10.7 to 11.4 us on h100_sxm and h200_sxm."""

SCORE_MATRIX_RATIO: Final = 0.45
"""Matrix throughput of an indexer's scores, over the FP8 peak (BF16 where a part has no FP8 units). Source:
the same package, glm5_mqa_logits_module, 4,096 queries and more: 0.43-0.47 on h200_sxm, 0.34-0.44 on
b200_sxm."""

SCORE_LAUNCH_US: Final = 3.6
"""Least time of an indexer's scores. [us] Source: the same table, smallest rows of h100_sxm, h200_sxm and
b200_sxm: 3.5-3.6 us."""

CHOICE_LAUNCH_US: Final = 3.8
CHOICE_US_PER_1000_TOKENS: Final = 0.21
"""Least time of the choice of the best tokens [us], and what a query needs for its context [us a thousand
tokens], however few queries there are: one block works on each. Source: the same package, glm5_topk_module:
3.6-3.9 us at 2,049 tokens, 27.5 us more at 131,072 on h100_sxm and h200_sxm, 24 us more on b200_sxm."""

BLOCK_LAUNCHES_US: Final = 12.0
"""Least time of attention to chosen blocks, with the choice. [us] Source: the same package,
msa_generation_module less its projections: 5 to 19 us under vLLM and 17 to 26 us under SGLang on h100_sxm."""

BLOCK_MATRIX_RATIO: Final = 0.25
"""Matrix throughput of attention of prompts to chosen blocks, over that of attention to everything. Source:
the same package, msa_context_module less its projections, prompts of 2,048 tokens and more with 64 heads: 0.2
on h100_sxm under vLLM (0.13 under SGLang), 0.25 to 0.42 on b200_sxm under vLLM."""

BLOCK_SCORE_RATIO: Final = 0.5
"""Matrix throughput of the index heads' scores, over the same. Source: the same rows under SGLang with
prefixes, which this ratio predicts to 0, +30, +33 and -7 % in the median at prefixes up to 500, 5,000, 40,000
and a million tokens; 0.25 and 1.0 are worse."""

_FLOPS_PER_MS_OF_TFLOPS: Final = 1e9


def head_fill_ratio(accelerator: Accelerator, heads: IntArray) -> FloatArray:
    """Return the heads that a kernel computes over those that there are, shape (n,)."""
    tile = BLACKWELL_HEAD_TILE if accelerator.measured_system in BLACKWELL_SYSTEMS else HEAD_TILE
    filled: FloatArray = -(-heads // tile) * tile / heads
    return filled


def sparse_attention_ms(accelerator: Accelerator, dtype: str, dims: dict[str, IntArray]) -> FloatArray:
    """Return the time of latent attention to chosen tokens, shape (n,), in ms."""
    done = work(OperatorKind.SPARSE_ATTENTION, dtype, dims)
    filled = head_fill_ratio(accelerator, dims["heads"])
    flops_per_ms = accelerator.bf16_tflops * _FLOPS_PER_MS_OF_TFLOPS * SPARSE_MATRIX_RATIO
    computing = done.flops * filled / flops_per_ms
    # Neighbouring queries of a prompt choose much the same tokens, and find them in the chip's own cache.
    gathered = done.kv_bytes / dims["new_tokens"]
    bytes_per_ms = accelerator.hbm_gb_per_s * BYTES_PER_MS_OF_GB_PER_S
    reading = (gathered + done.activation_bytes) / (bytes_per_ms * accelerator.efficiency.kv_read_ratio)
    busy_ms: FloatArray = np.maximum(computing, reading)
    return np.maximum(busy_ms, SPARSE_FLOOR_US / US_PER_MS)


def selection_ms(accelerator: Accelerator, dtype: str, dims: dict[str, IntArray]) -> FloatArray:
    """Return the time of an indexer's scores and of the choice by them, shape (n,), in ms.

    Contexts within `top_k` are scored, because their keys must be cached, but all tokens are selected.
    """
    done = work(OperatorKind.TOKEN_SELECTION, dtype, dims)
    peak_tflops = accelerator.peak_tflops("fp8") or accelerator.bf16_tflops
    bytes_per_ms = accelerator.hbm_gb_per_s * BYTES_PER_MS_OF_GB_PER_S
    scoring = np.maximum(
        done.flops / (peak_tflops * _FLOPS_PER_MS_OF_TFLOPS * SCORE_MATRIX_RATIO),
        done.kv_bytes / (bytes_per_ms * accelerator.efficiency.kv_read_ratio),
    )
    score_traffic_ms = done.activation_bytes / (bytes_per_ms * accelerator.efficiency.weight_read_ratio)
    context = dims["prefix_tokens"] + dims["new_tokens"]
    one_query_us = CHOICE_LAUNCH_US + CHOICE_US_PER_1000_TOKENS * context / 1e3
    choosing = np.where(context > dims["top_k"], one_query_us / US_PER_MS, 0.0)
    time_ms: FloatArray = scoring + np.maximum(score_traffic_ms, choosing) + SCORE_LAUNCH_US / US_PER_MS
    return time_ms


def block_sparse_ms(
    accelerator: Accelerator, kind: OperatorKind, dtype: str, dims: dict[str, IntArray]
) -> FloatArray:
    """Return the time of attention to chosen blocks with the choice of them, shape (n,), in ms."""
    done = work(kind, dtype, dims)
    bytes_per_ms = accelerator.hbm_gb_per_s * BYTES_PER_MS_OF_GB_PER_S
    reading = (done.kv_bytes + done.activation_bytes) / (bytes_per_ms * accelerator.efficiency.kv_read_ratio)
    scoring = _scoring_flops(kind, dims)
    slowed = (done.flops - scoring) / BLOCK_MATRIX_RATIO + scoring / BLOCK_SCORE_RATIO
    peak = accelerator.bf16_tflops * _FLOPS_PER_MS_OF_TFLOPS
    computing = slowed / (peak * accelerator.efficiency.prefill_attention_ratio)
    time_ms: FloatArray = np.maximum(reading, computing) + BLOCK_LAUNCHES_US / US_PER_MS
    return time_ms


def _scoring_flops(kind: OperatorKind, dims: dict[str, IntArray]) -> FloatArray:
    """Operations of the index heads' scores, shape (n,)."""
    if kind is OperatorKind.BLOCK_SPARSE_DECODE:
        scored = dims["context_tokens"].astype(np.float64)
    else:
        scored = attended_pairs(dims["new_tokens"], dims["prefix_tokens"], np.zeros_like(dims["batch"]))
    flops: FloatArray = 2.0 * dims["batch"] * dims["index_heads"] * dims["index_head_dim"] * scored
    return flops
