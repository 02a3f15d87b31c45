"""The operators that a decoder step consists of: one record for each kind.

Every operator is a kind, a data type and one integer array per dimension. The same arrays go to the
measured tables and to the roofline, so a number can be compared with its speed of light.

A new kind is one member of `OperatorKind`, with a function in `fleetplan.perfmodel.operators.work_done` if no
function there returns its work. Measured tables name the kinds that they hold
(`fleetplan.perfmodel.optables.measured.tables`).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from typing import Final

import numpy as np

from fleetplan.perfmodel.operators.arrays import FloatArray, IntArray
from fleetplan.perfmodel.operators.compressed_work import compressed_work, hyper_connection_work
from fleetplan.perfmodel.operators.formats import BYTES_PER_ELEMENT
from fleetplan.perfmodel.operators.records import KindRecord, Limit
from fleetplan.perfmodel.operators.work_done import (
    Work,
    block_sparse_work,
    collective_work,
    decode_attention_work,
    elementwise_work,
    experts_work,
    gemm_work,
    latent_decode_work,
    latent_prefill_work,
    prefill_attention_work,
    recurrence_work,
    routed_work,
    sampling_work,
    send_work,
    sparse_attention_work,
    token_selection_work,
)

_RECURRENCE: Final = ("key_heads", "value_heads", "key_head_dim", "value_head_dim", "taps")
_COMPRESSED: Final = (
    *("hidden", "query_rank", "head_dim", "rope_head_dim", "window", "ratio", "top_k"),
    *("index_heads", "index_head_dim", "output_rank", "kv_bits"),
)
_DELTA: Final = partial(recurrence_work, is_delta=True)
_SCAN: Final = partial(recurrence_work, is_delta=False)


_BLOCKS: Final = (
    "heads",
    "kv_heads",
    "head_dim",
    "index_heads",
    "index_head_dim",
    "block_tokens",
    "blocks",
)


def _experts(*more: str, products: int = 3) -> KindRecord:
    """Routed experts: grouped products for gate and up, and for down."""
    dims = ("tokens", "hidden", "intermediate", "top_k", "experts", "moe_tp", "moe_ep", *more)
    work_of = partial(experts_work, products=products)
    return KindRecord(dims, Limit.WEIGHTS, work_of, axes=("tokens",), kernels=2)


def _compressed(*axes: str, prefix: bool = False) -> KindRecord:
    before = ("prefix_tokens",) if prefix else ()
    dims = (*axes, *before, "heads", "groups", *_COMPRESSED)
    return KindRecord(dims, Limit.COMPRESSED_ATTENTION, compressed_work, axes, kernels=1)


def _collective(trips: int = 1) -> KindRecord:
    dims = ("message_bytes", "ranks", "stride")
    return KindRecord(dims, Limit.COLLECTIVE, partial(collective_work, trips=trips), axes=("message_bytes",))


def _routed() -> KindRecord:
    dims = ("tokens", "hidden", "top_k", "experts", "ep", "low_latency")
    return KindRecord(dims, Limit.ROUTED_TOKENS, routed_work, axes=("tokens",))


class OperatorKind(StrEnum):
    """Kind of an operator, with its record."""

    record: KindRecord

    def __new__(cls, name: str, record: KindRecord | None = None) -> OperatorKind:
        """Make a member whose value is its name in files; a look-up by that name does not come here."""
        if record is None:
            raise TypeError(f"operator kind {name!r} has no record")
        member = str.__new__(cls, name)
        member._value_ = name
        member.record = record
        return member

    # C[m, n] = A[m, k] B[k, n]; dtype is that of the weights B.
    GEMM = "gemm", KindRecord(("m", "n", "k"), Limit.WEIGHTS, gemm_work, axes=("m",), kernels=1)
    # Causal attention of `new_tokens` a sequence over `prefix_tokens` cached ones plus themselves;
    # heads are those of one accelerator; window 0 means the whole context; dtype is that of the KV cache.
    PREFILL_ATTENTION = (
        "prefill_attention",
        KindRecord(
            ("batch", "new_tokens", "prefix_tokens", "heads", "kv_heads", "head_dim", "window"),
            Limit.PREFILL_ATTENTION,
            prefill_attention_work,
            axes=("batch", "new_tokens"),
            kernels=1,
        ),
    )
    # One new token per sequence over `context_tokens` cached ones.
    DECODE_ATTENTION = (
        "decode_attention",
        KindRecord(
            ("batch", "context_tokens", "heads", "kv_heads", "head_dim", "window"),
            Limit.DECODE_ATTENTION,
            decode_attention_work,
            axes=("batch", "context_tokens"),
            kernels=1,
        ),
    )
    # Multi-head latent attention. Prompts attend to the rebuilt keys and values of each head; generated
    # tokens to the latent vectors themselves (absorbed form), which all heads share.
    LATENT_PREFILL_ATTENTION = (
        "latent_prefill_attention",
        KindRecord(
            ("batch", "new_tokens", "prefix_tokens", "heads", "key_head_dim", "value_head_dim"),
            Limit.PREFILL_ATTENTION,
            latent_prefill_work,
            axes=("batch", "new_tokens"),
            kernels=1,
        ),
    )
    LATENT_DECODE_ATTENTION = (
        "latent_decode_attention",
        KindRecord(
            ("batch", "context_tokens", "heads", "kv_rank", "rope_head_dim"),
            Limit.DECODE_ATTENTION,
            latent_decode_work,
            axes=("batch", "context_tokens"),
            kernels=1,
        ),
    )
    # Latent attention of every token to the `top_k` best of the tokens before it and itself, in the absorbed
    # form; a generated token is one new token. dtype is that of the KV cache.
    SPARSE_ATTENTION = (
        "sparse_attention",
        KindRecord(
            ("batch", "new_tokens", "prefix_tokens", "heads", "kv_rank", "rope_head_dim", "top_k"),
            Limit.SPARSE_ATTENTION,
            sparse_attention_work,
            kernels=1,
        ),
    )
    # The choice of those tokens: every new token's index heads score the index keys of all tokens before it,
    # and the `top_k` best are kept. dtype is that of the index keys.
    TOKEN_SELECTION = (
        "token_selection",
        KindRecord(
            ("batch", "new_tokens", "prefix_tokens", "heads", "head_dim", "top_k"),
            Limit.TOKEN_SELECTION,
            token_selection_work,
            kernels=1,
        ),
    )
    # Softmax attention of every token to the best blocks of tokens before it and its own, with everything
    # between the projections before it and after it: norms and positions of queries and keys, the writes to
    # the cache, the index heads' scores of all earlier blocks, the choice. dtype is that of the KV cache.
    BLOCK_SPARSE_PREFILL = (
        "block_sparse_prefill",
        KindRecord(
            ("batch", "new_tokens", "prefix_tokens", *_BLOCKS),
            Limit.BLOCK_SPARSE_ATTENTION,
            block_sparse_work,
            axes=("batch", "new_tokens"),
            kernels=3,
        ),
    )
    BLOCK_SPARSE_DECODE = (
        "block_sparse_decode",
        KindRecord(
            ("batch", "context_tokens", *_BLOCKS),
            Limit.BLOCK_SPARSE_ATTENTION,
            block_sparse_work,
            axes=("batch", "context_tokens"),
            kernels=3,
        ),
    )
    # A block of attention to a window and to one entry for each `ratio` tokens before, with all projections;
    # heads and output groups are those of one accelerator, zeros say that it has no entries or no index,
    # dtype is that of the weights and `kv_bits` that of the cache.
    COMPRESSED_PREFILL = "compressed_prefill", _compressed("batch", "new_tokens", prefix=True)
    COMPRESSED_DECODE = "compressed_decode", _compressed("batch", "context_tokens")
    # Residual streams mixed into one before a block (side 1), or its output added to all of them (side 2).
    HYPER_CONNECTION = (
        "hyper_connection",
        KindRecord(
            ("tokens", "hidden", "streams", "side"), Limit.MEMORY, hyper_connection_work, axes=("tokens",)
        ),
    )
    # `groups` separate products: C_g[m, n] = A_g[m, k] B_g[k, n]; dtype is that of the weights B.
    BATCHED_GEMM = (
        "batched_gemm",
        KindRecord(("m", "groups", "n", "k"), Limit.WEIGHTS, gemm_work, axes=("m",), kernels=1),
    )
    # Routed experts (gate-up, activation, down) on one accelerator. `tokens` are all the tokens that the
    # expert group sees; moe_tp splits an expert, moe_ep splits the experts.
    MOE = "moe", _experts()
    # The same without a gate projection: two products instead of three.
    UNGATED_MOE = "ungated_moe", _experts(products=2)
    # MOE with tokens from the accelerators of all expert groups, already sorted by expert; low_latency 1 is a
    # step without prompts. Frameworks have separate kernels for it.
    DISPATCHED_MOE = "dispatched_moe", _experts("low_latency")
    # Both with tokens spread evenly over the accelerators of an expert group. `tokens` are those of the
    # group if all accelerators had as many as the busiest one; `experts` counts redundant copies as well.
    EVEN_MOE = "even_moe", _experts()
    EVEN_DISPATCHED_MOE = "even_dispatched_moe", _experts("low_latency")
    # Recurrences with a state of fixed size, with the causal convolution of `taps` tokens before them: the
    # gated delta rule, and the plain scan (Mamba-2, lightning attention). Heads are those of one accelerator.
    DELTA_PREFILL = (
        "delta_prefill",
        KindRecord(
            ("batch", "new_tokens", *_RECURRENCE),
            Limit.PREFILL_STATE,
            _DELTA,
            axes=("batch", "new_tokens"),
            kernels=2,
        ),
    )
    DELTA_DECODE = (
        "delta_decode",
        KindRecord(("batch", *_RECURRENCE), Limit.DECODE_STATE, _DELTA, axes=("batch",), kernels=2),
    )
    # The same with a separate decay for every channel of a key (Kimi delta attention).
    KIMI_DELTA_PREFILL = (
        "kimi_delta_prefill",
        KindRecord(
            ("batch", "new_tokens", *_RECURRENCE),
            Limit.PREFILL_STATE,
            _DELTA,
            axes=("batch", "new_tokens"),
            kernels=2,
        ),
    )
    KIMI_DELTA_DECODE = (
        "kimi_delta_decode",
        KindRecord(("batch", *_RECURRENCE), Limit.DECODE_STATE, _DELTA, axes=("batch",), kernels=2),
    )
    SCAN_PREFILL = (
        "scan_prefill",
        KindRecord(("batch", "new_tokens", *_RECURRENCE), Limit.PREFILL_STATE, _SCAN, kernels=2),
    )
    SCAN_DECODE = "scan_decode", KindRecord(("batch", *_RECURRENCE), Limit.DECODE_STATE, _SCAN, kernels=2)
    # Tokens to the accelerators of their experts and back, with one accelerator an expert group: `tokens` are
    # those of one rank, `ep` neighbouring ranks hold the experts; low_latency 1 is a step without prompts.
    EXPERT_DISPATCH = "expert_dispatch", _routed()
    EXPERT_COMBINE = "expert_combine", _routed()
    # `message_bytes` is the full tensor that every rank ends up with (all-reduce, all-gather), starts
    # from (reduce-scatter), or sends in total (all-to-all). `stride` is the distance between
    # neighbouring ranks in accelerators: a group of 2 with stride 8 spans two hosts of 8.
    ALL_REDUCE = "all_reduce", _collective(trips=2)
    ALL_GATHER = "all_gather", _collective()
    REDUCE_SCATTER = "reduce_scatter", _collective()
    ALL_TO_ALL = "all_to_all", _collective()
    # Point to point between accelerators `stride` apart.
    SEND_RECV = (
        "send_recv",
        KindRecord(("message_bytes", "stride"), Limit.SEND, send_work, curve="message_bytes"),
    )
    # Norms, activations, residuals, embedding look-ups: memory traffic alone.
    ELEMENTWISE = (
        "elementwise",
        KindRecord(("traffic_bytes",), Limit.MEMORY, elementwise_work, curve="traffic_bytes"),
    )
    # A token is drawn for each of `rows` sequences, from the logits of the whole vocabulary.
    TOKEN_SAMPLING = "token_sampling", KindRecord(("rows", "vocab"), Limit.MEMORY, sampling_work)


DIMENSIONS: Final = {kind: kind.record.dims for kind in OperatorKind}
"""Names of the dimensions of every kind."""

AXES: Final = {kind: kind.record.axes for kind in OperatorKind if kind.record.axes}
"""The dimensions along which one site was swept, of the kinds that tables may hold."""

CURVES: Final = {kind: kind.record.curve for kind in OperatorKind if kind.record.curve}
"""Operators whose time depends on one dimension; only tables of users contain them."""

COLLECTIVE_KINDS: Final = frozenset(kind for kind in OperatorKind if kind.record.limit is Limit.COLLECTIVE)

COMPRESSED_KINDS: Final = frozenset({OperatorKind.COMPRESSED_PREFILL, OperatorKind.COMPRESSED_DECODE})

WEIGHT_KINDS: Final = COMPRESSED_KINDS | {kind for kind in OperatorKind if kind.record.limit is Limit.WEIGHTS}
"""Operators that multiply by weights: the data type of those decides their matrix peak."""

EXPERT_KINDS: Final = frozenset(kind for kind in WEIGHT_KINDS if "moe_ep" in kind.record.dims)
"""Routed experts, for all kernels and distributions of tokens."""


def work(kind: OperatorKind, dtype: str, dims: dict[str, IntArray]) -> Work:
    """Return the floating-point operations and bytes of an operator on one accelerator.

    Parameters
    ----------
    kind, dtype, dims
        As in `Operator`.

    Returns
    -------
    Work
        Each of shape (n_configs,).
    """
    floats = {name: values.astype(np.float64) for name, values in dims.items()}
    return kind.record.work(BYTES_PER_ELEMENT[dtype], dims, floats)


@dataclass(frozen=True, slots=True)
class Operator:
    """One operator of a step, for an array of configurations.

    Attributes
    ----------
    name : str
        Name in the model ("qkv_projection"), by which the breakdown is grouped.
    kind : OperatorKind
        Decides the dimensions and the table.
    dtype : str
        A key of `BYTES_PER_ELEMENT`: weights for gemm and moe, KV cache for attention.
    dims : dict[str, IntArray]
        One array of shape (n_configs,) per name in ``DIMENSIONS[kind]``.
    count : FloatArray
        Number of runs in one pass over all pipeline stages, shape (n_configs,); 0 if a configuration does not
        have it.
    """

    name: str
    kind: OperatorKind
    dtype: str
    dims: dict[str, IntArray]
    count: FloatArray
