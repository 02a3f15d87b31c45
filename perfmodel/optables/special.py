"""Operators whose look-up needs more than a site and a point of a sweep."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from fleetplan.perfmodel.operators import COMPRESSED_KINDS, IntArray, OperatorKind
from fleetplan.perfmodel.optables.attention import attention_times
from fleetplan.perfmodel.optables.block_sparse import block_sparse_times
from fleetplan.perfmodel.optables.compressed import compressed_times
from fleetplan.perfmodel.optables.dispatch import routed_times
from fleetplan.perfmodel.optables.interpolation.lookup import LookupTable
from fleetplan.perfmodel.optables.times import OperatorTimes

SPECIAL: Final[dict[OperatorKind, Callable[[LookupTable, dict[str, IntArray]], OperatorTimes]]] = {
    OperatorKind.PREFILL_ATTENTION: attention_times,
    OperatorKind.DECODE_ATTENTION: attention_times,
    OperatorKind.LATENT_PREFILL_ATTENTION: attention_times,
    OperatorKind.BLOCK_SPARSE_PREFILL: block_sparse_times,
    **dict.fromkeys(COMPRESSED_KINDS, compressed_times),
    OperatorKind.EXPERT_DISPATCH: routed_times,
    OperatorKind.EXPERT_COMBINE: routed_times,
}
"""Look-ups of queries with more than a site and a point of a sweep."""
