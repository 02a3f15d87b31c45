"""The operators a decoder step is made of, and their dimensions.

Every operator is a kind, a data type and one integer array per dimension. The same arrays go to the
measured tables and to the roofline, so a number can be compared with its speed of light.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from fleetplan.perfmodel.operators.arrays import FloatArray, IntArray


class OperatorKind(StrEnum):
    """What an operator does; the kind decides its dimensions and its table."""

    GEMM = "gemm"
    PREFILL_ATTENTION = "prefill_attention"
    DECODE_ATTENTION = "decode_attention"
    LATENT_PREFILL_ATTENTION = "latent_prefill_attention"
    LATENT_DECODE_ATTENTION = "latent_decode_attention"
    SPARSE_ATTENTION = "sparse_attention"
    TOKEN_SELECTION = "token_selection"
    BATCHED_GEMM = "batched_gemm"
    DELTA_PREFILL = "delta_prefill"
    DELTA_DECODE = "delta_decode"
    SCAN_PREFILL = "scan_prefill"
    SCAN_DECODE = "scan_decode"
    MOE = "moe"
    UNGATED_MOE = "ungated_moe"
    DISPATCHED_MOE = "dispatched_moe"
    EVEN_MOE = "even_moe"
    EVEN_DISPATCHED_MOE = "even_dispatched_moe"
    ALL_REDUCE = "all_reduce"
    ALL_GATHER = "all_gather"
    REDUCE_SCATTER = "reduce_scatter"
    ALL_TO_ALL = "all_to_all"
    SEND_RECV = "send_recv"
    EXPERT_DISPATCH = "expert_dispatch"
    EXPERT_COMBINE = "expert_combine"
    ELEMENTWISE = "elementwise"
    TOKEN_SAMPLING = "token_sampling"


COLLECTIVE_KINDS: Final = frozenset(
    {
        OperatorKind.ALL_REDUCE,
        OperatorKind.ALL_GATHER,
        OperatorKind.REDUCE_SCATTER,
        OperatorKind.ALL_TO_ALL,
    }
)

EXPERT_KINDS: Final = frozenset(
    {
        OperatorKind.MOE,
        OperatorKind.UNGATED_MOE,
        OperatorKind.DISPATCHED_MOE,
        OperatorKind.EVEN_MOE,
        OperatorKind.EVEN_DISPATCHED_MOE,
    }
)
"""Routed experts, whatever kernel runs them and however their tokens are spread."""

_RECURRENCE: Final = ("key_heads", "value_heads", "key_head_dim", "value_head_dim", "taps")
_ROUTED: Final = ("tokens", "hidden", "top_k", "experts", "ep", "low_latency")
_EXPERTS: Final = ("tokens", "hidden", "intermediate", "top_k", "experts", "moe_tp", "moe_ep")

DIMENSIONS: Final[dict[OperatorKind, tuple[str, ...]]] = {
    # C[m, n] = A[m, k] B[k, n]; dtype is that of the weights B.
    OperatorKind.GEMM: ("m", "n", "k"),
    # Causal attention of `new_tokens` a sequence over `prefix_tokens` cached ones plus themselves;
    # heads are those of one accelerator; window 0 means the whole context; dtype is that of the KV cache.
    OperatorKind.PREFILL_ATTENTION: (
        "batch",
        "new_tokens",
        "prefix_tokens",
        "heads",
        "kv_heads",
        "head_dim",
        "window",
    ),
    # One new token a sequence over `context_tokens` cached ones.
    OperatorKind.DECODE_ATTENTION: ("batch", "context_tokens", "heads", "kv_heads", "head_dim", "window"),
    # Multi-head latent attention. Prompts attend to the rebuilt keys and values of each head; generated
    # tokens to the latent vectors themselves (absorbed form), which all heads share.
    OperatorKind.LATENT_PREFILL_ATTENTION: (
        "batch",
        "new_tokens",
        "prefix_tokens",
        "heads",
        "key_head_dim",
        "value_head_dim",
    ),
    OperatorKind.LATENT_DECODE_ATTENTION: ("batch", "context_tokens", "heads", "kv_rank", "rope_head_dim"),
    # Latent attention of every token to the `top_k` best of the tokens before it and itself, in the absorbed
    # form; a generated token is one new token. dtype is that of the KV cache.
    OperatorKind.SPARSE_ATTENTION: (
        "batch",
        "new_tokens",
        "prefix_tokens",
        "heads",
        "kv_rank",
        "rope_head_dim",
        "top_k",
    ),
    # The choice of those tokens: every new token's index heads score the index keys of all tokens before it,
    # and the `top_k` best are kept. dtype is that of the index keys.
    OperatorKind.TOKEN_SELECTION: ("batch", "new_tokens", "prefix_tokens", "heads", "head_dim", "top_k"),
    # `groups` products of their own: C_g[m, n] = A_g[m, k] B_g[k, n]; dtype is that of the weights B.
    OperatorKind.BATCHED_GEMM: ("m", "groups", "n", "k"),
    # Routed experts (gate-up, activation, down) on one accelerator. `tokens` are all the tokens that the
    # expert group sees; moe_tp splits an expert, moe_ep splits the experts.
    OperatorKind.MOE: _EXPERTS,
    # The same without a gate projection: two products instead of three.
    OperatorKind.UNGATED_MOE: _EXPERTS,
    # The same as MOE where tokens come from the accelerators of all expert groups, already sorted by expert;
    # low_latency 1 is a step without prompts. Frameworks have kernels of their own for it.
    OperatorKind.DISPATCHED_MOE: (*_EXPERTS, "low_latency"),
    # Both with tokens spread evenly over the accelerators of an expert group. `tokens` are those of the
    # group if all accelerators had as many as the busiest one; `experts` counts redundant copies as well.
    OperatorKind.EVEN_MOE: _EXPERTS,
    OperatorKind.EVEN_DISPATCHED_MOE: (*_EXPERTS, "low_latency"),
    # Recurrences with a state of fixed size, with the causal convolution of `taps` tokens before them: the
    # gated delta rule, and the plain scan (Mamba-2, lightning attention). Heads are those of one accelerator.
    OperatorKind.DELTA_PREFILL: ("batch", "new_tokens", *_RECURRENCE),
    OperatorKind.DELTA_DECODE: ("batch", *_RECURRENCE),
    OperatorKind.SCAN_PREFILL: ("batch", "new_tokens", *_RECURRENCE),
    OperatorKind.SCAN_DECODE: ("batch", *_RECURRENCE),
    # `message_bytes` is the full tensor that every rank ends up with (all-reduce, all-gather), starts
    # from (reduce-scatter), or sends in total (all-to-all). `stride` is the distance between
    # neighbouring ranks in accelerators: a group of 2 with stride 8 spans two hosts of 8.
    OperatorKind.ALL_REDUCE: ("message_bytes", "ranks", "stride"),
    OperatorKind.ALL_GATHER: ("message_bytes", "ranks", "stride"),
    OperatorKind.REDUCE_SCATTER: ("message_bytes", "ranks", "stride"),
    OperatorKind.ALL_TO_ALL: ("message_bytes", "ranks", "stride"),
    # Point to point between accelerators `stride` apart.
    OperatorKind.SEND_RECV: ("message_bytes", "stride"),
    # Tokens to the accelerators of their experts and back, with one accelerator an expert group: `tokens` are
    # those of one rank, `ep` neighbouring ranks hold the experts; low_latency 1 is a step without prompts.
    OperatorKind.EXPERT_DISPATCH: _ROUTED,
    OperatorKind.EXPERT_COMBINE: _ROUTED,
    # Norms, activations, residuals, embedding look-ups: memory traffic alone.
    OperatorKind.ELEMENTWISE: ("traffic_bytes",),
    # A token is drawn for each of `rows` sequences, from the logits of the whole vocabulary.
    OperatorKind.TOKEN_SAMPLING: ("rows", "vocab"),
}


@dataclass(frozen=True, slots=True)
class Operator:
    """One operator of a step, for an array of configurations.

    Attributes
    ----------
    name : str
        What it is in the model ("qkv_projection"); the breakdown is grouped by it.
    kind : OperatorKind
        Decides the dimensions and the table.
    dtype : str
        A key of `BYTES_PER_ELEMENT`: weights for gemm and moe, KV cache for attention.
    dims : dict[str, IntArray]
        One array of shape (n_configs,) per name in ``DIMENSIONS[kind]``.
    count : FloatArray
        How often it runs in one pass over all pipeline stages, shape (n_configs,).
        0 where a configuration does not have it.
    """

    name: str
    kind: OperatorKind
    dtype: str
    dims: dict[str, IntArray]
    count: FloatArray
