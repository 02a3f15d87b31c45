"""Compare two operator tables at the points of the first."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from fleetplan.fleet.inventory import Accelerator
from fleetplan.perfmodel.operators import CURVES, FloatArray, OperatorKind, Provenance
from fleetplan.perfmodel.optables import MeasuredRows
from fleetplan.perfmodel.optables.interpolation.curves import curve_of
from fleetplan.perfmodel.optables.interpolation.lookup import lookup_table


@dataclass(frozen=True, slots=True)
class Difference:
    """Two tables of one operator and data type.

    Attributes
    ----------
    kind : OperatorKind
        The operator.
    dtype : str
        The data type.
    n_points : int
        Measurements of the first table.
    n_compared : int
        Points that the second table also measured, or that it interpolates.
    quantiles : tuple[float, float, float]
        Ratio of the second to the first: 10th percentile, median, 90th percentile; NaN without comparable
        points.
    worst : tuple[tuple[str, float], ...]
        The points that differ most, with their ratio.
    """

    kind: OperatorKind
    dtype: str
    n_points: int
    n_compared: int
    quantiles: tuple[float, float, float]
    worst: tuple[tuple[str, float], ...]


def differences(
    first: list[MeasuredRows], second: list[MeasuredRows], accelerator: Accelerator, n_worst: int = 3
) -> Iterator[Difference]:
    """Compare tables by operator and data type.

    Parameters
    ----------
    first, second : list[MeasuredRows]
        One per operator and data type.
    accelerator : Accelerator
        Hardware of the roofline that interpolates the second.
    n_worst : int
        Points to name.
    """
    others = {(rows.kind, rows.dtype): rows for rows in second}
    for rows in first:
        other = others.get((rows.kind, rows.dtype))
        nothing = (float("nan"),) * 3
        if other is None:
            yield Difference(rows.kind, rows.dtype, rows.n_rows, 0, nothing, ())
            continue
        latency_ms, provenance = _at(rows, other, accelerator)
        near = provenance <= Provenance.INTERPOLATED
        ratios = latency_ms[near] / rows.latency_ms[near]
        if not ratios.size:
            yield Difference(rows.kind, rows.dtype, rows.n_rows, 0, nothing, ())
            continue
        low, middle, high = (float(each) for each in np.quantile(ratios, (0.1, 0.5, 0.9)))
        order = np.argsort(-np.abs(np.log(ratios)))[:n_worst]
        places = np.flatnonzero(near)[order]
        worst = tuple(
            (_label(rows, int(place)), float(ratio))
            for place, ratio in zip(places, ratios[order], strict=True)
        )
        yield Difference(rows.kind, rows.dtype, rows.n_rows, int(near.sum()), (low, middle, high), worst)


def _at(rows: MeasuredRows, other: MeasuredRows, accelerator: Accelerator) -> tuple[FloatArray, np.ndarray]:
    """Return the times of `other` at the points of `rows`, and how they are known."""
    if rows.kind in CURVES:
        found = curve_of(other).times(rows.dims[CURVES[rows.kind]])
    else:
        found = lookup_table(accelerator, other).times(rows.dims)
    return found.latency_ms, found.provenance


def _label(rows: MeasuredRows, place: int) -> str:
    return " ".join(f"{name}={int(values[place])}" for name, values in rows.dims.items())
