"""Expert dispatch and combine over more ranks than a table has: the measured ones, and the links beyond."""

from __future__ import annotations

import numpy as np

from fleetplan.perfmodel.operators import IntArray, Provenance
from fleetplan.perfmodel.optables.formulas.roofline import routed_ms
from fleetplan.perfmodel.optables.interpolation.lookup import LookupTable
from fleetplan.perfmodel.optables.rows import site_dimensions
from fleetplan.perfmodel.optables.times import OperatorTimes


def routed_times(table: LookupTable, dims: dict[str, IntArray]) -> OperatorTimes:
    """Time and provenance of a dispatch or a combine, shape (n,) each.

    A number of ranks that was not measured takes the next smaller one that was, and adds what the links
    need for the further ranks: a ratio would multiply the fixed time of small messages as well.
    """
    column = site_dimensions(table.kind).index("ep")
    measured = np.unique(table.sites[:, column])
    position = np.maximum(np.searchsorted(measured, dims["ep"], side="right") - 1, 0)
    nearest = dims | {"ep": measured[position]}
    found = table.times(nearest)
    beyond = routed_ms(table.accelerator, table.dtype, dims) - routed_ms(
        table.accelerator, table.dtype, nearest
    )
    other = nearest["ep"] != dims["ep"]
    label = np.where(other, np.uint8(Provenance.EXTRAPOLATED), found.provenance)
    # Fewer ranks than were measured cost no less: nothing says how much of the time is fixed.
    return OperatorTimes(found.latency_ms + np.where(other, np.maximum(beyond, 0.0), 0.0), label)
