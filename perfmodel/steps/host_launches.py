"""The time that a host needs to launch an iteration that holds prompts.

An iteration that only generates is a captured graph with one launch. Prompts have any length, so Python
launches their kernels one by one, and the accelerator waits if that takes longer than the kernels. The wait
does not depend on the tokens; it grows with the number of kernels, and all requests of the engine wait.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np

from fleetplan.fleet.units import US_PER_MS
from fleetplan.perfmodel.operators import FloatArray, Operator, OperatorKind

HOST_NAME: Final = "host_launches"
"""The name in a breakdown of the time for which kernels wait for their launch."""

_OF_EXPERTS: Final = 10
"""Choice of the experts, sorting of the tokens (2), quantisation (2), both grouped products, activation, sum,
and a copy. Source: SGLang, srt/layers/moe/fused_moe_triton/fused_moe.py and srt/layers/moe/topk.py (2025)."""

_OF_ATTENTION: Final = 4
"""Rotary positions, writing keys and values (2), attention. An estimate: not counted in a trace."""

_OF_LATENT_ATTENTION: Final = 9
"""Two norms, rotary positions, the cache write, expansion and joining of keys and values (3), quantisation,
attention. An estimate: not counted in a trace."""

_OF_BLOCK_SPARSE_ATTENTION: Final = 6
"""The four of attention, scores of blocks and their choice. An estimate: not counted in a trace."""

_OF_COMPRESSED: Final = 16
"""Projections (5) with quantisation (3), compressor (2), norms and rotations (3), the cache write, attention
and the rotation of its output. An estimate: not counted in a trace."""

_OF_RECURRENCE: Final = 18
"""Norms of queries and keys (2), the chunked kernels (6; srt/layers/attention/fla/chunk.py of the same), the
convolution, two gates, and seven copies between them; an estimate beyond the chunked kernels."""

LAUNCHES: Final = {
    OperatorKind.PREFILL_ATTENTION: _OF_ATTENTION,
    OperatorKind.LATENT_PREFILL_ATTENTION: _OF_LATENT_ATTENTION,
    OperatorKind.SPARSE_ATTENTION: _OF_LATENT_ATTENTION,
    OperatorKind.TOKEN_SELECTION: _OF_LATENT_ATTENTION,
    OperatorKind.BLOCK_SPARSE_PREFILL: _OF_BLOCK_SPARSE_ATTENTION,
    OperatorKind.COMPRESSED_PREFILL: _OF_COMPRESSED,
    OperatorKind.MOE: _OF_EXPERTS,
    OperatorKind.UNGATED_MOE: _OF_EXPERTS,
    OperatorKind.DISPATCHED_MOE: _OF_EXPERTS,
    OperatorKind.EVEN_MOE: _OF_EXPERTS,
    OperatorKind.EVEN_DISPATCHED_MOE: _OF_EXPERTS,
    OperatorKind.DELTA_PREFILL: _OF_RECURRENCE,
    OperatorKind.KIMI_DELTA_PREFILL: _OF_RECURRENCE,
    OperatorKind.SCAN_PREFILL: _OF_RECURRENCE,
}
"""Kernels that one operator launches; every other kind launches one."""

US_PER_LAUNCH: Final = {"sglang": 45.0}
"""Host time per launch, by framework. [us]

Chosen on the rows of InferenceX under SGLang, October 2025 to June 2026: from 35 to 55 us the median error of
TPOT is 8.5 to 9.4 % (866 rows) and that of median TTFTs 20 to 30 % (365 rows); with a fixed time of 160 ms a
request in front of the engine instead, 9.1 and 51 %. Of SGLang's own cookbook only TTFTs were in view, when
kernels were counted (`benchmarks/blind_rows.py`). vLLM compiles its layers and captures pieces of prompts:
with 15 us its TPOT stays as it is (7.0 %, 1,084 rows), with 25 us it is 6.7 % and TTFT 20 instead of 17 %, so
it has none. TensorRT-LLM was not tried."""


def launch_ms(operators: Iterable[Operator], framework: str) -> FloatArray:
    """Return the host time to launch the kernels of a pass, in the shape of `operators`. [ms]."""
    us = US_PER_LAUNCH.get(framework, 0.0)
    launches: FloatArray = np.zeros(())
    if us:
        for operator in operators:
            launches = launches + LAUNCHES.get(operator.kind, 1) * operator.count
    found: FloatArray = launches * us / US_PER_MS
    return found
