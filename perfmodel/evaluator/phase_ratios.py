"""Measured time over predicted time of each phase, and its effect on the steps of an evaluator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from fleetplan.perfmodel.operators import FloatArray
from fleetplan.perfmodel.steps import StepShape, StepTimes
from fleetplan.perfmodel.techniques.chunked_prefill import scaled_times


@dataclass(frozen=True, slots=True)
class PhaseRatios:
    """Factors on the predicted times of prompts and of generated tokens.

    Attributes
    ----------
    prefill, decode : float
        Measured over predicted time.
    """

    prefill: float
    decode: float


UNCALIBRATED: Final = PhaseRatios(1.0, 1.0)


def calibrated(times: StepTimes, shape: StepShape, ratios: PhaseRatios) -> StepTimes:
    """Return the times of a step after calibration.

    An iteration that carries both phases is scaled by both, in proportion to their tokens: it is the
    products over all tokens that they share.
    """
    if ratios == UNCALIBRATED:
        return times
    prompt_tokens = shape.prefill_sequences * shape.new_tokens
    share = prompt_tokens / np.maximum(prompt_tokens + shape.decode_sequences, 1)
    factor: FloatArray = ratios.decode + (ratios.prefill - ratios.decode) * share
    return scaled_times(times, factor)
