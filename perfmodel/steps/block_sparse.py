"""The operators of softmax attention to chosen blocks of tokens (MiniMax Sparse Attention: MiniMax-M3).

One index head per key-value head scores the blocks of all earlier tokens, and attention reads the best ones.
The projections are ordinary products; everything between them is one operator for prompts and one for
generated tokens, because the tables measure it as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator

from fleetplan.perfmodel.architecture import GroupedQueryAttention
from fleetplan.perfmodel.operators import IntArray, Operator, OperatorKind
from fleetplan.perfmodel.steps.parts import constant, gemm, softmax_attention
from fleetplan.perfmodel.steps.precision import PartDtypes
from fleetplan.perfmodel.steps.shapes import StepShape
from fleetplan.perfmodel.steps.sharding import heads_per_accelerator, index_heads, index_width


def block_sparse_attention(
    hidden: IntArray, dtypes: PartDtypes, attention: GroupedQueryAttention, layers: int, shape: StepShape
) -> Iterator[Operator]:
    """Yield the projection of the indexer, and the attention to the selected blocks.

    Parameters
    ----------
    hidden : IntArray
        Width of the residual stream, shape (n_configs,).
    dtypes : PartDtypes
        Data types by part.
    attention : GroupedQueryAttention
        Layer; without an index, it has none of these operators.
    layers : int
        Number of such layers.
    shape : StepShape
        Parallelism, sequences and lengths of n configurations.
    """
    index = attention.index
    if index is None:
        return
    tokens, tp = shape.local_tokens, shape.layouts.tp
    yield gemm("index_projection", dtypes.attention, tokens, index_width(attention, tp), hidden, layers)
    heads, kv_heads = heads_per_accelerator(attention, tp)
    common = {
        "heads": heads,
        "kv_heads": kv_heads,
        "head_dim": constant(attention.head_dim, heads),
        "index_heads": index_heads(attention, tp),
        "index_head_dim": constant(index.head_dim, heads),
        "block_tokens": constant(index.block_tokens, heads),
        "blocks": constant(index.blocks, heads),
    }
    kinds = OperatorKind.BLOCK_SPARSE_PREFILL, OperatorKind.BLOCK_SPARSE_DECODE
    yield from softmax_attention(kinds, dtypes.kv, common, layers, shape)
