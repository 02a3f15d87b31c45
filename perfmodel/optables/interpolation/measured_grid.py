"""Arrange the rows of a measured table on the grid of their sites and axes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from fleetplan.perfmodel.operators import AXES, ByteArray, FloatArray, IntArray
from fleetplan.perfmodel.optables.interpolation.surfaces import Axis
from fleetplan.perfmodel.optables.rows import MeasuredRows, site_dimensions
from fleetplan.perfmodel.optables.unique import rising_codes, unique_rows

_AXIS_POWER: Final[dict[str, float]] = {
    # A fixed time plus a time in proportion. Left-out nodes on H200 are predicted worse in logarithmic space
    # (all-reduce 8-11 % instead of 1-2 %), and no better in any space between.
    "m": 1.0,
    "batch": 1.0,
    "tokens": 1.0,
    "context_tokens": 1.0,
    # Causal attention turns from linear to quadratic in the range of the tables; of 1 to 2, 1.5 predicted
    # left-out nodes best.
    "new_tokens": 1.5,
    "message_bytes": 1.0,
}


@dataclass(frozen=True, slots=True)
class MeasuredGrid:
    """Rows of a table on a grid.

    Attributes
    ----------
    sites : IntArray
        Shape (n_sites, n_dims).
    axes : tuple[Axis, Axis]
        Nodes along which the sites were swept.
    latency_ms : FloatArray
        Times, NaN without a measurement, shape (n_sites, n_first, n_second). [ms]
    provenance : ByteArray
        Same shape.
    """

    sites: IntArray
    axes: tuple[Axis, Axis]
    latency_ms: FloatArray
    provenance: ByteArray


def measured_grid(rows: MeasuredRows) -> MeasuredGrid:
    """Arrange the rows of a table on a grid."""
    names = site_dimensions(rows.kind)
    distinct = unique_rows({name: rows.dims[name] for name in names})
    sites = np.stack([distinct.dims[name] for name in names], axis=1)
    columns = [rows.dims[name] for name in AXES[rows.kind]]
    if len(columns) == 1:
        columns = [np.ones(rows.n_rows, dtype=np.int64), columns[0]]
    powers = [_AXIS_POWER[name] for name in AXES[rows.kind]]
    (first, row), (second, column) = map(rising_codes, columns)
    axes = (Axis(first.astype(np.float64), powers[0]), Axis(second.astype(np.float64), powers[-1]))
    latency_ms = np.full((len(sites), first.size, second.size), np.nan)
    provenance = np.zeros(latency_ms.shape, dtype=np.uint8)
    latency_ms[distinct.codes, row, column] = rows.latency_ms
    provenance[distinct.codes, row, column] = rows.provenance
    return MeasuredGrid(sites, axes, latency_ms, provenance)
