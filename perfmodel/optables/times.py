"""Operator times as every source returns them, and the errors it may raise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from fleetplan.perfmodel.operators import ByteArray, FloatArray, Provenance

MAY_BE_ZERO: Final = frozenset(
    {
        *("prefix_tokens", "context_tokens", "window", "stride", "low_latency"),
        *("ratio", "top_k", "index_heads", "index_head_dim"),
    }
)
"""Dimensions of operators that still work if they are 0."""


class UnsupportedDtype(Exception):  # noqa: N818  (a finding about a part, which the caller turns into a rejection)
    """An accelerator has no matrix units for a data type.

    Attributes
    ----------
    accelerator, dtype : str
        The part, and the data type that it lacks.
    """

    def __init__(self, accelerator: str, dtype: str) -> None:
        super().__init__(f"{accelerator} has no matrix units for {dtype}")
        self.accelerator = accelerator
        self.dtype = dtype


@dataclass(frozen=True, slots=True)
class OperatorTimes:
    """Times of one operator for an array of configurations.

    Attributes
    ----------
    latency_ms : FloatArray
        Time of one execution on one accelerator, shape (n_configs,); infinite if it cannot run (a group that
        leaves the scale-up domain of a part without a network). [ms]
    provenance : ByteArray
        A `Provenance` value each, shape (n_configs,).
    """

    latency_ms: FloatArray
    provenance: ByteArray

    @classmethod
    def labelled(cls, latency_ms: FloatArray, provenance: Provenance) -> OperatorTimes:
        """Return the times that all have one provenance."""
        return cls(latency_ms, np.full(latency_ms.shape, provenance, dtype=np.uint8))
