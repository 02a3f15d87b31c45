"""The operators of compressed attention, and of the hyper-connections around blocks (DeepSeek-V4).

A block of attention is one operator with all its projections, because frameworks were measured that way. In
an iteration with prompts and generated tokens, both have a separate block, so weights are read twice and
small kernels run twice: its time is an upper bound.
"""

from __future__ import annotations

from collections.abc import Iterator

from fleetplan.perfmodel.architecture import CompressedAttention
from fleetplan.perfmodel.operators import BYTES_PER_ELEMENT, IntArray, Operator, OperatorKind
from fleetplan.perfmodel.steps.communication import attention_reduction
from fleetplan.perfmodel.steps.parts import constant, counts, elementwise, softmax_attention
from fleetplan.perfmodel.steps.precision import PartDtypes
from fleetplan.perfmodel.steps.shapes import StepShape

BEFORE_BLOCK = 1
BEHIND_BLOCK = 2
"""The `side` of a hyper-connection: streams are mixed into one, or a block's output is added to all."""

BITS_PER_BYTE = 8


def compressed_attention(
    hidden_size: int, dtypes: PartDtypes, attention: CompressedAttention, layers: int, shape: StepShape
) -> Iterator[Operator]:
    """Yield the operators of `layers` layers of compressed attention.

    Parameters
    ----------
    hidden_size : int
        Width of the residual stream.
    dtypes : PartDtypes
        Data types by part.
    attention : CompressedAttention
        Layer.
    layers : int
        Number of such layers.
    shape : StepShape
        Parallelism, sequences and lengths of n configurations.
    """
    tokens = shape.local_tokens
    # The norm reads the stream that the hyper-connection mixed, and writes what the block reads.
    yield elementwise("attention_norm", 2 * tokens * hidden_size, layers)
    fixed = _fixed(hidden_size, dtypes, attention, shape.layouts.tp)
    kinds = OperatorKind.COMPRESSED_PREFILL, OperatorKind.COMPRESSED_DECODE
    yield from softmax_attention(kinds, dtypes.attention, fixed, layers, shape)
    yield from attention_reduction(hidden_size, tokens, shape.layouts, layers)


def hyper_connections(hidden_size: int, streams: int, blocks: int, shape: StepShape) -> Iterator[Operator]:
    """Yield the mixing of residual streams before and after `blocks` blocks; none with one stream.

    Every accelerator of a tensor-parallel group mixes all tokens of its rank.
    """
    if streams == 1:
        return
    tokens = shape.local_tokens
    fixed = {"hidden": constant(hidden_size, tokens), "streams": constant(streams, tokens)}
    for name, side in (("streams_before", BEFORE_BLOCK), ("streams_behind", BEHIND_BLOCK)):
        dims = {"tokens": tokens, **fixed, "side": constant(side, tokens)}
        yield Operator(name, OperatorKind.HYPER_CONNECTION, "bf16", dims, counts(blocks, tokens))


def _fixed(
    hidden_size: int, dtypes: PartDtypes, attention: CompressedAttention, tp: IntArray
) -> dict[str, IntArray]:
    index = attention.index
    widths = {
        "hidden": hidden_size,
        "query_rank": attention.query_rank,
        "head_dim": attention.head_dim,
        "rope_head_dim": attention.rope_head_dim,
        "window": attention.window,
        "ratio": attention.ratio,
        "top_k": 0 if index is None else index.top_k,
        "index_heads": 0 if index is None else index.heads,
        "index_head_dim": 0 if index is None else index.head_dim,
        "output_rank": attention.output_rank,
        "kv_bits": int(BITS_PER_BYTE * BYTES_PER_ELEMENT[dtypes.kv]),
    }
    return {
        "heads": -(-attention.heads // tp),
        "groups": -(-attention.output_groups // tp),
        **{name: constant(width, tp) for name, width in widths.items()},
    }
