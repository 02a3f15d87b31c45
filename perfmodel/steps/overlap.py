"""Share of the travel of tokens to experts and back that other work hides.

A layer of experts over several accelerators waits for its tokens twice. Two-batch overlap keeps two half
batches in flight, so that one computes while the other waits. Single-batch overlap returns the outputs of the
experts while the last product and the shared experts still compute. The visible part of a wait is its share
of multiprocessors, and its excess over the work.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from fleetplan.fleet.inventory.techniques import ExpertOverlap
from fleetplan.perfmodel.operators import EXPERT_KINDS, FloatArray, IntArray, OperatorKind

TRAVELLING: Final[dict[ExpertOverlap, frozenset[OperatorKind]]] = {
    "none": frozenset(),
    "two-batch": frozenset({OperatorKind.EXPERT_DISPATCH, OperatorKind.EXPERT_COMBINE}),
    "single-batch": frozenset({OperatorKind.EXPERT_COMBINE}),
}
"""Hidden communication. Source of the last: LMSYS blog, 25 September 2025 (DeepSeek on GB200 NVL72, part II):
combine is overlapped with the down product and the shared experts."""

SHARED_EXPERTS_PREFIX: Final = "shared_experts"
"""Name prefix of the operators of shared experts."""

DOWN_SHARE: Final = 1 / 3
"""Part of routed experts that is their last product: one of three of equal size."""

THROUGHPUT_OCCUPIED_SHARE: Final = 24 / 132
"""Multiprocessors that dispatch and combine of prompts take while they run. Source: DeepEP, docs/legacy.md
(`Buffer.set_num_sms(24)`), of the 132 of an H100."""

LOW_LATENCY_OCCUPIED_SHARE: Final = 0.06 / 0.17
"""Part of the time of a low-latency dispatch or combine in which it takes all multiprocessors; for the rest
its tokens are in flight and take none. Source: LMSYS blog, 5 May 2025 (DeepSeek-V3 on 96 H100): 0.17 ms a
layer, of which 0.06 ms occupy multiprocessors."""


def covering_share(overlap: ExpertOverlap, kind: OperatorKind, name: str) -> float:
    """Return the part of the time of an operator behind which travel is hidden."""
    if overlap == "two-batch":
        return 0.0 if kind in TRAVELLING[overlap] else 1.0
    if kind in EXPERT_KINDS:
        return DOWN_SHARE
    return 1.0 if name.startswith(SHARED_EXPERTS_PREFIX) else 0.0


def occupied_ms(dims: dict[str, IntArray], time_ms: FloatArray) -> FloatArray:
    """Return the part of the time of a dispatch or combine in which others cannot compute. [ms]."""
    share = np.where(dims["low_latency"] > 0, LOW_LATENCY_OCCUPIED_SHARE, THROUGHPUT_OCCUPIED_SHARE)
    found: FloatArray = share * time_ms
    return found


def visible_ms(covering_ms: FloatArray, travelling_ms: FloatArray, occupying_ms: FloatArray) -> FloatArray:
    """Return the visible wait beside the work that hides it, in the broadcast shape. [ms].

    Work W, travel T and the part O of T that stops work take max(W + O, T) together.
    """
    return np.maximum(travelling_ms - covering_ms, occupying_ms)
