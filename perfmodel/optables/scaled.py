"""Measured times for a part whose figures differ from those of the part that was measured.

A power cap, a figure of one's own, or the question what more bandwidth would bring change the roofline of an
operator. Its measured time is multiplied by the ratio of the two rooflines: what kernels lose to the data
sheet stays as it was measured. The ratio never falls when a figure gets worse, so neither do the times.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from fleetplan.fleet.inventory import Accelerator
from fleetplan.perfmodel.operators import ByteArray, Provenance
from fleetplan.perfmodel.optables.interpolation.light import light_of_rows
from fleetplan.perfmodel.optables.rows import MeasuredRows


def scaled_rows(rows: MeasuredRows, part: Accelerator) -> tuple[MeasuredRows, ByteArray]:
    """Return the rows of a table as `part` would take, and how sure they are.

    Parameters
    ----------
    rows : MeasuredRows
        Measured with the figures of `part.as_measured`.
    part : Accelerator
        Whose figures count.

    Returns
    -------
    tuple[MeasuredRows, ByteArray]
        The rows, their provenance still telling whose framework they are of; and their labels, EXTRAPOLATED
        where the ratio is not 1, shape (n_rows,).
    """
    ratio = light_of_rows(part, rows) / light_of_rows(part.as_measured, rows)
    # A group of one rank sends nothing, at any bandwidth.
    ratio = np.where(np.isfinite(ratio), ratio, 1.0)
    label = np.where(
        ratio == 1.0, rows.provenance, np.maximum(rows.provenance, np.uint8(Provenance.EXTRAPOLATED))
    )
    return replace(rows, latency_ms=rows.latency_ms * ratio), label.astype(np.uint8)
