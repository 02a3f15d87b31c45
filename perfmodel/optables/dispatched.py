"""Experts whose tokens were dispatched to them: kernels of their own for the shapes that were measured.

Expert kernels behind a dispatch work on tokens that are sorted by expert already, and were measured with far
more tokens and accelerators, but for few models. All others take the time of ordinary expert kernels.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from fleetplan.perfmodel.operators import DIMENSIONS, IntArray, OperatorKind
from fleetplan.perfmodel.optables.interpolation.lookup import LookupTable
from fleetplan.perfmodel.optables.rows import site_dimensions
from fleetplan.perfmodel.optables.times import OperatorTimes

MODEL_DIMENSIONS: Final = ("hidden", "intermediate", "top_k", "experts", "low_latency")
"""What must have been measured; tokens and accelerators are interpolated between."""


def dispatched_times(
    table: LookupTable | None,
    dims: dict[str, IntArray],
    ordinary: Callable[[dict[str, IntArray]], OperatorTimes],
) -> OperatorTimes:
    """Time and provenance of dispatched experts, shape (n,) each.

    Parameters
    ----------
    table : LookupTable or None
        Of kernels behind a dispatch; None where the framework has none.
    dims : dict[str, IntArray]
        Of the operator.
    ordinary : Callable
        Times of ordinary expert kernels for their dimensions.
    """
    known = np.zeros(dims["tokens"].shape, dtype=np.bool_) if table is None else _known(table, dims)
    names = DIMENSIONS[OperatorKind.MOE]
    if table is None or not known.any():
        return ordinary({name: dims[name] for name in names})
    found = table.times({name: values[known] for name, values in dims.items()})
    if known.all():
        return found
    others = ordinary({name: dims[name][~known] for name in names})
    latency_ms = np.empty(known.shape)
    provenance = np.empty(known.shape, dtype=np.uint8)
    latency_ms[known], latency_ms[~known] = found.latency_ms, others.latency_ms
    provenance[known], provenance[~known] = found.provenance, others.provenance
    return OperatorTimes(latency_ms, provenance)


def _known(table: LookupTable, dims: dict[str, IntArray]) -> NDArray[np.bool_]:
    names = site_dimensions(table.kind)
    columns = [names.index(name) for name in MODEL_DIMENSIONS]
    measured = np.unique(table.sites[:, columns], axis=0)
    asked = np.stack([dims[name] for name in MODEL_DIMENSIONS], axis=1)
    found: NDArray[np.bool_] = (asked[:, None, :] == measured[None, :, :]).all(axis=2).any(axis=1)
    return found
