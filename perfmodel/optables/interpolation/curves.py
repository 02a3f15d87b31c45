"""Tables of operators whose time one dimension decides: memory traffic, and messages to a neighbour."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from fleetplan.fleet.inventory import Accelerator
from fleetplan.perfmodel.operators import CURVES, FloatArray, IntArray, OperatorKind, Provenance
from fleetplan.perfmodel.optables.formulas.collectives import send_recv_ms
from fleetplan.perfmodel.optables.rows import MeasuredRows
from fleetplan.perfmodel.optables.times import OperatorTimes


@dataclass(frozen=True, slots=True)
class Curve:
    """Measured times along one dimension.

    Attributes
    ----------
    sizes : FloatArray
        Rising, shape (n_measured,). [bytes]
    latency_ms : FloatArray
        Never falling, same shape: a smaller transfer can be padded to a larger one. [ms]
    """

    sizes: FloatArray
    latency_ms: FloatArray

    def times(self, sizes: IntArray) -> OperatorTimes:
        """Return the time and provenance at some sizes, shape (n,) each.

        Straight between measurements. Below the smallest its time holds; above the largest the time grows
        with the size.
        """
        asked = sizes.astype(np.float64)
        inside = np.interp(asked, self.sizes, self.latency_ms)
        beyond = np.maximum(1.0, asked / self.sizes[-1])
        label = np.where(
            np.isin(asked, self.sizes), np.uint8(Provenance.MEASURED), np.uint8(Provenance.INTERPOLATED)
        )
        outside = (asked < self.sizes[0]) | (asked > self.sizes[-1])
        label = np.where(outside, np.uint8(Provenance.EXTRAPOLATED), label)
        return OperatorTimes(inside * beyond, label)


def curve_of(rows: MeasuredRows) -> Curve:
    """Arrange the rows of a table along their dimension."""
    sizes = rows.dims[CURVES[rows.kind]]
    order = np.argsort(sizes)
    falling = np.minimum.accumulate(rows.latency_ms[order][::-1])[::-1]
    return Curve(sizes[order].astype(np.float64), falling)


def curve_times(
    curve: Curve, accelerator: Accelerator, kind: OperatorKind, dims: dict[str, IntArray]
) -> OperatorTimes:
    """Return times from a curve; for messages that leave the measured scale-up domain, from the roofline."""
    found = curve.times(dims[CURVES[kind]])
    if kind is not OperatorKind.SEND_RECV:
        return found
    leaves = dims["stride"] >= accelerator.scale_up_accelerators
    return OperatorTimes(
        np.where(leaves, send_recv_ms(accelerator, dims), found.latency_ms),
        np.where(leaves, np.uint8(Provenance.ROOFLINE), found.provenance),
    )
