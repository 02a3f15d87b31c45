"""Weights and cache outside HBM, streamed in over a link while the step computes.

The stream of the next layer is hidden behind the computation of this one, so a step takes the longer of
the two. All weights of a mixture are streamed: which experts a layer needs is known too late.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np

from fleetplan.fleet.inventory import Offload
from fleetplan.fleet.units import BYTES_PER_GIB, BYTES_PER_MS_OF_GB_PER_S
from fleetplan.perfmodel.operators import FloatArray, IntArray
from fleetplan.perfmodel.steps import StepTimes
from fleetplan.perfmodel.steps.times import with_wait
from fleetplan.perfmodel.techniques.record import ALL_MODES, LARGEST, SMALLEST, Technique, number

STREAMED_LAYERS: Final = 2
"""Layers whose offloaded weights are in HBM at a time: the one that computes, and the next."""

STALL_NAME: Final = "offload_stall"
"""The name in a breakdown of the wait for the link."""


def stream_ms(offload: Offload, stages: IntArray, weights_gib: FloatArray, kv_gib: FloatArray) -> FloatArray:
    """Return the time of the link in one pass over all pipeline stages, in ms.

    Parameters
    ----------
    offload : Offload
        Shares and bandwidth.
    stages : IntArray
        Pipeline stages: each streams its own part, one after the other in a pass.
    weights_gib, kv_gib : FloatArray
        Weights, and cache that the step reads, of the fullest accelerator of a stage. [GiB]
    """
    streamed_gib = offload.weights_ratio * weights_gib + offload.kv_ratio * kv_gib
    time: FloatArray = stages * streamed_gib * BYTES_PER_GIB / (offload.gb_per_s * BYTES_PER_MS_OF_GB_PER_S)
    return time


def with_stall(times: StepTimes, streaming_ms: FloatArray) -> StepTimes:
    """Return the times of a step that waits where the link takes longer than the computation."""
    return with_wait(times, np.maximum(0.0, streaming_ms - times.latency_ms), STALL_NAME)


def resident_weights_ratio(offload: Offload | None, layers_per_stage: FloatArray) -> FloatArray:
    """Return the share of the weights in HBM: those not offloaded, and the layers being streamed."""
    if offload is None:
        return np.ones(np.shape(layers_per_stage))
    buffered = np.minimum(1.0, STREAMED_LAYERS / layers_per_stage)
    ratio: FloatArray = 1.0 - offload.weights_ratio * (1.0 - buffered)
    return ratio


_SHARES: Final = ("offload_weights_ratio", "offload_kv_ratio")


def _switched(values: Mapping[str, Any]) -> dict[str, Any]:
    if "offload_gb_per_s" not in values:
        return {}
    weights, cache = (values.get(name, 0.0) for name in _SHARES)
    return {"offload": Offload(weights, cache, values["offload_gb_per_s"])}


def _refused(cells: Mapping[str, str]) -> Iterator[str]:
    if "offload_gb_per_s" in cells and not set(_SHARES) & cells.keys():
        yield f"offload_gb_per_s: has no effect without {' or '.join(_SHARES)}"


OFFLOAD: Final = Technique(
    {
        **{name: number(0, 1, ALL_MODES, "offload_gb_per_s") for name in _SHARES},
        "offload_gb_per_s": number(SMALLEST, LARGEST),
    },
    _switched,
    _refused,
)
"""The record of the technique."""
