"""Experts with dispatched tokens: dedicated kernels for the measured shapes.

Expert kernels behind a dispatch work on tokens that are sorted by expert already, and were measured with far
more tokens and accelerators, but for few models. Within a host all others take the time of ordinary expert
kernels. Those handle all tokens of the group, wherever their experts are: 16,384 tokens take 1.6 ms on GB200
whether 16 accelerators share the experts or 64, and 0.3 to 0.4 ms behind a dispatch. So over several hosts
the kernels of other frameworks and models are nearer, and lend their utilisation.

An accelerator of a group knows its experts and the tokens that it receives, not the number of others. So 288
experts (256 and 32 redundant copies) on 72 accelerators with T tokens take as long as 256 on 64 with 64/72 of
T: four experts on each, and as many tokens for each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from fleetplan.perfmodel.operators import DIMENSIONS, IntArray, OperatorKind, Provenance
from fleetplan.perfmodel.optables.interpolation.lookup import LookupTable
from fleetplan.perfmodel.optables.rows import site_dimensions
from fleetplan.perfmodel.optables.times import OperatorTimes

ORDINARY_KIND: Final = {
    OperatorKind.DISPATCHED_MOE: OperatorKind.MOE,
    OperatorKind.EVEN_DISPATCHED_MOE: OperatorKind.EVEN_MOE,
}
"""Experts behind a dispatch, and ordinary ones for shapes without a dedicated measured kernel."""

MODEL_DIMENSIONS: Final = ("hidden", "intermediate", "top_k", "low_latency")
"""Dimensions that must match a measurement; tokens and accelerators are interpolated."""

ORDINARY_EP: Final = 8
"""Most expert groups for which ordinary kernels stand in: those of a host of eight, where they were held
against published rows (MiniMax-M2.5 in FP4 under vLLM on B200 and B300: median error of TPOT 12 and 18 %,
with kernels behind a dispatch that TensorRT-LLM lends 19 and 29 %)."""


def dispatched_times(
    table: LookupTable | None,
    dims: dict[str, IntArray],
    ordinary: Callable[[dict[str, IntArray]], OperatorTimes],
) -> OperatorTimes:
    """Return the time and provenance of dispatched experts, shape (n,) each.

    Parameters
    ----------
    table : LookupTable or None
        Tables of kernels behind a dispatch; None if no framework has any.
    dims : dict[str, IntArray]
        Dimensions of the operator.
    ordinary : Callable
        Times of ordinary expert kernels for their dimensions.
    """
    names = DIMENSIONS[OperatorKind.MOE]
    wide = dims["moe_ep"] > ORDINARY_EP
    if table is None:
        return ordinary({name: dims[name] for name in names})
    experts = _measured_experts(table, dims, wide)
    behind = wide | (experts > 0)
    latency_ms = np.empty(behind.shape)
    provenance = np.empty(behind.shape, dtype=np.uint8)
    if behind.any():
        asked = {name: values[behind] for name, values in dims.items()}
        found = _dispatched(table, asked, experts[behind])
        latency_ms[behind], provenance[behind] = found.latency_ms, found.provenance
    if not behind.all():
        others = ordinary({name: dims[name][~behind] for name in names})
        latency_ms[~behind], provenance[~behind] = others.latency_ms, others.provenance
    return OperatorTimes(latency_ms, provenance)


def _dispatched(table: LookupTable, dims: dict[str, IntArray], measured: IntArray) -> OperatorTimes:
    """Return times behind a dispatch; `measured` are the experts of the measured model, or 0."""
    ep, experts = dims["moe_ep"], dims["experts"]
    like = np.where(measured > 0, measured, experts)
    groups = np.maximum(1, np.rint(ep * like / experts)).astype(np.int64)
    tokens = np.where(groups == ep, dims["tokens"], np.ceil(dims["tokens"] * groups / ep)).astype(np.int64)
    found = table.times(dims | {"moe_ep": groups, "tokens": tokens, "experts": like})
    # As certain as a value between two measurements where other experts are elsewhere.
    label = np.where(like != experts, np.maximum(found.provenance, Provenance.INTERPOLATED), found.provenance)
    label = np.where(measured == 0, np.maximum(label, Provenance.EXTRAPOLATED), label)
    return OperatorTimes(found.latency_ms, label.astype(np.uint8))


def _measured_experts(table: LookupTable, dims: dict[str, IntArray], wide: NDArray[np.bool_]) -> IntArray:
    """Return the experts of the measured model that matches the queried one; 0 without any.

    Another framework's measurements count for `wide` groups alone.
    """
    names = site_dimensions(table.kind)
    columns = [names.index(name) for name in (*MODEL_DIMENSIONS, "experts")]
    labelled = np.concatenate([table.sites[:, columns], table.is_own[:, None]], axis=1)
    sites = np.unique(labelled, axis=0)
    asked = np.stack([dims[name] for name in MODEL_DIMENSIONS], axis=1)
    same = (asked[:, None, :] == sites[None, :, : len(MODEL_DIMENSIONS)]).all(axis=2)
    same &= wide[:, None] | (sites[None, :, -1] > 0)
    # The nearest by its logarithm, of those of the same widths.
    apart = np.abs(np.log(sites[None, :, -2] / dims["experts"][:, None]))
    nearest = np.argmin(np.where(same, apart, np.inf), axis=1)
    found: IntArray = np.where(same.any(axis=1), sites[nearest, -2], 0)
    return found
