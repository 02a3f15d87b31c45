"""The operators of a decoder step: kinds, dimensions, number formats, and the work of each.

Out: `Operator` and `OperatorKind`, the array types and `Provenance` of all rooms, and `work`, which returns
the floating-point operations and bytes of an operator.
"""

from fleetplan.perfmodel.operators.arrays import ByteArray, FloatArray, IntArray, Provenance
from fleetplan.perfmodel.operators.compressed_work import CompressedParts, compressed_parts
from fleetplan.perfmodel.operators.counts import active_experts, attended_pairs, groups_reached
from fleetplan.perfmodel.operators.formats import (
    ACTIVATION_BYTES,
    BYTES_PER_ELEMENT,
    STATE_BYTES,
    ActivationScales,
    latent_entry_bytes,
)
from fleetplan.perfmodel.operators.kinds import (
    AXES,
    COLLECTIVE_KINDS,
    COMPRESSED_KINDS,
    CURVES,
    DIMENSIONS,
    EXPERT_KINDS,
    WEIGHT_KINDS,
    Operator,
    OperatorKind,
    work,
)
from fleetplan.perfmodel.operators.records import KindRecord, Limit
from fleetplan.perfmodel.operators.work_done import Work

__all__ = [
    "ACTIVATION_BYTES",
    "AXES",
    "BYTES_PER_ELEMENT",
    "COLLECTIVE_KINDS",
    "COMPRESSED_KINDS",
    "CURVES",
    "DIMENSIONS",
    "EXPERT_KINDS",
    "STATE_BYTES",
    "WEIGHT_KINDS",
    "ActivationScales",
    "ByteArray",
    "CompressedParts",
    "FloatArray",
    "IntArray",
    "KindRecord",
    "Limit",
    "Operator",
    "OperatorKind",
    "Provenance",
    "Work",
    "active_experts",
    "attended_pairs",
    "compressed_parts",
    "groups_reached",
    "latent_entry_bytes",
    "work",
]
