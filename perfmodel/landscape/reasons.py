"""Why configurations are excluded: the reasons by number, and what each of them means."""

from __future__ import annotations

from typing import Final

from fleetplan.perfmodel.landscape.frameworks import FRAMEWORK_REASONS
from fleetplan.perfmodel.landscape.layout_problems import UNEVEN_PIPELINE
from fleetplan.perfmodel.landscape.pareto import BoolArray
from fleetplan.perfmodel.operators import ByteArray

DATA_TYPE: Final = "data type"
"""Reason of configurations in a precision that the hardware lacks."""

REASONS: Final = (
    "",
    UNEVEN_PIPELINE,
    *FRAMEWORK_REASONS,
    "memory: weights",
    "memory: activations",
    "memory: kv cache",
    DATA_TYPE,
    "ttft",
    "tpot",
)
"""Reasons of exclusion; a row's reason is its position here, and the first that holds counts."""

REASON_TEXTS: Final = {
    UNEVEN_PIPELINE: "stages of the pipeline differ too much",
    **FRAMEWORK_REASONS,
    "memory: weights": "weights do not fit in memory",
    "memory: activations": "activations do not fit in memory",
    "memory: kv cache": "KV cache does not fit in memory",
    DATA_TYPE: "no such data type on the hardware",
    "ttft": "misses the TTFT limit",
    "tpot": "misses the TPOT limit",
}
"""Explanations of the reasons."""

USABLE: Final = 0
"""Position of no reason."""

CODES: Final = {reason: code for code, reason in enumerate(REASONS)}
"""Positions in `REASONS`."""


def is_early(excluded: ByteArray) -> BoolArray:
    """Return the rows that were excluded before they were evaluated: for more than a limit on a latency."""
    return (excluded > USABLE) & (excluded < CODES["ttft"])
