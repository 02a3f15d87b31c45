"""The columns that `predict` answers with, filled in piece by piece."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fleetplan.perfmodel.operators import FloatArray, IntArray, Provenance
from fleetplan.perfmodel.steps import provenance_shares, weakest_provenance

NUMBER_COLUMNS: Final = (
    "ttft_ms",
    "tpot_ms",
    "latency_ms",
    "requests_per_s",
    "output_tokens_per_s_per_accelerator",
    "memory_gib_per_accelerator",
)
OUTPUT_COLUMNS: Final = ("case_id", "status", "reason", *NUMBER_COLUMNS, "fits", "source", "bottleneck")


@dataclass(frozen=True, slots=True)
class ModeResult:
    """Columns of the answer for the rows of one mode; rates are those of one replica."""

    ttft_ms: FloatArray
    tpot_ms: FloatArray
    latency_ms: FloatArray
    requests_per_s: FloatArray
    output_tokens_per_s_per_accelerator: FloatArray
    memory_gib_per_accelerator: FloatArray
    fits: NDArray[np.bool_]
    by_provenance_ms: FloatArray
    bottleneck: IntArray
    names: tuple[str, ...]


class PredictionColumns:
    """The columns of the answer, filled group by group."""

    def __init__(self, reason: NDArray[np.object_]) -> None:
        n_rows = reason.size
        self.reason = reason.copy()
        self.numbers = {name: np.full(n_rows, np.nan) for name in NUMBER_COLUMNS}
        self.fits = np.zeros(n_rows, dtype=np.bool_)
        self.source: NDArray[np.object_] = np.full(n_rows, "", dtype=object)
        self.bottleneck: NDArray[np.object_] = np.full(n_rows, "", dtype=object)

    def reject(self, rows: IntArray, reason: str) -> None:
        """Return the reasons why rows cannot be predicted."""
        self.reason[rows] = reason

    def fill(self, rows: IntArray, result: ModeResult) -> None:
        """Take over the numbers of rows."""
        for name in NUMBER_COLUMNS:
            self.numbers[name][rows] = getattr(result, name)
        self.fits[rows] = result.fits
        labels = np.array([each.label for each in Provenance], dtype=object)
        self.source[rows] = labels[weakest_provenance(provenance_shares(result.by_provenance_ms))]
        self.bottleneck[rows] = np.array(result.names, dtype=object)[result.bottleneck]

    def frame(self, case_id: pd.Series) -> pd.DataFrame:
        """Return the answer, one row a case; rejected rows have no numbers."""
        rejected = self.reason != ""
        numbers = {name: np.where(rejected, np.nan, values) for name, values in self.numbers.items()}
        columns: dict[str, object] = {
            "case_id": case_id.to_numpy(),
            "status": np.where(rejected, "rejected", "ok"),
            "reason": self.reason,
            **numbers,
            "fits": self.fits & ~rejected,
            "source": np.where(rejected, "", self.source),
            "bottleneck": np.where(rejected, "", self.bottleneck),
        }
        return pd.DataFrame(columns, columns=list(OUTPUT_COLUMNS))
