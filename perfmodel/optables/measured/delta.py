"""Importer of the measured tables of gated delta nets: the recurrence with its causal convolution.

Kimi delta attention has tables of the same columns. Some of its kernels for generated tokens hold the
convolution as well. Under vLLM 0.1.dev19262 the convolution of prompts was measured with 0.4 to 0.8 ms of
Python (says collection_meta.yaml beside the table of vLLM 0.27.0), so its prompts are left out.

Tables of Mamba-2 hold the convolution alone, not the scan, so they are not read: a scan is priced by the
roofline as a whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from fleetplan.perfmodel.operators import OperatorKind
from fleetplan.perfmodel.optables.rows import MeasuredRows, measured_rows

if TYPE_CHECKING:
    import pandas as pd

_COLUMNS: Final = {
    "key_heads": "num_k_heads",
    "value_heads": "num_v_heads",
    "key_head_dim": "head_k_dim",
    "value_head_dim": "head_v_dim",
    "taps": "d_conv",
}
_CONVOLUTION: Final = "conv1d"
_WITH_CONVOLUTION: Final = ("fused_kda_decode", "kda_fused_decode")
_SLOW_CONVOLUTION: Final = "0.1.dev19262"


def delta_net_tables(frame: pd.DataFrame) -> list[MeasuredRows]:
    """One table for prompts, one for generated tokens; points without one of the kernels are left out."""
    return _tables(frame, (OperatorKind.DELTA_PREFILL, OperatorKind.DELTA_DECODE))


def kimi_delta_tables(frame: pd.DataFrame) -> list[MeasuredRows]:
    """As `delta_net_tables`, of Kimi delta attention."""
    is_slow = frame["version"].str.startswith(_SLOW_CONVOLUTION) & (frame["phase"] == "context")
    return _tables(frame[~is_slow], (OperatorKind.KIMI_DELTA_PREFILL, OperatorKind.KIMI_DELTA_DECODE))


def _tables(frame: pd.DataFrame, kinds: tuple[OperatorKind, OperatorKind]) -> list[MeasuredRows]:
    tables = []
    for phase, kind in zip(("context", "generation"), kinds, strict=True):
        columns = {"batch": "batch_size", **_COLUMNS}
        if phase == "context":
            columns["new_tokens"] = "seq_len"
        part = frame[frame["phase"] == phase]
        keys = list(columns.values())
        is_convolution = part["kernel_source"].str.contains(_CONVOLUTION)
        is_both = part["kernel_source"].isin(_WITH_CONVOLUTION)
        # Neither kernel depends on the width of the model: of equal points the fastest stays.
        fastest = [
            part[rows].groupby(keys)["latency"].min()
            for rows in (is_convolution, ~is_convolution & ~is_both, is_both)
        ]
        both = (fastest[0] + fastest[1]).dropna().reset_index()
        found = [each for each in (both, fastest[2].reset_index()) if not each.empty]
        for each in found:
            dims = {name: each[column].to_numpy(dtype=np.int64) for name, column in columns.items()}
            tables.append(measured_rows(kind, "bf16", dims, each["latency"].to_numpy(dtype=np.float64)))
    return tables
