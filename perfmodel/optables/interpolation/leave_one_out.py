"""Errors of the tables between measurements: leave measurements out, and predict them.

Leaving a node out doubles the gap that the interpolation bridges, so the errors exceed those of a plan
between the nodes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from fleetplan.fleet.inventory import Accelerator
from fleetplan.perfmodel.operators import FloatArray, OperatorKind, Provenance
from fleetplan.perfmodel.optables.choice import TableLibrary
from fleetplan.perfmodel.optables.interpolation.light import light_grid
from fleetplan.perfmodel.optables.interpolation.lookup import LookupTable, lookup_table
from fleetplan.perfmodel.optables.interpolation.measured_grid import measured_grid
from fleetplan.perfmodel.optables.interpolation.surfaces import build_surfaces
from fleetplan.perfmodel.optables.rows import MeasuredRows, site_dimensions

_FOLDS: Final = 5


@dataclass(frozen=True, slots=True)
class ErrorQuantiles:
    """Relative errors of predictions of left-out measurements.

    Attributes
    ----------
    n_predictions : int
        Measurements that were left out.
    median_ratio, p90_ratio, p99_ratio : float
        Quantiles of ``|predicted / measured - 1|``.
    bias_ratio : float
        Median of ``predicted / measured - 1``.
    """

    n_predictions: int
    median_ratio: float
    p90_ratio: float
    p99_ratio: float
    bias_ratio: float


@dataclass(frozen=True, slots=True)
class LeaveOneOut:
    """Errors of one table, by what was left out."""

    nodes: ErrorQuantiles
    sites: ErrorQuantiles


def leave_one_out(
    library: TableLibrary,
    accelerator: Accelerator,
    framework: str,
    kind: OperatorKind,
    dtype: str,
    max_sites: int = 200,
) -> LeaveOneOut | None:
    """Return the errors of an operator's table; None without measurements.

    Parameters
    ----------
    library : TableLibrary
        Tables of the accelerator's measured system.
    accelerator : Accelerator
        Hardware of the roofline.
    framework, kind, dtype
        Table.
    max_sites : int
        Size of the random sample of single sites.
    """
    chosen = library.rows(kind, dtype, framework)
    if chosen is None:
        return None
    return LeaveOneOut(
        left_out_nodes(accelerator, chosen.rows), left_out_sites(accelerator, chosen.rows, max_sites)
    )


def left_out_nodes(accelerator: Accelerator, rows: MeasuredRows) -> ErrorQuantiles:
    """Leave out each node that has measurements around it, and predict it from the rest of its sweep.

    Parameters
    ----------
    accelerator : Accelerator
        Hardware of the roofline.
    rows : MeasuredRows
        The table.

    Returns
    -------
    ErrorQuantiles
        In five folds, of which none leaves two neighbouring nodes out.
    """
    grid = measured_grid(rows)
    light_ms = light_grid(accelerator, rows.kind, rows.dtype, grid.sites, grid.axes)
    first, second = np.indices(grid.latency_ms.shape[1:])
    errors = []
    for fold in range(_FOLDS):
        # Steps of 2 and 1 modulo 5: no two of a fold are neighbours along either axis.
        out = ((2 * first + second) % _FOLDS == fold)[None] & ~np.isnan(grid.latency_ms)
        kept = np.where(out, np.nan, grid.latency_ms)
        surfaces = build_surfaces(grid.axes, kept, grid.provenance, light_ms)
        between = out & (surfaces.provenance <= Provenance.INTERPOLATED)
        errors.append(surfaces.latency_ms[between] / grid.latency_ms[between] - 1.0)
    return _quantiles(np.concatenate(errors))


def left_out_sites(
    accelerator: Accelerator, rows: MeasuredRows, max_sites: int = 200, seed: int = 0
) -> ErrorQuantiles:
    """Leave out whole sites, and predict their sweeps from other sites.

    A GEMM loses all sites with one n, or with one k, so that the prediction bridges the whole gap in the
    grid, as it does for a shape between two measured sizes. Other kinds lose one site at a time.

    Parameters
    ----------
    accelerator, rows
        As in `left_out_nodes`.
    max_sites : int
        Size of the random sample of single sites.
    seed : int
        Errors of the sample.

    Returns
    -------
    ErrorQuantiles
        Sites at the border of the table, which would need extrapolation, are not counted.
    """
    table = lookup_table(accelerator, rows)
    truth = measured_grid(rows).latency_ms
    errors = []
    for out in _left_out(table, max_sites, seed):
        rest = replace(
            table, sites=table.sites[~out], surfaces=table.surfaces.part(~out), is_own=table.is_own[~out]
        )
        predicted = rest.surfaces_of(table.sites[out])
        between = ~np.isnan(truth[out]) & (predicted.provenance <= Provenance.INTERPOLATED)
        errors.append(predicted.latency_ms[between] / truth[out][between] - 1.0)
    return _quantiles(np.concatenate(errors))


def _left_out(table: LookupTable, max_sites: int, seed: int) -> Iterator[NDArray[np.bool_]]:
    if table.kind is OperatorKind.GEMM:
        for column in range(len(site_dimensions(table.kind))):
            for level in np.unique(table.sites[:, column])[1:-1]:
                yield table.sites[:, column] == level
        return
    n_sites = len(table.sites)
    sample = np.random.default_rng(seed).permutation(n_sites)[:max_sites]
    for site in sample:
        yield np.arange(n_sites) == site


def _quantiles(errors: FloatArray) -> ErrorQuantiles:
    if not errors.size:
        raise ValueError("nothing could be left out")
    size = np.abs(errors)
    median, p90, p99 = (float(value) for value in np.quantile(size, (0.5, 0.9, 0.99)))
    return ErrorQuantiles(int(errors.size), median, p90, p99, float(np.median(errors)))
