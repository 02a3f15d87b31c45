"""Attention to chosen blocks from tables of whole modules: projections off, prefixes on.

A table holds a module with its projections, whose products are operators of their own here: a step with
prompts and generated tokens runs them once for both, and their weights may have another data type. What is
left of a module is therefore its time less that of its projections by the GEMM tables of the same part and
framework, so that the parts of a module with BF16 weights add up to what was measured.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np

from fleetplan.fleet.inventory import Accelerator
from fleetplan.perfmodel.operators import FloatArray, IntArray, OperatorKind, Provenance, attended_pairs
from fleetplan.perfmodel.optables.attention import length_of_pairs
from fleetplan.perfmodel.optables.choice import ChosenRows, TableLibrary
from fleetplan.perfmodel.optables.formulas.roofline import roofline_ms
from fleetplan.perfmodel.optables.interpolation.lookup import LookupTable, lookup_table
from fleetplan.perfmodel.optables.measured.block_sparse import HIDDEN_SIZE
from fleetplan.perfmodel.optables.rows import site_dimensions
from fleetplan.perfmodel.optables.times import OperatorTimes

MODULE_KINDS: Final = frozenset({OperatorKind.BLOCK_SPARSE_PREFILL, OperatorKind.BLOCK_SPARSE_DECODE})
"""Kinds whose tables hold whole modules."""

MODULE_WEIGHTS: Final = "bf16"
"""Data type of the projections in the rows that are read."""


def rows_without_projections(
    library: TableLibrary, accelerator: Accelerator, kind: OperatorKind, dtype: str, framework: str
) -> ChosenRows | None:
    """Return the rows of an operator: those of modules less their projections; None without measurements.

    Parameters
    ----------
    library : TableLibrary
        Tables of the part's system.
    accelerator : Accelerator
        The part, with the figures of the measured one.
    kind, dtype, framework
        As `TableLibrary.rows` takes them.
    """
    found = library.rows(kind, dtype, framework)
    if found is None or kind not in MODULE_KINDS:
        return found
    products = library.rows(OperatorKind.GEMM, MODULE_WEIGHTS, framework)
    if products is None:
        return None
    table = lookup_table(accelerator.as_measured, products.rows)
    left = found.rows.latency_ms - _projections_ms(table, found.rows.dims)
    rows = replace(found.rows, latency_ms=left).select(left > 0)
    sources = tuple(dict.fromkeys((*found.sources, *products.sources)))
    return ChosenRows(rows, sources) if rows.n_rows else None


def _projections_ms(table: LookupTable, dims: dict[str, IntArray]) -> FloatArray:
    """Return the time of the projections of queries, keys, values, indexer and output, shape (n,)."""
    tokens = dims["batch"] * dims["new_tokens"] if "new_tokens" in dims else dims["batch"]
    hidden = np.full_like(tokens, HIDDEN_SIZE)
    output = dims["heads"] * dims["head_dim"]
    attention = output + 2 * dims["kv_heads"] * dims["head_dim"]
    index = (dims["index_heads"] + 1) * dims["index_head_dim"]
    total: FloatArray = np.zeros(tokens.shape)
    for n, k in ((attention, hidden), (index, hidden), (hidden, output)):
        total = total + table.times({"m": tokens, "n": n, "k": k}).latency_ms
    return total


def block_sparse_times(table: LookupTable, dims: dict[str, IntArray]) -> OperatorTimes:
    """Return the time and provenance of prompts, shape (n,) each.

    Tables are read without a prefix. A chunk over a prefix takes the time of a whole prompt whose queries see
    as many tokens, times the ratio of both rooflines: that of a prefix also counts the scores of its blocks.
    """
    sites = np.stack([dims[name] for name in site_dimensions(table.kind)], axis=1)
    prefixed = dims["prefix_tokens"] > 0
    limit = dims["blocks"] * dims["block_tokens"]
    pairs = attended_pairs(dims["new_tokens"], dims["prefix_tokens"], limit)
    length = np.where(prefixed, length_of_pairs(pairs, limit), dims["new_tokens"])
    found = table.times_at(sites, dims["batch"].astype(np.float64), length)
    if not prefixed.any():
        return found
    whole = np.maximum(1, np.rint(length).astype(np.int64))
    alike = dims | {"new_tokens": whole, "prefix_tokens": np.zeros_like(whole)}
    wanted, known = (roofline_ms(table.accelerator, table.kind, table.dtype, each) for each in (dims, alike))
    ratio = np.where(prefixed, wanted / known, 1.0)
    label = np.where(
        prefixed, np.maximum(found.provenance, np.uint8(Provenance.INTERPOLATED)), found.provenance
    )
    return OperatorTimes(found.latency_ms * ratio, label)
