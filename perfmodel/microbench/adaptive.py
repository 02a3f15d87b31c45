"""Choose the next points: gaps beside the measurements that their neighbours predict worst."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from fleetplan.fleet.inventory import Accelerator
from fleetplan.perfmodel.microbench.points import Measurement, Point
from fleetplan.perfmodel.microbench.sites import Extent, Site, site_of
from fleetplan.perfmodel.operators import AXES, CURVES, FloatArray, OperatorKind
from fleetplan.perfmodel.optables import MeasuredRows
from fleetplan.perfmodel.optables.interpolation.light import light_grid
from fleetplan.perfmodel.optables.interpolation.measured_grid import MeasuredGrid, measured_grid
from fleetplan.perfmodel.optables.interpolation.surfaces import build_surfaces
from fleetplan.perfmodel.optables.rows import measured_rows, site_dimensions

SMALLEST_GAP: Final = 1.5
"""Largest ratio of neighbours that need no point between them."""


@dataclass(frozen=True, slots=True)
class NodeError:
    """Error of the prediction of a measurement by its neighbours.

    Attributes
    ----------
    site : Site
        Its sweep.
    values : tuple[int, ...]
        Its place on the axes.
    ratio : float
        ``|predicted / measured - 1|`` with it left out.
    """

    site: Site
    values: tuple[int, ...]
    ratio: float


def rows_of(measurements: Iterable[Measurement]) -> list[MeasuredRows]:
    """Return the measurements as tables, one an operator and data type."""
    tables: dict[tuple[OperatorKind, str], list[Measurement]] = {}
    for each in measurements:
        tables.setdefault(each.point.table, []).append(each)
    found = []
    for (kind, dtype), parts in tables.items():
        names = [name for name, _ in parts[0].point.dims]
        dims = {name: np.array([each.point[name] for each in parts], dtype=np.int64) for name in names}
        latency_ms = np.array([each.latency_us for each in parts]) / 1e3
        found.append(measured_rows(kind, dtype, dims, latency_ms))
    return found


def node_errors(accelerator: Accelerator, rows: MeasuredRows) -> list[NodeError]:
    """Leave out every measurement that has others around it, and predict it from them; the worst first."""
    found = _curve_errors(rows) if rows.kind in CURVES else _grid_errors(accelerator, rows)
    return sorted(found, key=lambda each: -each.ratio)


def next_points(
    errors: Sequence[NodeError], measured: Iterable[Point], target_ratio: float, extent: Extent
) -> list[Point]:
    """Return points in the gaps beside the measurements whose error is above the target, the worst first."""
    known = set(measured)
    swept: dict[Site, set[tuple[int, ...]]] = {}
    for each in known:
        site = site_of(each)
        swept.setdefault(site, set()).add(tuple(each[axis] for axis in site.axes))
    wanted: dict[Point, None] = {}
    for error in errors:
        if error.ratio <= target_ratio:
            continue
        for values in _between(error, swept[error.site]):
            candidate = error.site.at(values)
            if candidate not in known and extent.holds(error.site, values):
                wanted[candidate] = None
    return list(wanted)


def _between(error: NodeError, swept: set[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Return the midpoints of the gaps on both sides of a measurement, along each axis."""
    found = []
    for axis, value in enumerate(error.values):
        line = sorted(
            each[axis]
            for each in swept
            if each[:axis] == error.values[:axis] and each[axis + 1 :] == error.values[axis + 1 :]
        )
        place = line.index(value)
        for low, high in zip(line[max(0, place - 1) : place + 1], line[place : place + 2], strict=False):
            if high > low * SMALLEST_GAP and high - low > 1:
                middle = min(high - 1, max(low + 1, round((low * high) ** 0.5)))
                found.append((*error.values[:axis], middle, *error.values[axis + 1 :]))
    return found


def _grid_errors(accelerator: Accelerator, rows: MeasuredRows) -> list[NodeError]:
    grid = measured_grid(rows)
    light_ms = light_grid(accelerator, rows.kind, rows.dtype, grid.sites, grid.axes)
    names, axes = site_dimensions(rows.kind), AXES[rows.kind]
    errors = []
    for site, first, second in np.argwhere(~np.isnan(grid.latency_ms)).tolist():
        if not _has_both_sides(grid, site, first, second):
            continue
        left = grid.latency_ms[site : site + 1].copy()
        left[0, first, second] = np.nan
        surfaces = build_surfaces(
            grid.axes, left, grid.provenance[site : site + 1], light_ms[site : site + 1]
        )
        ratio = abs(surfaces.latency_ms[0, first, second] / grid.latency_ms[site, first, second] - 1.0)
        place = (int(grid.axes[0].nodes[first]), int(grid.axes[1].nodes[second]))
        fixed = tuple(zip(names, grid.sites[site].tolist(), strict=True))
        errors.append(NodeError(Site(rows.kind, rows.dtype, fixed), place[-len(axes) :], float(ratio)))
    return errors


def _has_both_sides(grid: MeasuredGrid, site: int, first: int, second: int) -> bool:
    """Whether a node is between two others along an axis; border nodes have no prediction."""
    known = ~np.isnan(grid.latency_ms[site])
    along, across = known[first], known[:, second]
    return bool(
        (along[:second].any() and along[second + 1 :].any())
        or (across[:first].any() and across[first + 1 :].any())
    )


def _curve_errors(rows: MeasuredRows) -> list[NodeError]:
    axis = CURVES[rows.kind]
    order = np.argsort(rows.dims[axis])
    sizes: FloatArray = rows.dims[axis][order].astype(np.float64)
    times = rows.latency_ms[order]
    errors = []
    for place in range(1, sizes.size - 1):
        rest = np.arange(sizes.size) != place
        predicted = float(np.interp(sizes[place], sizes[rest], times[rest]))
        ratio = abs(predicted / float(times[place]) - 1.0)
        errors.append(NodeError(Site(rows.kind, rows.dtype), (int(sizes[place]),), ratio))
    return errors
