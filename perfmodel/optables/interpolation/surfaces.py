"""Sweeps over one or two axes at many sites, and the interpolation between their nodes.

Two properties hold for every surface and every interpolation between its nodes:

* It never falls along an axis. Measurements do fall (kernels are chosen by size, and there is noise), so a
  surface is projected when it is built: by least squares of the logarithm among those that never fall. A
  running maximum would do too, but one slow outlier would then raise all that follows (on H200 GEMM tables:
  a tenth of the nodes by over 20 %; least squares: 8 %).
* It has no holes. Between measured nodes a hole is filled by interpolation, beyond them by holding the ratio
  to the speed of light.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from fleetplan.perfmodel.operators import ByteArray, FloatArray, IntArray, Provenance

NOISE_RATIO: Final = 0.033
"""Spread of repeated measurements of one configuration within a month (90th percentile of published pairs). A
node that the projection moved by more no longer counts as measured."""

_ROUNDING: Final = 1e-9
"""Differences of logarithms below this are rounding."""

_AT_ONCE: Final = 65_536
"""So many means of intervals are computed in less time at once than for one start after the other."""

_MEASURED: Final = np.uint8(Provenance.MEASURED)
_INTERPOLATED: Final = np.uint8(Provenance.INTERPOLATED)
_EXTRAPOLATED: Final = np.uint8(Provenance.EXTRAPOLATED)


@dataclass(frozen=True, slots=True)
class Axis:
    """The nodes of an axis, and the space in which times are straight along it.

    Attributes
    ----------
    nodes : FloatArray
        Strictly growing, shape (n_nodes,).
    power : float
        Times are straight in ``value ** power``.
    """

    nodes: FloatArray
    power: float

    def coordinate(self, values: FloatArray) -> FloatArray:
        """Map values of the dimension into the space where times are straight."""
        return values if self.power == 1 else np.power(values, self.power)


@dataclass(frozen=True, slots=True)
class Surfaces:
    """Times at the nodes of a grid, for many sites.

    Attributes
    ----------
    axes : tuple[Axis, Axis]
        A sweep over one dimension has a first axis with a single node.
    latency_ms : FloatArray
        Shape (n_sites, n_first, n_second). [ms]
    provenance : ByteArray
        Same shape.
    """

    axes: tuple[Axis, Axis]
    latency_ms: FloatArray
    provenance: ByteArray


class SiteSurfaces:
    """Surfaces of the sites of a table, each built on demand: plans need a tenth of them.

    Attributes
    ----------
    axes : tuple[Axis, Axis]
        Sites of all surfaces.
    """

    def __init__(self, axes: tuple[Axis, Axis], count: int, build: Callable[[IntArray], Surfaces]) -> None:
        self.axes = axes
        self._build = build
        self._is_built = np.zeros(count, dtype=np.bool_)
        shape = (count, *(axis.nodes.size for axis in axes))
        self._grids = Surfaces(axes, np.zeros(shape), np.zeros(shape, dtype=np.uint8))

    def holding(self, rows: IntArray) -> Surfaces:
        """Return the grids of all sites, of which those at `rows` have been built."""
        new = rows[~self._is_built[rows]]
        if new.size:
            new = np.unique(new)
            made = self._build(new)
            # Another thread may do the same, with the same result.
            self._grids.latency_ms[new] = made.latency_ms
            self._grids.provenance[new] = made.provenance
            self._is_built[new] = True
        return self._grids

    def part(self, keep: NDArray[np.bool_]) -> SiteSurfaces:
        """Return the surfaces of the sites where `keep` is true."""
        kept = np.flatnonzero(keep)

        def build(rows: IntArray) -> Surfaces:
            whole = self.holding(kept[rows])
            return Surfaces(self.axes, whole.latency_ms[kept[rows]], whole.provenance[kept[rows]])

        return SiteSurfaces(self.axes, kept.size, build)


def build_surfaces(
    axes: tuple[Axis, Axis], latency_ms: FloatArray, provenance: ByteArray, light_ms: FloatArray
) -> Surfaces:
    """Fill the holes of measured grids, and make them grow along both axes.

    Parameters
    ----------
    axes : tuple[Axis, Axis]
        Nodes of the grid.
    latency_ms : FloatArray
        Measurements, NaN if missing, shape (n_sites, n_first, n_second). [ms]
    provenance : ByteArray
        Provenance of the measurements, same shape; undefined in the holes.
    light_ms : FloatArray
        Speed of light at every node, same shape. [ms]

    Returns
    -------
    Surfaces
        Without holes, growing along both axes.
    """
    # Once more for what has no measurement in its own row and column, from what the first pass filled.
    for _ in range(2):
        latency_ms, provenance = _filled(axes, latency_ms, provenance, light_ms)
    return grown(axes, latency_ms, provenance)


def grown(axes: tuple[Axis, Axis], latency_ms: FloatArray, provenance: ByteArray) -> Surfaces:
    """Project surfaces without holes onto those that never fall along an axis."""
    logarithm = np.log(latency_ms)
    fitted = logarithm
    for position in (1, 2):
        fitted = np.moveaxis(_isotonic(np.moveaxis(fitted, position, -1)), -1, position)
    # Correcting one axis may violate the other slightly; the middle of both bounds violates neither.
    from_below, from_above = fitted, fitted
    for position in (1, 2):
        from_below = np.maximum.accumulate(from_below, axis=position)
        from_above = np.flip(np.minimum.accumulate(np.flip(from_above, position), axis=position), position)
    projected = (from_below + from_above) / 2
    moved = np.abs(projected - logarithm) > np.log1p(NOISE_RATIO)
    # Rounding in the logarithm must not change what was not moved, nor make it fall.
    times = np.where(np.abs(projected - logarithm) < _ROUNDING, latency_ms, np.exp(projected))
    for position in (1, 2):
        times = np.maximum.accumulate(times, axis=position)
    label = np.where(moved, np.maximum(provenance, _INTERPOLATED), provenance)
    # In the order of memory in which points are read.
    return Surfaces(axes, np.ascontiguousarray(times), np.ascontiguousarray(label))


def _isotonic(values: FloatArray) -> FloatArray:
    """Return the least-squares fit that never falls along the last axis, by the max-min formula."""
    n_nodes = values.shape[-1]
    fitted = values.reshape(-1, n_nodes).copy()
    falls = (np.diff(fitted, axis=-1) < 0).any(axis=-1)
    lines = fitted[falls]
    if not len(lines):
        return values
    total = np.concatenate([np.zeros((len(lines), 1)), np.cumsum(lines, axis=-1)], axis=-1)
    largest = _of_few(total) if lines.size * n_nodes <= _AT_ONCE else _of_many(total)
    fitted[falls] = largest
    return fitted.reshape(values.shape)


def _of_few(total: FloatArray) -> FloatArray:
    """Compute the max-min formula from sums of few lines, all intervals at once."""
    n_nodes = total.shape[-1] - 1
    start, end = np.arange(n_nodes)[:, None], np.arange(n_nodes)
    is_interval = end >= start
    counts = np.where(is_interval, end - start + 1.0, 1.0)
    means = (total[:, None, 1:] - total[:, :-1, None]) / counts
    smallest = np.minimum.accumulate(means[..., ::-1], axis=-1)[..., ::-1]
    largest: FloatArray = np.where(is_interval, smallest, -np.inf).max(axis=1)
    return largest


def _of_many(total: FloatArray) -> FloatArray:
    """Compute the same from sums of many lines, one start of the intervals after the other."""
    n_nodes = total.shape[-1] - 1
    largest = np.full((len(total), n_nodes), -np.inf)
    counts = np.arange(1.0, n_nodes + 1)
    for start in range(n_nodes):
        means = (total[:, start + 1 :] - total[:, start : start + 1]) / counts[: n_nodes - start]
        smallest = np.minimum.accumulate(means[:, ::-1], axis=-1)[:, ::-1]
        np.maximum(largest[:, start:], smallest, out=largest[:, start:])
    return largest


@dataclass(frozen=True, slots=True)
class _Filling:
    """Estimates along one axis for the holes, each array of the shape of the grids.

    Attributes
    ----------
    latency_ms, provenance
        Time and label; NaN on a line without any measurement.
    inside : NDArray[np.bool_]
        Whether there are measurements on both sides.
    """

    latency_ms: FloatArray
    provenance: ByteArray
    inside: NDArray[np.bool_]


def _filled(
    axes: tuple[Axis, Axis], latency_ms: FloatArray, provenance: ByteArray, light_ms: FloatArray
) -> tuple[FloatArray, ByteArray]:
    """Fill holes between measurements from both axes, those beyond them along the first that can."""
    holes = np.isnan(latency_ms)
    if not holes.any():
        return latency_ms, provenance
    first, second = (
        _along(axes[position - 1], position, latency_ms, provenance, light_ms) for position in (1, 2)
    )
    both = (first.latency_ms + second.latency_ms) / 2
    other = np.where(np.isnan(first.latency_ms), second.latency_ms, first.latency_ms)
    cases = [first.inside & second.inside, first.inside, second.inside]
    filled = np.select(cases, [both, first.latency_ms, second.latency_ms], other)
    label = np.select(
        cases,
        [np.maximum(first.provenance, second.provenance), first.provenance, second.provenance],
        np.where(np.isnan(first.latency_ms), second.provenance, first.provenance),
    )
    return np.where(holes, filled, latency_ms), np.where(holes, label, provenance).astype(np.uint8)


def _along(
    axis: Axis, position: int, latency_ms: FloatArray, provenance: ByteArray, light_ms: FloatArray
) -> _Filling:
    """Interpolate along one axis; beyond the measurements, keep the ratio to the speed of light."""
    times, light, labels = (np.moveaxis(grid, position, -1) for grid in (latency_ms, light_ms, provenance))
    known = ~np.isnan(times)
    n_nodes = times.shape[-1]
    index = np.broadcast_to(np.arange(n_nodes), times.shape)
    before = np.maximum.accumulate(np.where(known, index, -1), axis=-1)
    after = np.flip(np.minimum.accumulate(np.flip(np.where(known, index, n_nodes), -1), axis=-1), -1)
    below, above = np.maximum(before, 0), np.minimum(after, n_nodes - 1)
    inside = (before >= 0) & (after < n_nodes)
    nearest = np.where(before >= 0, below, above)
    coordinate = axis.coordinate(axis.nodes)
    width = coordinate[above] - coordinate[below]
    weight = (coordinate[index] - coordinate[below]) / np.where(width > 0, width, 1.0)
    between = (1 - weight) * np.take_along_axis(times, below, -1) + weight * np.take_along_axis(
        times, above, -1
    )
    held = np.take_along_axis(times / light, nearest, -1) * light
    source = np.maximum(np.take_along_axis(labels, below, -1), np.take_along_axis(labels, above, -1))
    label = np.where(
        inside,
        np.maximum(source, _INTERPOLATED),
        np.maximum(np.take_along_axis(labels, nearest, -1), _EXTRAPOLATED),
    )
    grids = (np.where(inside, between, held), label.astype(np.uint8), inside)
    return _Filling(*(np.moveaxis(grid, -1, position) for grid in grids))


@dataclass(frozen=True, slots=True)
class Position:
    """Positions of values on an axis, shape (n,) each."""

    lower: IntArray
    weight: FloatArray
    clipped: FloatArray
    outside: NDArray[np.bool_]


def locate(axis: Axis, values: FloatArray) -> Position:
    """Find the nodes around each value; one outside the nodes is moved to the nearest."""
    nodes = axis.nodes
    clipped = np.minimum(np.maximum(values, nodes[0]), nodes[-1])
    outside = clipped != values
    if nodes.size == 1:
        return Position(np.zeros(values.shape, dtype=np.int64), np.zeros(values.shape), clipped, outside)
    # Between the inner nodes: what lies on an outer one is in the outer interval.
    lower = nodes[1:-1].searchsorted(clipped, side="right")
    coordinate = axis.coordinate(nodes)
    start = coordinate.take(lower)
    weight = (axis.coordinate(clipped) - start) / (coordinate.take(lower + 1) - start)
    return Position(lower, weight, clipped, outside)


def evaluate(
    surfaces: Surfaces, site: IntArray, first: Position, second: Position
) -> tuple[FloatArray, ByteArray]:
    """Interpolate between the four nodes around each point.

    Parameters
    ----------
    surfaces : Surfaces
        The grids.
    site : IntArray
        Grid, shape (n,).
    first, second : Position
        Position on its axes, shape (n,) each.

    Returns
    -------
    tuple[FloatArray, ByteArray]
        Time at the (clipped) point [ms] and provenance, shape (n,) each.
    """
    n_first, n_second = (axis.nodes.size for axis in surfaces.axes)
    times, labels = surfaces.latency_ms.reshape(-1), surfaces.provenance.reshape(-1)
    lower = (site * n_first + first.lower) * n_second + second.lower
    rows = [(1.0 - first.weight, lower)]
    if n_first > 1:
        rows.append((first.weight, lower + n_second))
    columns = ((1.0 - second.weight, 0), (second.weight, min(1, n_second - 1)))
    latency_ms = np.zeros(site.shape)
    label = np.zeros(site.shape, dtype=np.uint8)
    for weight_first, row in rows:
        for weight_second, step in columns:
            weight = weight_first * weight_second
            corner = row + step
            latency_ms += weight * times.take(corner)
            # Nodes without weight count as measured, the most reliable label.
            label = np.maximum(label, labels.take(corner) * (weight > 0))
    between = _is_inside(first.weight) | _is_inside(second.weight)
    label = np.where(between, np.maximum(label, _INTERPOLATED), label)
    return latency_ms, np.where(first.outside | second.outside, _EXTRAPOLATED, label)


def _is_inside(weight: FloatArray) -> NDArray[np.bool_]:
    """Whether points lie between two nodes of an axis rather than on one."""
    inside: NDArray[np.bool_] = (weight > 0) & (weight < 1)
    return inside
