"""The routed experts of a step: ordinary kernels, or those behind a dispatch."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from fleetplan.perfmodel.architecture import MoeFfn
from fleetplan.perfmodel.operators import IntArray, Operator, OperatorKind
from fleetplan.perfmodel.steps.communication import dispatched
from fleetplan.perfmodel.steps.parts import constant
from fleetplan.perfmodel.steps.precision import PartDtypes
from fleetplan.perfmodel.steps.shapes import StepShape


def routed_experts(
    dtypes: PartDtypes, ffn: MoeFfn, width: IntArray, layers: int, shape: StepShape
) -> Iterator[Operator]:
    """Yield the routed experts of `layers` layers.

    Parameters
    ----------
    dtypes : PartDtypes
        Data types by part.
    ffn : MoeFfn
        One layer's experts; without gates, they have no kernels of their own behind a dispatch.
    width : IntArray
        Hidden size, or that of the latent space that they work in, shape (n_configs,).
    layers : int
        How many layers.
    shape : StepShape
        Parallelism, sequences and lengths.
    """
    behind_dispatch = dispatched(shape.layouts) & ffn.gated
    count = np.where(behind_dispatch, 0.0, float(layers))
    if not behind_dispatch.all():
        kind = OperatorKind.MOE if ffn.gated else OperatorKind.UNGATED_MOE
        dims = _dims(ffn, width, ffn.experts, ffn.top_k, shape)
        yield Operator("routed_experts", kind, dtypes.routed_experts, dims, count)
    if behind_dispatch.any():
        dims = _dims(ffn, width, ffn.experts - ffn.merged_experts, ffn.top_k - ffn.merged_experts, shape)
        dims["low_latency"] = (shape.prefill_sequences == 0).astype(np.int64)
        # Rows that do not run it keep a valid shape.
        dims["moe_tp"] = np.where(behind_dispatch, dims["moe_tp"], 1)
        kind, count = OperatorKind.DISPATCHED_MOE, float(layers) - count
        yield Operator("routed_experts", kind, dtypes.routed_experts, dims, count)


def _dims(ffn: MoeFfn, width: IntArray, experts: int, top_k: int, shape: StepShape) -> dict[str, IntArray]:
    tokens, layouts = shape.stage_tokens, shape.layouts
    return {
        "tokens": tokens,
        "hidden": width,
        "intermediate": constant(ffn.intermediate_size, tokens),
        "top_k": constant(top_k, tokens),
        # Where the groups cannot hold equally many, redundant experts fill them up.
        "experts": -(-experts // layouts.ep) * layouts.ep,
        "moe_tp": layouts.ffn_tp,
        "moe_ep": layouts.ep,
    }
