"""Two-batch overlap: a step in two halves where that is faster.

`fleetplan.perfmodel.steps.overlap` says what of the dispatch and combine of a half stays visible.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from fleetplan.perfmodel.steps import NO_DETAIL, StepShape, StepTimes
from fleetplan.perfmodel.steps.communication import dispatched
from fleetplan.perfmodel.steps.times import breakdown_of


def half_batch(shape: StepShape) -> StepShape:
    """Return the larger half of the sequences of each rank."""
    return replace(
        shape,
        prefill_sequences=-(-shape.prefill_sequences // 2),
        decode_sequences=-(-shape.decode_sequences // 2),
    )


def faster_of(whole: StepTimes, half: StepTimes, shape: StepShape) -> StepTimes:
    """Return the times of whole batches, or of two halves that overlap where those are faster.

    Parameters
    ----------
    whole, half : StepTimes
        Times of the same configurations; `half` is one half batch, whose communication is hidden as far as
        possible.
    shape : StepShape
        Time of the whole batch: without a dispatch to experts, nothing can be hidden.
    """
    taken: NDArray[np.bool_] = dispatched(shape.layouts) & (2 * half.latency_ms < whole.latency_ms)
    latency_ms = np.where(taken, 2 * half.latency_ms, whole.latency_ms)
    if whole.names == (NO_DETAIL,):
        return StepTimes.without_detail(latency_ms)
    names = tuple(dict.fromkeys((*whole.names, *half.names)))
    return StepTimes(
        latency_ms,
        np.where(taken, 2 * half.by_provenance_ms, whole.by_provenance_ms),
        names,
        np.where(taken, 2 * breakdown_of(half, names), breakdown_of(whole, names)),
    )
