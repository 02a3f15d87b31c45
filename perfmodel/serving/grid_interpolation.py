"""Linear interpolation of several tables with the same points, each place in a row of its own."""

from __future__ import annotations

import numpy as np

from fleetplan.perfmodel.operators import FloatArray, IntArray


def interpolated(
    at: FloatArray | IntArray, points: FloatArray | IntArray, rows: IntArray, *tables: FloatArray
) -> list[FloatArray]:
    """Interpolate a row of each table linearly at some places, shape (n,) each.

    Parameters
    ----------
    at : FloatArray or IntArray
        Places, shape (n,); beyond the grid, its last value applies.
    points : FloatArray or IntArray
        Points of the grid, increasing, shape (n_points,).
    rows : IntArray
        Row of each place, shape (n,).
    *tables : FloatArray
        Shape (n_rows, n_points) each.
    """
    if tables[0].shape[0] == 1:
        return [np.interp(at, points, table[0]) for table in tables]
    # Between the inner points: what lies beyond the outer ones is in the outer intervals.
    below = points[1:-1].searchsorted(at, side="right")
    start = points.take(below)
    share = (at - start) / (points.take(below + 1) - start)
    np.minimum(np.maximum(share, 0.0, out=share), 1.0, out=share)
    flat = rows * points.size + below
    next_flat = flat + 1
    found = []
    for table in tables:
        low, growth = table.take(flat), table.take(next_flat)
        growth -= low
        growth *= share
        growth += low
        found.append(growth)
    return found
