"""The layers of a decoder: attention and feed-forward blocks with their weight and cache shapes.

Counts are of matrix weights. Norm weights and biases are left out: together they are below 0.1 % of
every model of the catalogue.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, Final, Literal

from fleetplan.perfmodel.architecture.compressed import CompressedAttention
from fleetplan.perfmodel.architecture.sparse_index import BlockIndex, SparseIndex

WHOLE_CONTEXT: Final = 0
"""The `window` of attention that sees every earlier token [tokens]."""


class LinearVariant(StrEnum):
    """Recurrence of a linear-attention layer; it determines the width of its input projection."""

    MAMBA2 = "mamba2"
    GATED_DELTA_NET = "gated_delta_net"
    KIMI_DELTA = "kimi_delta"
    LIGHTNING = "lightning"


@dataclass(frozen=True, slots=True)
class GroupedQueryAttention:
    """Softmax attention with `heads` query heads that share `kv_heads` key-value heads (MHA, GQA, MQA).

    Attributes
    ----------
    heads, kv_heads : int
        Query heads and key-value heads of the whole layer.
    head_dim : int
        Width of a query and key head.
    value_head_dim : int
        Width of a value head; `head_dim` in most models.
    window : int
        Tokens that a query sees and the cache keeps; `WHOLE_CONTEXT` without a limit. [tokens]
    chunked : bool
        Whether the window does not slide: tokens see only those of their chunk of `window` tokens, so
        `window` is the largest context.
    output_gate : bool
        The query projection also yields a gate as wide as the heads' output.
    index : BlockIndex or None
        Index that selects the blocks of tokens of a query; None for all earlier tokens.
    query_key_norm : bool
        The config says that query and key heads are normed, which other families always do or never.
    """

    kind: ClassVar[Literal["gqa"]] = "gqa"

    heads: int
    kv_heads: int
    head_dim: int
    value_head_dim: int
    window: int = WHOLE_CONTEXT
    chunked: bool = False
    output_gate: bool = False
    index: BlockIndex | None = None
    query_key_norm: bool = False

    def weights(self, hidden_size: int) -> int:
        """Return weights of the query, key, value and output projections of one layer, and of its indexer."""
        output_width = self.heads * self.value_head_dim
        queries = self.heads * self.head_dim + (output_width if self.output_gate else 0)
        index = 0 if self.index is None else self.index.weights(hidden_size)
        return hidden_size * (queries + self.kv_elements_per_token + output_width) + index

    @property
    def kv_elements_per_token(self) -> int:
        """Cached elements of one token in one layer (keys and values)."""
        return self.kv_heads * (self.head_dim + self.value_head_dim)

    @property
    def state_elements_per_sequence(self) -> int:
        """Cached elements of a sequence that do not grow with it: none."""
        return 0


@dataclass(frozen=True, slots=True)
class LatentAttention:
    """Multi-head latent attention (MLA): keys and values are rebuilt from one latent vector a token.

    Attributes
    ----------
    heads : int
        Query heads.
    query_rank : int or None
        Width of the latent vector of the queries; None if queries are projected at once.
    kv_rank : int
        Width of the latent vector of keys and values, which is what the cache holds.
    nope_head_dim, rope_head_dim : int
        Parts of a query and key head without and with rotary positions; the latter is cached once for
        all heads.
    value_head_dim : int
        Width of a value head.
    index : SparseIndex or None
        Index that selects the tokens of a query; None for all earlier tokens.
    output_gate : bool
        A projection of the hidden state gates the heads' output (Kimi-K3).
    """

    kind: ClassVar[Literal["mla"]] = "mla"

    heads: int
    query_rank: int | None
    kv_rank: int
    nope_head_dim: int
    rope_head_dim: int
    value_head_dim: int
    index: SparseIndex | None = None
    output_gate: bool = False

    def weights(self, hidden_size: int) -> int:
        """Return weights of the down, up and output projections of one layer, of its indexer and its gate."""
        query_width = self.heads * (self.nope_head_dim + self.rope_head_dim)
        if self.query_rank is None:
            queries = hidden_size * query_width
        else:
            queries = self.query_rank * (hidden_size + query_width)
        down = hidden_size * self.kv_elements_per_token
        up = self.kv_rank * self.heads * (self.nope_head_dim + self.value_head_dim)
        output = self.heads * self.value_head_dim * hidden_size
        gate = output if self.output_gate else 0
        return queries + down + up + output + gate + self.index_weights(hidden_size)

    def index_weights(self, hidden_size: int) -> int:
        """Return the weights of the indexer of one layer, which no parallelism splits; 0 without one."""
        return 0 if self.index is None else self.index.weights(hidden_size, self.query_rank or hidden_size)

    @property
    def kv_elements_per_token(self) -> int:
        """Cached elements of one token in one layer (latent vector and rotary key), without an index key."""
        return self.kv_rank + self.rope_head_dim

    @property
    def state_elements_per_sequence(self) -> int:
        """Cached elements of a sequence that do not grow with it: none."""
        return 0


@dataclass(frozen=True, slots=True)
class LinearAttention:
    """A recurrence with a state of fixed size instead of a growing cache.

    Mamba-2, the gated delta net, Kimi delta attention, which decays each channel of a key separately, and
    lightning attention, a decaying sum without a convolution.

    Attributes
    ----------
    variant : LinearVariant
        Recurrence.
    key_heads, value_heads : int
        For Mamba-2: groups of B and C, and heads.
    key_head_dim, value_head_dim : int
        For Mamba-2: the state size, and the head width.
    convolution_width : int
        Taps of the causal convolution before the recurrence; 1 without one. [tokens]
    decay_rank : int
        Width of the latent vector from which the decay of every channel is projected; 0 without one.
    """

    kind: ClassVar[Literal["linear"]] = "linear"

    variant: LinearVariant
    key_heads: int
    value_heads: int
    key_head_dim: int
    value_head_dim: int
    convolution_width: int
    decay_rank: int = 0

    @property
    def scalars(self) -> int:
        """Scalars a value head and token: dt, decay and beta, or beta alone (Kimi); none in lightning."""
        return {
            LinearVariant.MAMBA2: 1,
            LinearVariant.GATED_DELTA_NET: 2,
            LinearVariant.KIMI_DELTA: 1,
            LinearVariant.LIGHTNING: 0,
        }[self.variant]

    @property
    def is_delta(self) -> bool:
        """Whether it also subtracts what the state would predict."""
        return self.variant in (LinearVariant.GATED_DELTA_NET, LinearVariant.KIMI_DELTA)

    def decay_weights(self, hidden_size: int, key_heads: int) -> int:
        """Return the weights of the projections of the channel decays, by key heads."""
        return self.decay_rank * (hidden_size + key_heads * self.key_head_dim)

    def convolution_weights(self, channels: int) -> int:
        """Return the weights of the convolution over a number of channels; none for a single tap."""
        return channels * self.convolution_width if self.convolution_width > 1 else 0

    @property
    def _value_width(self) -> int:
        return self.value_heads * self.value_head_dim

    @property
    def _convolution_channels(self) -> int:
        return self._value_width + 2 * self.key_heads * self.key_head_dim

    def weights(self, hidden_size: int) -> int:
        """Return the weights of the input and output projections and the convolution of one layer."""
        projected = self._convolution_channels + self._value_width + self.scalars * self.value_heads
        decay = self.decay_weights(hidden_size, self.key_heads)
        convolution = self.convolution_weights(self._convolution_channels)
        return hidden_size * (projected + self._value_width) + decay + convolution

    @property
    def kv_elements_per_token(self) -> int:
        """Cached elements that grow with the sequence: none."""
        return 0

    @property
    def state_elements_per_sequence(self) -> int:
        """Elements of the recurrent state and of the convolution's last tokens, in one layer."""
        recurrent = self._value_width * self.key_head_dim
        return recurrent + self._convolution_channels * (self.convolution_width - 1)


Attention = GroupedQueryAttention | LatentAttention | LinearAttention | CompressedAttention


@dataclass(frozen=True, slots=True)
class DenseFfn:
    """A feed-forward block that every token passes.

    Attributes
    ----------
    intermediate_size : int
        Width between the two projections.
    gated : bool
        Gate and up projection (SwiGLU, GeGLU) instead of the up projection alone.
    """

    kind: ClassVar[Literal["dense"]] = "dense"

    intermediate_size: int
    gated: bool = True

    def weights(self, hidden_size: int) -> int:
        """Return the weights of gate, up and down projection of one layer."""
        return (3 if self.gated else 2) * hidden_size * self.intermediate_size


@dataclass(frozen=True, slots=True)
class MoeFfn:
    """A mixture of experts: a router picks `top_k` of `experts` a token; shared experts run for all.

    Attributes
    ----------
    experts, top_k : int
        Routed experts of a layer, and how many of them a token uses.
    intermediate_size : int
        Width of one routed expert.
    gated : bool
        Experts have gate and up projections instead of up alone.
    shared_experts : int
        Experts that every token uses beside the routed ones.
    shared_intermediate_size : int
        Width of all shared experts together: they run as one dense block. 0 without any.
    latent_size : int or None
        Width that tokens are projected to before the routed experts and back from after them;
        None if experts work on the hidden size.
    merged_experts : int
        Number of `experts` and of `top_k` that are shared experts which a framework runs among the routed
        ones; if tokens are dispatched to other accelerators, they stay.
    """

    kind: ClassVar[Literal["moe"]] = "moe"

    experts: int
    top_k: int
    intermediate_size: int
    gated: bool = True
    shared_experts: int = 0
    shared_intermediate_size: int = 0
    latent_size: int | None = None
    merged_experts: int = 0

    def routed_weights(self, hidden_size: int) -> int:
        """Return the weights of all routed experts of one layer."""
        width = hidden_size if self.latent_size is None else self.latent_size
        return self.experts * (3 if self.gated else 2) * width * self.intermediate_size

    def shared_weights(self, hidden_size: int) -> int:
        """Return the weights of the shared experts of one layer."""
        return (3 if self.gated else 2) * hidden_size * self.shared_intermediate_size

    def router_weights(self, hidden_size: int) -> int:
        """Return the weights of the router, and of the projections around a latent space, of one layer."""
        latent = 0 if self.latent_size is None else 2 * hidden_size * self.latent_size
        return hidden_size * self.experts + latent


Ffn = DenseFfn | MoeFfn


@dataclass(frozen=True, slots=True)
class LayerGroup:
    """`count` equal layers.

    Attributes
    ----------
    count : int
        Number of layers with this shape, not necessarily adjacent.
    attention : Attention or None
        None for a layer that is a feed-forward block alone (hybrids number each block as a layer).
    ffn : Ffn or None
        None for a layer that is attention or a recurrence alone.
    """

    count: int
    attention: Attention | None
    ffn: Ffn | None


def kept_tokens(attention: Attention, context_tokens: int) -> int:
    """Return the tokens of a sequence that a layer's cache keeps [tokens]."""
    if isinstance(attention, GroupedQueryAttention) and attention.window != WHOLE_CONTEXT:
        return min(context_tokens, attention.window)
    return context_tokens


def index_bytes_per_token(attention: Attention) -> float:
    """Return the index key of a token in a layer, on every accelerator of a group [bytes]; or 0."""
    if isinstance(attention, LinearAttention) or attention.index is None:
        return 0.0
    return attention.index.cache_bytes_per_token


def kv_bytes_per_token_per_layer(attention: Attention, bytes_per_element: float) -> float:
    """Return the cache that one token adds in one layer [bytes]."""
    return attention.kv_elements_per_token * bytes_per_element + index_bytes_per_token(attention)
