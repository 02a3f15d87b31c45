"""Choose the formula for the time of attention to a part of the context."""

from __future__ import annotations

from typing import Final

from fleetplan.fleet.inventory import Accelerator
from fleetplan.perfmodel.operators import COMPRESSED_KINDS, FloatArray, IntArray, Limit, OperatorKind
from fleetplan.perfmodel.optables.formulas.compressed import compressed_ms
from fleetplan.perfmodel.optables.formulas.sparse import block_sparse_ms, selection_ms, sparse_attention_ms

CHOSEN_LIMITS: Final = frozenset(
    {
        Limit.SPARSE_ATTENTION,
        Limit.TOKEN_SELECTION,
        Limit.BLOCK_SPARSE_ATTENTION,
        Limit.COMPRESSED_ATTENTION,
    }
)
"""Operators whose time `chosen_attention_ms` has."""


def chosen_attention_ms(
    accelerator: Accelerator, kind: OperatorKind, dtype: str, dims: dict[str, IntArray]
) -> FloatArray:
    """Return the time of an operator of attention to chosen tokens or entries, shape (n,), in ms."""
    match kind:
        case OperatorKind.SPARSE_ATTENTION:
            return sparse_attention_ms(accelerator, dtype, dims)
        case OperatorKind.TOKEN_SELECTION:
            return selection_ms(accelerator, dtype, dims)
        case _ if kind in COMPRESSED_KINDS:
            return compressed_ms(accelerator, dtype, dims)
        case _:
            return block_sparse_ms(accelerator, kind, dtype, dims)
