"""Importer of the measured tables of gated delta nets: the recurrence with its causal convolution.

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


def delta_net_tables(frame: pd.DataFrame) -> list[MeasuredRows]:
    """One table for prompts, one for generated tokens; points where one kernel is missing are left out."""
    tables = []
    for phase, kind in (("context", OperatorKind.DELTA_PREFILL), ("generation", OperatorKind.DELTA_DECODE)):
        columns = {"batch": "batch_size", **_COLUMNS}
        if kind is OperatorKind.DELTA_PREFILL:
            columns["new_tokens"] = "seq_len"
        part = frame[frame["phase"] == phase]
        keys = list(columns.values())
        is_convolution = part["kernel_source"].str.contains(_CONVOLUTION)
        # Neither kernel depends on the width of the model: of equal points the fastest stays.
        fastest = [part[rows].groupby(keys)["latency"].min() for rows in (is_convolution, ~is_convolution)]
        both = (fastest[0] + fastest[1]).dropna().reset_index()
        if both.empty:
            continue
        dims = {name: both[column].to_numpy(dtype=np.int64) for name, column in columns.items()}
        tables.append(measured_rows(kind, "bf16", dims, both["latency"].to_numpy(dtype=np.float64)))
    return tables
