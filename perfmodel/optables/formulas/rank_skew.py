"""Wait of an all-reduce for its slowest rank, which tables of all-reduces do not hold.

Tables time a collective in a loop that keeps its ranks in step. In a step of a decoder they arrive apart, and
the last one sets the time.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from fleetplan.fleet.units import US_PER_MS
from fleetplan.perfmodel.operators import FloatArray, IntArray

RANK_SKEW_US: Final = 1.5
"""Wait of an all-reduce for each doubling of its ranks. [us] Source: published closed-loop rows of
Llama-3.1-70B under vLLM on H100 and H200 and of Qwen3-32B under vLLM and SGLang on H100 (aiconfigurator-core
0.12.0 systems/silicon_sample.csv), whose predictions without it fall behind as tensor parallelism grows, by
5 to 10 % from TP1 or TP2 to TP8. Chosen by hand, from two figures. Left out were all rows of TensorRT-LLM,
which fall behind as much: with it, their median error on H100 falls from 5.8 to 4.4 % (Llama-3.1-8B) and
from 7.1 to 5.9 % (Qwen3-32B), and stays on H200 at 2.6 % (Llama-3.1-70B)."""

SKEWED_SYSTEMS: Final = frozenset({"h100_sxm", "h200_sxm"})
"""Systems with rank skew. Tables of B200 start at twice the time, and need no correction."""


def rank_skew_ms(system: str | None, ranks: IntArray) -> FloatArray:
    """Return the wait of an all-reduce among `ranks`, shape (n,), in ms; 0 on other systems."""
    if system not in SKEWED_SYSTEMS:
        return np.zeros(ranks.shape)
    skew: FloatArray = RANK_SKEW_US / US_PER_MS * np.log2(np.maximum(ranks, 1))
    return skew
