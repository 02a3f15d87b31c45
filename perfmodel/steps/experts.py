"""The routed experts of a step: ordinary kernels or those behind a dispatch, with even or skewed tokens."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fleetplan.perfmodel.architecture import MoeFfn
from fleetplan.perfmodel.operators import IntArray, Operator, OperatorKind
from fleetplan.perfmodel.parallelism import Layouts
from fleetplan.perfmodel.steps.communication import dispatched
from fleetplan.perfmodel.steps.parts import constant
from fleetplan.perfmodel.steps.precision import PartDtypes
from fleetplan.perfmodel.steps.shapes import StepShape


@dataclass(frozen=True, slots=True)
class ExpertSpread:
    """Load of the accelerators that hold the experts of a step.

    Attributes
    ----------
    even : NDArray[np.bool_]
        Whether experts are balanced, in the shape of the layouts.
    busiest_ratio : float
        Tokens of the busiest accelerator over the mean, where experts are balanced.
    redundant : IntArray
        Copies of experts beside one of each, in the shape of the layouts.
    """

    even: NDArray[np.bool_]
    busiest_ratio: float
    redundant: IntArray


def skewed_spread(layouts: Layouts) -> ExpertSpread:
    """Return the load of experts without load balancing."""
    return ExpertSpread(np.zeros(layouts.ep.shape, dtype=np.bool_), 1.0, np.zeros_like(layouts.ep))


def placed_experts(experts: int, redundant: IntArray, ep: IntArray) -> IntArray:
    """Return the experts and copies of all groups; more copies if they cannot hold equal numbers."""
    placed: IntArray = -(-(experts + redundant) // ep) * ep
    return placed


def routed_experts(
    dtypes: PartDtypes, ffn: MoeFfn, width: IntArray, layers: int, shape: StepShape, spread: ExpertSpread
) -> Iterator[Operator]:
    """Yield the routed experts of `layers` layers.

    Parameters
    ----------
    dtypes : PartDtypes
        Data types by part.
    ffn : MoeFfn
        Experts of one layer; without gates, they have no dedicated kernels behind a dispatch.
    width : IntArray
        Hidden size, or that of the latent space that they work in, shape (n_configs,).
    layers : int
        Number of layers.
    shape : StepShape
        Parallelism, sequences and lengths.
    spread : ExpertSpread
        Load of the accelerators.
    """
    behind_dispatch = dispatched(shape.layouts) & ffn.gated
    even = spread.even & ffn.gated
    ordinary = OperatorKind.MOE if ffn.gated else OperatorKind.UNGATED_MOE
    for kind, needed in (
        (ordinary, ~behind_dispatch & ~even),
        (OperatorKind.EVEN_MOE, ~behind_dispatch & even),
        (OperatorKind.DISPATCHED_MOE, behind_dispatch & ~even),
        (OperatorKind.EVEN_DISPATCHED_MOE, behind_dispatch & even),
    ):
        if needed.any():
            dims = _dims(kind, ffn, width, shape, spread)
            count = np.where(needed, float(layers), 0.0)
            yield Operator("routed_experts", kind, dtypes.routed_experts, dims, count)


def _dims(
    kind: OperatorKind, ffn: MoeFfn, width: IntArray, shape: StepShape, spread: ExpertSpread
) -> dict[str, IntArray]:
    tokens, layouts = shape.stage_tokens, shape.layouts
    is_even = kind in (OperatorKind.EVEN_MOE, OperatorKind.EVEN_DISPATCHED_MOE)
    is_dispatched = kind in (OperatorKind.DISPATCHED_MOE, OperatorKind.EVEN_DISPATCHED_MOE)
    # Shared experts that run among the routed ones stay behind a dispatch.
    merged = ffn.merged_experts if is_dispatched else 0
    if is_even and spread.busiest_ratio > 1:
        tokens = np.ceil(tokens * spread.busiest_ratio).astype(np.int64)
    dims = {
        "tokens": tokens,
        "hidden": width,
        "intermediate": constant(ffn.intermediate_size, tokens),
        "top_k": constant(ffn.top_k - merged, tokens),
        "experts": placed_experts(ffn.experts - merged, spread.redundant, layouts.ep),
        "moe_tp": layouts.ffn_tp,
        "moe_ep": layouts.ep,
    }
    if is_dispatched:
        # Rows that do not run it keep a valid shape.
        dims["moe_tp"] = np.where(dispatched(layouts), layouts.ffn_tp, 1)
        dims["low_latency"] = (shape.prefill_sequences == 0).astype(np.int64)
    return dims
