"""Attention with a prefix or a window that no table has, as attention that a table has.

Tables of prefill attention have no prefix. A chunk over a prefix is looked up at the length of a whole prompt
with as many query-key pairs, so its time increases with the chunk and with the prefix. It is never below the
time in which the memory delivers the keys and values, which matters for few tokens.
"""

from __future__ import annotations

import numpy as np

from fleetplan.fleet.units import BYTES_PER_MS_OF_GB_PER_S
from fleetplan.perfmodel.operators import (
    FloatArray,
    IntArray,
    OperatorKind,
    Provenance,
    attended_pairs,
    work,
)
from fleetplan.perfmodel.optables.interpolation.lookup import LookupTable
from fleetplan.perfmodel.optables.rows import site_dimensions
from fleetplan.perfmodel.optables.times import OperatorTimes


def attention_times(table: LookupTable, dims: dict[str, IntArray]) -> OperatorTimes:
    """Return the time and provenance of prefill or decode attention, shape (n,) each."""
    names = site_dimensions(table.kind)
    sites = np.stack([dims[name] for name in names], axis=1)
    if table.kind is OperatorKind.LATENT_PREFILL_ATTENTION:
        return _with_prefix(table, sites, dims)
    column = names.index("window")
    windowed = sites[:, column] > 0
    if windowed.any():
        windowed[windowed] = ~table.is_measured(sites[windowed])
    # Without a sweep of this window, that of the same heads without any answers for the keys that are seen.
    sites[windowed, column] = 0
    if table.kind is OperatorKind.DECODE_ATTENTION:
        context = dims["context_tokens"]
        seen = np.where(windowed, np.minimum(context, dims["window"]), context)
        replaced = seen != context
        length = seen.astype(np.float64)
    else:
        pairs = attended_pairs(dims["new_tokens"], dims["prefix_tokens"], dims["window"])
        whole = (dims["prefix_tokens"] == 0) & (~windowed | (dims["new_tokens"] <= dims["window"]))
        length = np.where(whole, dims["new_tokens"], length_of_pairs(pairs, sites[:, column]))
        replaced = ~whole
    found = table.times_at(sites, dims["batch"].astype(np.float64), length)
    if table.kind is OperatorKind.PREFILL_ATTENTION:
        found = _with_reading(table, dims, found)
    label = np.where(
        replaced, np.maximum(found.provenance, np.uint8(Provenance.INTERPOLATED)), found.provenance
    )
    return OperatorTimes(found.latency_ms, label)


def _with_prefix(table: LookupTable, sites: IntArray, dims: dict[str, IntArray]) -> OperatorTimes:
    """Attention that has no window, over a prefix or without one."""
    unlimited = np.zeros_like(dims["new_tokens"])
    pairs = attended_pairs(dims["new_tokens"], dims["prefix_tokens"], unlimited)
    replaced = dims["prefix_tokens"] > 0
    length = np.where(replaced, length_of_pairs(pairs, unlimited), dims["new_tokens"])
    found = _with_reading(table, dims, table.times_at(sites, dims["batch"].astype(np.float64), length))
    label = np.maximum(found.provenance, np.where(replaced, np.uint8(Provenance.INTERPOLATED), np.uint8(0)))
    return OperatorTimes(found.latency_ms, label)


def _with_reading(table: LookupTable, dims: dict[str, IntArray], found: OperatorTimes) -> OperatorTimes:
    """Return the times of prompts after a prefix, none less than that of reading its keys and values."""
    rows = np.flatnonzero(dims["prefix_tokens"])
    if not rows.size:
        return found
    done = work(table.kind, table.dtype, {name: values[rows] for name, values in dims.items()})
    bytes_per_ms = table.accelerator.hbm_gb_per_s * BYTES_PER_MS_OF_GB_PER_S
    read_ms = (done.kv_bytes + done.activation_bytes) / bytes_per_ms
    latency_ms, label = found.latency_ms.copy(), found.provenance.copy()
    waits = read_ms > latency_ms[rows]
    latency_ms[rows[waits]] = read_ms[waits]
    label[rows[waits]] = Provenance.ROOFLINE
    return OperatorTimes(latency_ms, label)


def length_of_pairs(pairs: FloatArray, window: IntArray) -> FloatArray:
    """Return the prompt length with that many causal query-key pairs, shape (n,), in tokens.

    The inverse of `attended_pairs` without a prefix; `window` 0 is unlimited.
    """
    growing = (np.sqrt(1.0 + 8.0 * pairs) - 1.0) / 2.0
    limit = np.maximum(window, 1).astype(np.float64)
    sliding = pairs / limit + (limit - 1.0) / 2.0
    return np.where((window > 0) & (growing > limit), sliding, growing)
