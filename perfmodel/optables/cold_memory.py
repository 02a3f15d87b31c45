"""Correct operator times to reads of weights and context from memory, as within a decoder.

Benchmarks run one operator again and again, and what it reads may stay in the cache of the chip. Caches of 96
MB (L40S) and 128 MB (RTX PRO 6000) hold it for most layers: tables of these parts have products and attention
at up to 3.5 and 4.8 times what their memory can deliver, and at 0.8 to 0.9 of it where they read a gigabyte.
A decoder reads all other layers before it reads a layer again. So nothing takes less than its weights and its
context take at the rate of the largest reads of the same table, or at that of the data sheet where no read is
as large.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from fleetplan.fleet.inventory import Accelerator
from fleetplan.fleet.units import MS_PER_S
from fleetplan.perfmodel.operators import EXPERT_KINDS, FloatArray, Limit, Provenance, work
from fleetplan.perfmodel.optables.rows import MeasuredRows

_READ_AGAIN: Final = (Limit.WEIGHTS, Limit.DECODE_ATTENTION, Limit.DECODE_STATE)
"""Limits of operators that read data again only in the next step."""

_LARGE_READ_BYTES: Final = 1e9
"""Bytes of which a cache holds an eighth at most, of 128 MB in RTX PRO 6000. [bytes] Source: NVIDIA's white
paper of RTX Blackwell PRO (2025)."""


def read_from_memory(rows: MeasuredRows, part: Accelerator) -> MeasuredRows:
    """Return the rows of a table, none of them faster than the memory of the part.

    Parameters
    ----------
    rows : MeasuredRows
        As they were measured.
    part : Accelerator
        With the figures of the part that was measured.

    Returns
    -------
    MeasuredRows
        Labelled EXTRAPOLATED where a time is not the measured one.
    """
    if rows.kind.record.limit not in _READ_AGAIN:
        return rows
    read_bytes = _read_bytes(rows)
    at_peak_ms = read_bytes / (part.hbm_gb_per_s * 1e9 / MS_PER_S)
    rates = (at_peak_ms / rows.latency_ms)[read_bytes >= _LARGE_READ_BYTES]
    attained = min(1.0, rates.max()) if rates.size else 1.0
    reading_ms = at_peak_ms / attained
    label = np.where(reading_ms > rows.latency_ms, np.uint8(Provenance.EXTRAPOLATED), rows.provenance)
    return replace(rows, latency_ms=np.maximum(rows.latency_ms, reading_ms), provenance=label)


def _read_bytes(rows: MeasuredRows) -> FloatArray:
    """Return bytes of weights and context; of experts, those of one token, as several may share theirs."""
    dims = dict(rows.dims)
    if rows.kind in EXPERT_KINDS:
        dims["tokens"] = np.minimum(dims["tokens"], 1)
    done = work(rows.kind, rows.dtype, dims)
    return done.weight_bytes + done.kv_bytes
