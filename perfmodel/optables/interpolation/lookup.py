"""Look-up of times in the table of one operator kind and data type.

A query names a site (the dimensions that a sweep held fixed) and a point on the sweep's axes. A site that
was measured answers from its own surface. Any other gets a surface made for it: the utilisation (speed of
light over time) of near sites, averaged by logarithm, at its own speed of light.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from fleetplan.fleet.inventory import Accelerator
from fleetplan.perfmodel.operators import (
    AXES,
    COLLECTIVE_KINDS,
    EXPERT_KINDS,
    ByteArray,
    FloatArray,
    IntArray,
    OperatorKind,
    Provenance,
)
from fleetplan.perfmodel.optables.interpolation.light import light_at, light_grid
from fleetplan.perfmodel.optables.interpolation.measured_grid import measured_grid
from fleetplan.perfmodel.optables.interpolation.neighbours import (
    DonorSites,
    grid_lenders,
    line_lenders,
    nearest_lenders,
    site_features,
    skewed_feature,
)
from fleetplan.perfmodel.optables.interpolation.surfaces import (
    Position,
    SiteSurfaces,
    Surfaces,
    build_surfaces,
    evaluate,
    grown,
    locate,
)
from fleetplan.perfmodel.optables.measured.tables import BLACKWELL_SYSTEMS
from fleetplan.perfmodel.optables.rows import MeasuredRows, site_dimensions
from fleetplan.perfmodel.optables.times import OperatorTimes
from fleetplan.perfmodel.optables.unique import unique_rows

BoolArray = NDArray[np.bool_]

FOREIGN_DISTANCE: Final = 2.0
"""Extra distance of a site of another framework. [doublings] Without it, left-out MoE sites of vLLM and
TensorRT-LLM on H200 are predicted up to twice as badly."""


_WIDTHS: Final = ("hidden", "intermediate")
"""Dimensions of experts that zeros can fill up to a larger one."""

_SKEWED_KINDS: Final = frozenset({OperatorKind.MOE, OperatorKind.UNGATED_MOE})
"""Experts whose groups were timed under skewed tokens."""

_KEPT_SURFACES: Final = 4096
"""Lent surfaces that a table keeps, a few kB each; all are dropped when there would be more."""


_FEW_SITES: Final = 512
"""So many sites are found one by one in less time than it takes to find the distinct ones of them."""

_DIFFERENCES: Final = frozenset({OperatorKind.BLOCK_SPARSE_PREFILL, OperatorKind.BLOCK_SPARSE_DECODE})
"""Kinds whose rows are differences of two measured times: no row is measured directly."""


class _LentSurfaces:
    """Cached surfaces of unmeasured sites: a model queries its few shapes often."""

    def __init__(self) -> None:
        self._known: dict[bytes, tuple[FloatArray, ByteArray]] = {}

    def surfaces(
        self, queried: IntArray, make: Callable[[IntArray], Surfaces]
    ) -> tuple[FloatArray, ByteArray]:
        """Return times and labels of sites, shape (n_queries, n_dims); `make` is called for new ones only."""
        keys = _keys(queried)
        known = self._known
        new = [position for position, key in enumerate(keys) if key not in known]
        if new:
            made = make(queried[new])
            if len(known) + len(new) > _KEPT_SURFACES:
                # Not emptied: another thread may be reading it.
                known = {key: known[key] for key in keys if key in known}
            for row, position in enumerate(new):
                known[keys[position]] = (made.latency_ms[row], made.provenance[row])
            self._known = known
        found = [known[key] for key in keys]
        return np.array([each[0] for each in found]), np.array([each[1] for each in found])


@dataclass(frozen=True, slots=True)
class LookupTable:
    """Measured sites of one kind and data type on one accelerator.

    Attributes
    ----------
    accelerator : Accelerator
        Hardware of the roofline that scales borrowed times.
    kind : OperatorKind
        Operator.
    dtype : str
        Data type.
    sites : IntArray
        One row per site, in the order of `site_dimensions`, shape (n_sites, n_dims).
    surfaces : SiteSurfaces
        One grid per site.
    is_own : BoolArray
        Whether a site was measured under the framework itself, shape (n_sites,).
    """

    accelerator: Accelerator
    kind: OperatorKind
    dtype: str
    sites: IntArray
    surfaces: SiteSurfaces
    is_own: BoolArray
    _kept: _LentSurfaces = field(default_factory=_LentSurfaces, init=False, repr=False, compare=False)
    _rows: dict[bytes, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        rows = {key: row for row, key in enumerate(_keys(self.sites))}
        object.__setattr__(self, "_rows", rows)

    def times(self, dims: dict[str, IntArray]) -> OperatorTimes:
        """Return the time and provenance of the operator, shape (n,) each."""
        sites = np.stack([dims[name] for name in site_dimensions(self.kind)], axis=1)
        axes = AXES[self.kind]
        second = dims[axes[-1]].astype(np.float64)
        first = dims[axes[0]].astype(np.float64) if len(axes) == 2 else np.ones(second.shape)
        return self.times_at(sites, first, second)

    def times_at(self, sites: IntArray, first: FloatArray, second: FloatArray) -> OperatorTimes:
        """Return the time and provenance at points that need not be whole numbers.

        Parameters
        ----------
        sites : IntArray
            Shape (n, n_dims).
        first, second : FloatArray
            Values on the axes, shape (n,) each; `first` is unused with a single axis.
        """
        surfaces, codes = self._surfaces_of(sites)
        places = (locate(surfaces.axes[0], first), locate(surfaces.axes[1], second))
        latency_ms, provenance = evaluate(surfaces, codes, *places)
        beyond = places[0].outside | places[1].outside
        if beyond.any():
            held = self._light_ratio(
                sites[beyond],
                (first[beyond], second[beyond]),
                tuple(_part(place, beyond) for place in places),
            )
            latency_ms[beyond] *= held
        return OperatorTimes(latency_ms, provenance)

    def _surfaces_of(self, sites: IntArray) -> tuple[Surfaces, IntArray]:
        """Return the surfaces, and which of them is that of each site, shape (n,)."""
        if len(sites) <= _FEW_SITES:
            position = self._position(sites)
            if (position >= 0).all():
                return self.surfaces.holding(position), position
        queried, codes = _distinct(sites)
        position = self._position(queried)
        if (position >= 0).all():
            return self.surfaces.holding(position), position.take(codes)
        return self._surfaces_at(queried, position), codes

    def is_measured(self, sites: IntArray) -> BoolArray:
        """Return which of the sites, shape (n, n_dims), were measured."""
        measured: BoolArray
        if len(sites) <= _FEW_SITES:
            measured = self._position(sites) >= 0
            return measured
        queried, codes = _distinct(sites)
        measured = (self._position(queried) >= 0).take(codes)
        return measured

    def surfaces_of(self, queried: IntArray) -> Surfaces:
        """Return the surfaces of sites, measured or lent, shape (n_queries, n_first, n_second)."""
        return self._surfaces_at(queried, self._position(queried))

    def _surfaces_at(self, queried: IntArray, position: IntArray) -> Surfaces:
        """Return the surfaces of sites by row of the table, or -1 for none."""
        lent = position < 0
        measured = self.surfaces.holding(position[~lent])
        latency_ms = measured.latency_ms[np.maximum(position, 0)]
        provenance = measured.provenance[np.maximum(position, 0)]
        if lent.any():
            latency_ms[lent], provenance[lent] = self._kept.surfaces(queried[lent], self._lent)
        return Surfaces(self.surfaces.axes, latency_ms, provenance)

    def _position(self, queried: IntArray) -> IntArray:
        """Return the row of each queried site in the table, -1 if not measured, shape (n_queries,)."""
        rows = self._rows
        return np.array([rows.get(key, -1) for key in _keys(queried)], dtype=np.int64)

    def _lent(self, queried: IntArray) -> Surfaces:
        axes = self.surfaces.axes
        lenders = self._lenders(queried)
        measured = self.surfaces.holding(lenders.sites.ravel())
        log_slowness = np.zeros((len(queried), axes[0].nodes.size, axes[1].nodes.size))
        label = np.broadcast_to(lenders.provenance[:, None, None], log_slowness.shape)
        for lender, weight in zip(
            lenders.sites.T, lenders.weights[..., None, None].swapaxes(0, 1), strict=True
        ):
            light_ms = light_grid(self.accelerator, self.kind, self.dtype, self.sites[lender], axes)
            log_slowness += weight * np.log(measured.latency_ms[lender] / light_ms)
            label = np.where(weight > 0, np.maximum(label, measured.provenance[lender]), label)
        light_ms = light_grid(self.accelerator, self.kind, self.dtype, queried, axes)
        borrowed_ms = np.exp(log_slowness) * light_ms
        if self.kind in EXPERT_KINDS:
            borrowed_ms = np.minimum(borrowed_ms, self._padded_ms(queried))
        return grown(axes, borrowed_ms, label)

    def _padded_ms(self, queried: IntArray) -> FloatArray:
        """Return the shortest time of wider, otherwise equal measured experts; infinite without any.

        Weights that are padded with zeros run in that time.
        """
        names = site_dimensions(self.kind)
        widths = np.array([name in _WIDTHS for name in names])
        shape = (len(queried), *(axis.nodes.size for axis in self.surfaces.axes))
        found: FloatArray = np.full(shape, np.inf)
        for row, query in enumerate(queried):
            wider = np.flatnonzero(np.where(widths, self.sites >= query, self.sites == query).all(axis=1))
            if wider.size:
                found[row] = self.surfaces.holding(wider).latency_ms[wider].min(axis=0)
        return found

    def _lenders(self, queried: IntArray) -> DonorSites:
        sites, queries = site_features(self.kind, self.sites), site_features(self.kind, queried)
        if self.kind is OperatorKind.GEMM:
            return grid_lenders(sites, queries)
        if self.kind in COLLECTIVE_KINDS:
            return line_lenders(sites[:, 0], queries[:, 0])
        if self.kind in _SKEWED_KINDS and self.accelerator.measured_system not in BLACKWELL_SYSTEMS:
            sites = np.hstack([sites, skewed_feature(self.sites)])
            queries = np.hstack([queries, skewed_feature(queried)])
        return nearest_lenders(sites, queries, np.where(self.is_own, 0.0, FOREIGN_DISTANCE))

    def _light_ratio(
        self, sites: IntArray, values: tuple[FloatArray, FloatArray], places: tuple[Position, ...]
    ) -> FloatArray:
        """Return the speed of light at a point beyond the grid over that at the grid's edge."""
        wanted = light_at(self.accelerator, self.kind, self.dtype, sites, values)
        edge = light_at(
            self.accelerator, self.kind, self.dtype, sites, (places[0].clipped, places[1].clipped)
        )
        return wanted / edge


def lookup_table(
    accelerator: Accelerator, rows: MeasuredRows, labels: ByteArray | None = None
) -> LookupTable:
    """Arrange a table for look-ups.

    Parameters
    ----------
    accelerator : Accelerator
        Hardware of the roofline that scales borrowed times.
    rows : MeasuredRows
        Their provenance tells the rows of the framework itself from those of others.
    labels : ByteArray, optional
        Provenance of the rows, if different from measured, shape (n_rows,).
    """
    grid = measured_grid(rows)
    known = rows.provenance if labels is None else labels
    if rows.kind in _DIFFERENCES:
        known = np.maximum(known, np.uint8(Provenance.INTERPOLATED))
    labelled = grid if known is rows.provenance else measured_grid(replace(rows, provenance=known))
    is_own = (grid.provenance == Provenance.MEASURED).any(axis=(1, 2), where=~np.isnan(grid.latency_ms))

    def build(sites: IntArray) -> Surfaces:
        light_ms = light_grid(accelerator, rows.kind, rows.dtype, grid.sites[sites], grid.axes)
        return build_surfaces(grid.axes, grid.latency_ms[sites], labelled.provenance[sites], light_ms)

    surfaces = SiteSurfaces(grid.axes, len(grid.sites), build)
    return LookupTable(accelerator, rows.kind, rows.dtype, grid.sites, surfaces, is_own)


def _part(place: Position, keep: BoolArray) -> Position:
    return Position(place.lower[keep], place.weight[keep], place.clipped[keep], place.outside[keep])


def _keys(sites: IntArray) -> list[bytes]:
    """Return the bytes of each site, shape (n_sites, n_dims)."""
    whole = np.ascontiguousarray(sites, dtype=np.int64)
    found: list[bytes] = whole.view(f"V{whole.itemsize * whole.shape[1]}").ravel().tolist()
    return found


def _distinct(sites: IntArray) -> tuple[IntArray, IntArray]:
    """Return the distinct sites, and the index of each."""
    # Columns in the order of memory: each is read several times.
    columns = np.ascontiguousarray(sites.T)
    found = unique_rows({str(column): values for column, values in enumerate(columns)})
    return np.stack(list(found.dims.values()), axis=1), found.codes
