"""Expert dispatch and combine over more ranks than a table has, and on parts that run no kernels for them.

Kernels that send each token to the ranks of its experts need NVLink or GPUs of DeepEP; tables have them for
the parts that they run on. On all others frameworks gather the tokens of all ranks on each of them, and
scatter the sums. Sources: TensorRT-LLM@03c36d6, fused_moe/communication/communication_factory.py, whose last
choice is `AllGatherReduceScatter`, of activations as the experts compute on them; vLLM 0.33, whose
`all2all_backend` is `allgather_reducescatter` unless another one is asked for.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from fleetplan.perfmodel.operators import BYTES_PER_ELEMENT, IntArray, OperatorKind, Provenance
from fleetplan.perfmodel.optables.formulas.roofline import routed_ms
from fleetplan.perfmodel.optables.interpolation.lookup import LookupTable
from fleetplan.perfmodel.optables.rows import site_dimensions
from fleetplan.perfmodel.optables.times import OperatorTimes

GATHERED: Final = {
    OperatorKind.EXPERT_DISPATCH: OperatorKind.ALL_GATHER,
    OperatorKind.EXPERT_COMBINE: OperatorKind.REDUCE_SCATTER,
}
"""Collectives that replace dispatch and combine on parts without kernels for them."""


def gathered(dtype: str, dims: dict[str, IntArray]) -> dict[str, IntArray]:
    """Return the dimensions of the collective among all ranks that replaces a dispatch or a combine."""
    tokens = dims["tokens"] * dims["ep"]
    message = np.ceil(tokens * dims["hidden"] * BYTES_PER_ELEMENT[dtype]).astype(np.int64)
    return {"message_bytes": message, "ranks": dims["ep"], "stride": np.ones_like(message)}


def routed_times(table: LookupTable, dims: dict[str, IntArray]) -> OperatorTimes:
    """Return the time and provenance of a dispatch or a combine, shape (n,) each.

    A number of ranks that was not measured takes the next smaller one that was, and adds what the links
    need for the further ranks: a ratio would multiply the fixed time of small messages as well.
    """
    column = site_dimensions(table.kind).index("ep")
    measured = np.unique(table.sites[:, column])
    position = np.maximum(np.searchsorted(measured, dims["ep"], side="right") - 1, 0)
    nearest = dims | {"ep": measured[position]}
    found = table.times(nearest)
    beyond = routed_ms(table.accelerator, table.dtype, dims) - routed_ms(
        table.accelerator, table.dtype, nearest
    )
    other = nearest["ep"] != dims["ep"]
    label = np.where(other, np.uint8(Provenance.EXTRAPOLATED), found.provenance)
    # Fewer ranks than measured cost no less, because the fixed part of the time is unknown.
    return OperatorTimes(found.latency_ms + np.where(other, np.maximum(beyond, 0.0), 0.0), label)
