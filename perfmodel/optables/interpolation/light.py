"""Speed of light at the points of a table: what borrowed and extrapolated times are scaled by."""

from __future__ import annotations

import numpy as np

from fleetplan.fleet.inventory import Accelerator
from fleetplan.perfmodel.operators import (
    AXES,
    COLLECTIVE_KINDS,
    DIMENSIONS,
    FloatArray,
    IntArray,
    OperatorKind,
)
from fleetplan.perfmodel.optables.formulas.collectives import inside_ms
from fleetplan.perfmodel.optables.formulas.roofline import roofline_ms
from fleetplan.perfmodel.optables.interpolation.surfaces import Axis
from fleetplan.perfmodel.optables.rows import MeasuredRows, site_dimensions


def light_grid(
    accelerator: Accelerator, kind: OperatorKind, dtype: str, sites: IntArray, axes: tuple[Axis, Axis]
) -> FloatArray:
    """Return the speed of light at the nodes of some sites, shape (n_sites, n_first, n_second), in ms."""
    shape = (len(sites), axes[0].nodes.size, axes[1].nodes.size)
    site, first, second = np.unravel_index(np.arange(np.prod(shape)), shape)
    values = (axes[0].nodes[first], axes[1].nodes[second])
    return light_at(accelerator, kind, dtype, sites[site], values).reshape(shape)


def light_at(
    accelerator: Accelerator,
    kind: OperatorKind,
    dtype: str,
    sites: IntArray,
    values: tuple[FloatArray, FloatArray],
) -> FloatArray:
    """Return the roofline time at points of a table, shape (n,), in ms."""
    dims = {name: sites[:, column] for column, name in enumerate(site_dimensions(kind))}
    axes = AXES[kind]
    dims |= dict(zip(axes, [_whole(value) for value in values[-len(axes) :]], strict=True))
    return _light_ms(accelerator, kind, dtype, dims)


def light_of_rows(accelerator: Accelerator, rows: MeasuredRows) -> FloatArray:
    """Return the roofline time of every row of a table, shape (n_rows,), in ms."""
    return _light_ms(accelerator, rows.kind, rows.dtype, dict(rows.dims))


def _light_ms(
    accelerator: Accelerator, kind: OperatorKind, dtype: str, dims: dict[str, IntArray]
) -> FloatArray:
    if kind in COLLECTIVE_KINDS:
        # Measured on one host, for any scale-up domain of the catalogue.
        return inside_ms(accelerator, kind, dims["message_bytes"].astype(np.float64), dims["ranks"])
    if "prefix_tokens" in DIMENSIONS[kind]:
        dims["prefix_tokens"] = np.zeros(next(iter(dims.values())).shape, dtype=np.int64)
    return roofline_ms(accelerator, kind, dtype, dims)


def _whole(values: FloatArray) -> IntArray:
    return np.ceil(values).astype(np.int64)
