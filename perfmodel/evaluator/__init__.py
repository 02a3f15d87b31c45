"""The one evaluator: latency, rate and memory of prefill, decode and continuous batching.

In: an architecture, an accelerator, a precision, techniques. Out: `PhaseResult` for an array of
configurations. Entry points: `build_evaluator`, `Evaluator`; `with_calibration` applies the user's
measurements.
"""

from fleetplan.perfmodel.evaluator.build import build_evaluator
from fleetplan.perfmodel.evaluator.calibration import (
    Calibration,
    CalibrationScope,
    PhaseFit,
    Residual,
    ScopeCalibration,
    holds_for,
    with_calibration,
)
from fleetplan.perfmodel.evaluator.maturity import matured, maturity_in_force
from fleetplan.perfmodel.evaluator.model_memory import NO_TECHNIQUES
from fleetplan.perfmodel.evaluator.phases import Evaluator
from fleetplan.perfmodel.evaluator.rates import (
    disaggregated_requests_per_s,
    on_accelerators,
    prefill_mix,
    prefill_to_decode_ratio,
)
from fleetplan.perfmodel.evaluator.result import Engines, PhaseResult
from fleetplan.perfmodel.evaluator.step import StepEvaluator

__all__ = [
    "NO_TECHNIQUES",
    "Calibration",
    "CalibrationScope",
    "Engines",
    "Evaluator",
    "PhaseFit",
    "PhaseResult",
    "Residual",
    "ScopeCalibration",
    "StepEvaluator",
    "build_evaluator",
    "disaggregated_requests_per_s",
    "holds_for",
    "matured",
    "maturity_in_force",
    "on_accelerators",
    "prefill_mix",
    "prefill_to_decode_ratio",
    "with_calibration",
]
