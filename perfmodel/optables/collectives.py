"""Collectives that were measured within a scale-up domain, and go on over the network by its bandwidth."""

from __future__ import annotations

import numpy as np

from fleetplan.perfmodel.operators import FloatArray, IntArray, OperatorKind, Provenance
from fleetplan.perfmodel.optables.formulas.collectives import (
    NetworkAllReduce,
    groups,
    inside_message,
    network_bytes,
    with_network_ms,
)
from fleetplan.perfmodel.optables.formulas.rank_skew import rank_skew_ms
from fleetplan.perfmodel.optables.interpolation.lookup import LookupTable
from fleetplan.perfmodel.optables.times import OperatorTimes


def collective_times(
    table: LookupTable, dims: dict[str, IntArray], network_all_reduce: NetworkAllReduce
) -> OperatorTimes:
    """Return the time and provenance of a collective, shape (n,) each.

    Parameters
    ----------
    table : LookupTable
        Measured within a scale-up domain.
    dims : dict[str, IntArray]
        Dimensions of the operator.
    network_all_reduce : {"hierarchical", "ring"}
        All-reduce across scale-up domains.
    """
    kind, accelerator = table.kind, table.accelerator
    placed = groups(accelerator, dims["ranks"], dims["stride"])
    message = dims["message_bytes"].astype(np.float64)
    inside_bytes = np.ceil(inside_message(kind, message, placed)).astype(np.int64)
    inner = np.maximum(placed.inner, 2)
    found = table.times(dims | {"message_bytes": inside_bytes, "ranks": inner})
    latency_ms = np.where(placed.inner > 1, found.latency_ms, 0.0)
    if placed.leaves.any():
        inside_fixed = np.where(placed.inner > 1, _fixed_ms(table, inner), 0.0)
        sent_bytes = network_bytes(kind, message, placed, network_all_reduce)
        latency_ms = with_network_ms(accelerator, kind, sent_bytes, placed, latency_ms, inside_fixed)
    if kind is OperatorKind.ALL_REDUCE:
        latency_ms = latency_ms + rank_skew_ms(accelerator.measured_system, dims["ranks"])
    # No table has this number of ranks, or these links.
    unmeasured = placed.leaves | ~table.is_measured(dims["ranks"][:, None])
    label = np.where(unmeasured, np.uint8(Provenance.EXTRAPOLATED), found.provenance)
    # A group that has no more than one rank a domain uses no measured link at all.
    label = np.where(placed.leaves & (placed.inner == 1), np.uint8(Provenance.ROOFLINE), label)
    nothing = dims["ranks"] == 1
    return OperatorTimes(
        np.where(nothing, 0.0, latency_ms), np.where(nothing, np.uint8(Provenance.MEASURED), label)
    )


def _fixed_ms(table: LookupTable, ranks: IntArray) -> FloatArray:
    """Return the time of the smallest message of a collective among a number of ranks, shape (n,), in ms."""
    distinct, codes = np.unique(ranks, return_inverse=True)
    smallest = np.full(distinct.shape, table.surfaces.axes[1].nodes[0], dtype=np.int64)
    return table.times({"message_bytes": smallest, "ranks": distinct}).latency_ms[codes]
