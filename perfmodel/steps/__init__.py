"""One pass through a decoder: operators, times, and memory.

In: an architecture, a layout and a batch. Out: `step_operators`, the operators of the pass; `step_times`,
their times with provenance; `memory_use`, what weights, activations and KV caches take. `StepShape` and
`ConfigurationBatch` say how many tokens of how many sequences.
"""

from fleetplan.perfmodel.steps.decoder_step import step_operators
from fleetplan.perfmodel.steps.expert_kernels import expert_kernels
from fleetplan.perfmodel.steps.latency import OperatorTimesSource, step_times
from fleetplan.perfmodel.steps.memory import MemoryUse, memory_use
from fleetplan.perfmodel.steps.precision import KV_PRECISIONS, WEIGHT_PRECISIONS, PartDtypes, part_dtypes
from fleetplan.perfmodel.steps.shapes import (
    ConfigurationBatch,
    StepShape,
    decode_shape,
    mixed_shape,
    prefill_shape,
    steady_shape,
)
from fleetplan.perfmodel.steps.software_versions import TODAYS_SOFTWARE, Software
from fleetplan.perfmodel.steps.state_slots import state_slots
from fleetplan.perfmodel.steps.times import NO_DETAIL, StepTimes, provenance_shares, weakest_provenance

__all__ = [
    "KV_PRECISIONS",
    "NO_DETAIL",
    "TODAYS_SOFTWARE",
    "WEIGHT_PRECISIONS",
    "ConfigurationBatch",
    "MemoryUse",
    "OperatorTimesSource",
    "PartDtypes",
    "Software",
    "StepShape",
    "StepTimes",
    "decode_shape",
    "expert_kernels",
    "memory_use",
    "mixed_shape",
    "part_dtypes",
    "prefill_shape",
    "provenance_shares",
    "state_slots",
    "steady_shape",
    "step_operators",
    "step_times",
    "weakest_provenance",
]
