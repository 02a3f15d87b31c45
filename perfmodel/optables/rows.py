"""Measured operator times in long format: one row a measurement, one column a dimension."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from fleetplan.perfmodel.operators import (
    AXES,
    CURVES,
    DIMENSIONS,
    ByteArray,
    FloatArray,
    IntArray,
    OperatorKind,
    Provenance,
)
from fleetplan.perfmodel.optables.unique import all_distinct, unique_rows


def table_dimensions(kind: OperatorKind) -> tuple[str, ...]:
    """Return the names of the dimensions of a row of a table."""
    return (CURVES[kind],) if kind in CURVES else (*site_dimensions(kind), *AXES[kind])


@cache
def site_dimensions(kind: OperatorKind) -> tuple[str, ...]:
    """Return the dimensions that stay fixed during a sweep: together they are a site of the table.

    Measurements have no prefix and use neighbouring accelerators, so these are not site dimensions.
    """
    fixed = {*AXES[kind], "prefix_tokens", "stride"}
    return tuple(name for name in DIMENSIONS[kind] if name not in fixed)


@dataclass(frozen=True, slots=True)
class MeasuredRows:
    """Measurements of one operator kind and data type.

    Attributes
    ----------
    kind : OperatorKind
        Decides the columns: the site dimensions and the axes.
    dtype : str
        A key of `BYTES_PER_ELEMENT`.
    dims : dict[str, IntArray]
        One array of shape (n_rows,) per column; no two rows are equal in all of them.
    latency_ms : FloatArray
        Shape (n_rows,). [ms]
    provenance : ByteArray
        MEASURED, or INTERPOLATED where the row was borrowed from another framework; shape (n_rows,).
    """

    kind: OperatorKind
    dtype: str
    dims: dict[str, IntArray]
    latency_ms: FloatArray
    provenance: ByteArray

    @property
    def n_rows(self) -> int:
        """Number of measurements."""
        return int(self.latency_ms.size)

    def select(self, keep: NDArray[np.bool_]) -> MeasuredRows:
        """Return the rows where `keep` is true."""
        dims = {name: column[keep] for name, column in self.dims.items()}
        return MeasuredRows(self.kind, self.dtype, dims, self.latency_ms[keep], self.provenance[keep])

    def borrowed(self) -> MeasuredRows:
        """Return the same rows, labelled as taken from another framework."""
        label = np.maximum(self.provenance, np.uint8(Provenance.INTERPOLATED))
        return MeasuredRows(self.kind, self.dtype, self.dims, self.latency_ms, label)


def measured_rows(
    kind: OperatorKind, dtype: str, dims: dict[str, IntArray], latency_ms: FloatArray
) -> MeasuredRows:
    """Make measured rows, keeping the fastest of those with the same dimensions.

    The fastest, because equal dimensions are kernels that the framework may choose between.
    """
    label = np.full(latency_ms.shape, Provenance.MEASURED, dtype=np.uint8)
    return fastest([MeasuredRows(kind, dtype, dims, latency_ms, label)])


def fastest(tables: Sequence[MeasuredRows]) -> MeasuredRows:
    """Join tables of one kind and data type; of rows with equal dimensions the fastest stays."""
    joined = tables[0] if len(tables) == 1 else _concatenate(tables)
    # Several tables hardly ever have no dimensions in common, and are numbered in any case.
    if len(tables) == 1 and all_distinct(joined.dims):
        return joined
    distinct = unique_rows(joined.dims)
    n_distinct = next(iter(distinct.dims.values())).size
    latency_ms = np.full(n_distinct, np.inf)
    np.minimum.at(latency_ms, distinct.codes, joined.latency_ms)
    label = np.full(n_distinct, Provenance.ROOFLINE, dtype=np.uint8)
    np.minimum.at(label, distinct.codes, joined.provenance)
    return MeasuredRows(joined.kind, joined.dtype, distinct.dims, latency_ms, label)


def with_missing_sites(first: MeasuredRows, second: MeasuredRows) -> MeasuredRows:
    """Join two tables: all of `first`, and of `second` the sites that `first` does not have at all.

    Whole sites, because a sweep of two sources has steps at their border.
    """
    if first.kind in CURVES:
        return first
    sites = site_dimensions(first.kind)
    distinct = unique_rows({name: np.concatenate([first.dims[name], second.dims[name]]) for name in sites})
    known = np.zeros(next(iter(distinct.dims.values())).size, dtype=np.bool_)
    known[distinct.codes[: first.n_rows]] = True
    return _concatenate([first, second.select(~known[distinct.codes[first.n_rows :]])])


def _concatenate(tables: Sequence[MeasuredRows]) -> MeasuredRows:
    first = tables[0]
    if any((table.kind, table.dtype) != (first.kind, first.dtype) for table in tables):
        raise ValueError("tables of different operators cannot be joined")
    dims = {name: np.concatenate([table.dims[name] for table in tables]) for name in first.dims}
    latency_ms = np.concatenate([table.latency_ms for table in tables])
    return MeasuredRows(
        first.kind, first.dtype, dims, latency_ms, np.concatenate([table.provenance for table in tables])
    )
