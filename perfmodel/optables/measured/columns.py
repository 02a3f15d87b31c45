"""Columns of the packaged tables in our names and data types."""

from __future__ import annotations

from typing import Final

import numpy as np
import pandas as pd

from fleetplan.perfmodel.operators import AXES, IntArray, OperatorKind
from fleetplan.perfmodel.optables.rows import MeasuredRows, measured_rows, site_dimensions

_DTYPES: Final = {
    "bfloat16": "bf16",
    "fp8": "fp8",
    "fp8_block": "fp8_block",
    "int8_wo": "int8",
    "int4_wo": "int4",
    "nvfp4": "fp4",
    "w4a16_mxfp4": "mxfp4",
    "w4a8_mxfp4_mxfp8": "mxfp4",
}
"""Our data type of each of theirs. Other formats of theirs (SmoothQuant, INT4 with FP8 activations) have no
counterpart here and are left out."""


def split_by_dtype(
    frame: pd.DataFrame,
    kind: OperatorKind,
    dtype_column: str,
    columns: dict[str, str],
    is_counted: pd.Series | None = None,
) -> list[MeasuredRows]:
    """Return one table a data type of ours, with our column names; of the rows that count, or of all."""
    # Texts are numbered: each name is looked at once.
    codes, names = pd.factorize(frame[dtype_column])
    ours = [_DTYPES.get(str(name)) for name in names]
    # Columns are cut, not the frame: it has several that nobody asks for.
    dims = {name: whole_numbers(frame, columns[name]) for name in (*site_dimensions(kind), *AXES[kind])}
    latency_ms = frame["latency"].to_numpy(dtype=np.float64)
    tables = []
    for dtype in sorted({name for name in ours if name is not None}):
        # The last flag is that of a row without a name.
        is_part = np.array([name == dtype for name in ours] + [False])[codes]
        if is_counted is not None:
            is_part &= is_counted.to_numpy()
        if is_part.any():
            part = {name: column[is_part] for name, column in dims.items()}
            tables.append(measured_rows(kind, dtype, part, latency_ms[is_part]))
    return tables


def whole_numbers(frame: pd.DataFrame, column: str) -> IntArray:
    """Return a column of whole numbers."""
    return frame[column].to_numpy(dtype=np.int64)
