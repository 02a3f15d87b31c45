"""Times of blocks of compressed attention as tables have them: prefixes, and layers without entries."""

from __future__ import annotations

from typing import Final

import numpy as np

from fleetplan.perfmodel.operators import IntArray, OperatorKind, Provenance
from fleetplan.perfmodel.optables.formulas.compressed import compressed_ms
from fleetplan.perfmodel.optables.interpolation.lookup import LookupTable
from fleetplan.perfmodel.optables.rows import site_dimensions
from fleetplan.perfmodel.optables.times import OperatorTimes

HEAVY_RATIO: Final = 128
"""Tokens per entry of the blocks that represent blocks without entries, which no table has: at most one entry
per 128 tokens more, and a compressor with 4 % of the weights."""


def compressed_times(table: LookupTable, dims: dict[str, IntArray]) -> OperatorTimes:
    """Return the time and provenance of a block over prompts or generated tokens, shape (n,) each.

    Tables of prompts are read without a prefix. A prefix adds what the roofline says that it adds: the
    projections of the new tokens cost the same, and only attention and the index see it.
    """
    names = site_dimensions(table.kind)
    sites = np.stack([dims[name] for name in names], axis=1)
    column = names.index("ratio")
    stood_for = (sites[:, column] == 0) & ~table.is_measured(sites)
    sites[stood_for, column] = HEAVY_RATIO
    is_prompt = table.kind is OperatorKind.COMPRESSED_PREFILL
    # A window is all that blocks without entries see.
    seen = dims["new_tokens"] if is_prompt else dims["context_tokens"]
    if not is_prompt:
        seen = np.where(stood_for, np.minimum(seen, dims["window"]), seen)
    found = table.times_at(sites, dims["batch"].astype(np.float64), seen.astype(np.float64))
    latency_ms, replaced = found.latency_ms, stood_for
    if is_prompt and dims["prefix_tokens"].any():
        alone = dims | {"prefix_tokens": np.zeros_like(dims["prefix_tokens"])}
        part, dtype = table.accelerator, table.dtype
        added = compressed_ms(part, dtype, dims) - compressed_ms(part, dtype, alone)
        latency_ms = latency_ms + np.maximum(added, 0.0)
        replaced = replaced | (dims["prefix_tokens"] > 0)
    label = np.maximum(found.provenance, np.where(replaced, np.uint8(Provenance.INTERPOLATED), np.uint8(0)))
    return OperatorTimes(latency_ms, label)
