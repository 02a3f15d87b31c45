"""A decoder as the performance model sees it: groups of equal layers between embedding and head.

Embedding and LM head are counted apart from the layers because they sit on the first and the last
pipeline stage.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from fleetplan.perfmodel.architecture.compressed import CompressedAttention
from fleetplan.perfmodel.architecture.encoder import VisionEncoder
from fleetplan.perfmodel.architecture.layers import (
    WHOLE_CONTEXT,
    Attention,
    DenseFfn,
    GroupedQueryAttention,
    LatentAttention,
    LayerGroup,
    MoeFfn,
    kept_tokens,
    kv_bytes_per_token_per_layer,
)
from fleetplan.perfmodel.operators import STATE_BYTES

STATE_BYTES_PER_ELEMENT: Final = STATE_BYTES


@dataclass(frozen=True, slots=True)
class WeightCount:
    """Weights by part. One token multiplies with all but the unused routed experts and the embedding."""

    attention: int = 0
    dense_ffn: int = 0
    router: int = 0
    routed_experts: int = 0
    shared_experts: int = 0
    embedding: int = 0
    head: int = 0

    @property
    def total(self) -> int:
        """All weights."""
        return self.layers + self.embedding + self.head

    @property
    def layers(self) -> int:
        """Weights of the decoder layers: all but embedding and head."""
        return self.attention + self.dense_ffn + self.router + self.routed_experts + self.shared_experts


@dataclass(frozen=True, slots=True)
class NativeQuantisation:
    """Data type of weights in the published checkpoint, by its config.

    Attributes
    ----------
    method : str
        `quant_method` of the config: fp8, mxfp4, modelopt, compressed-tensors, ...
    dtype : str or None
        A data type of the operator tables where the method says it without doubt, else None.
    """

    method: str
    dtype: str | None


@dataclass(frozen=True, slots=True)
class ModelArchitecture:
    """The shapes of a decoder.

    Attributes
    ----------
    name : str
        HF id, or what the user calls the model.
    model_type : str
        `model_type` of the config: which family of decoders it is.
    hidden_size, vocab_size : int
        Width of the residual stream, and number of tokens the head tells apart.
    tied_embeddings : bool
        Embedding and head are one matrix.
    groups : tuple[LayerGroup, ...]
        Layers of equal shape together, in the order in which each shape first appears.
    max_context_tokens : int or None
        Positions that the config allows; None if not stated. [tokens]
    quantisation : NativeQuantisation or None
        Data type of weights in the checkpoint; None for BF16.
    left_out : tuple[str, ...]
        Parts of the checkpoint that no decoding step runs here: vision tower, draft layers.
    parallel_blocks : bool
        Attention and feed-forward block of a layer read the same normed input, and their sums are added
        before they are reduced over tensor-parallel accelerators (GPT-J, Falcon).
    residual_block_layers : int
        Layers whose outputs are one block of residuals, over all of which each block of a layer attends; 0
        where outputs are added up (all but Kimi-K3).
    vision : VisionEncoder or None
        The encoder of images; None without one, or where its shapes are not known.
    residual_streams : int
        Copies of the residual stream between blocks; more than one with hyper-connections, which mix them
        before and after every block. Their weights are not counted: below 0.02 % of DeepSeek-V4.
    """

    name: str
    model_type: str
    hidden_size: int
    vocab_size: int
    tied_embeddings: bool
    groups: tuple[LayerGroup, ...]
    max_context_tokens: int | None = None
    quantisation: NativeQuantisation | None = None
    left_out: tuple[str, ...] = ()
    parallel_blocks: bool = False
    residual_block_layers: int = 0
    vision: VisionEncoder | None = None
    residual_streams: int = 1

    @property
    def routed_experts(self) -> int:
        """Routed experts of the largest mixture; 0 without any."""
        mixtures = [group.ffn for group in self.groups if isinstance(group.ffn, MoeFfn)]
        return max((ffn.experts - ffn.merged_experts for ffn in mixtures), default=0)

    @property
    def layer_count(self) -> int:
        """Layers of the decoder."""
        return sum(group.count for group in self.groups)

    @property
    def residual_blocks(self) -> int:
        """Blocks of residuals that are kept through the layers; 0 if outputs are added up."""
        return -(-self.layer_count // self.residual_block_layers) if self.residual_block_layers else 0

    def group_weights(self, group: LayerGroup) -> WeightCount:
        """Return the weights by part of ONE layer of `group`."""
        attention = 0 if group.attention is None else group.attention.weights(self.hidden_size)
        match group.ffn:
            case None:
                return WeightCount(attention=attention)
            case DenseFfn() as dense:
                return WeightCount(attention=attention, dense_ffn=dense.weights(self.hidden_size))
            case MoeFfn() as moe:
                return WeightCount(
                    attention=attention,
                    router=moe.router_weights(self.hidden_size),
                    routed_experts=moe.routed_weights(self.hidden_size),
                    shared_experts=moe.shared_weights(self.hidden_size),
                )

    def weight_count(self) -> WeightCount:
        """Return the weights of the whole model by part; a tied head counts in `embedding` alone."""
        layers = [(group.count, self.group_weights(group)) for group in self.groups]
        matrix = self.hidden_size * self.vocab_size
        return WeightCount(
            attention=_total((count, each.attention) for count, each in layers),
            dense_ffn=_total((count, each.dense_ffn) for count, each in layers),
            router=_total((count, each.router) for count, each in layers),
            routed_experts=_total((count, each.routed_experts) for count, each in layers),
            shared_experts=_total((count, each.shared_experts) for count, each in layers),
            embedding=matrix,
            head=0 if self.tied_embeddings else matrix,
        )

    @property
    def total_parameters(self) -> int:
        """Weights of the whole model."""
        return self.weight_count().total

    @property
    def active_parameters(self) -> int:
        """Weights that one token multiplies with.

        Layers with `top_k` of the experts, and the head (the embedding is a look-up of one row).
        """
        unused = 0
        for group in self.groups:
            if isinstance(group.ffn, MoeFfn):
                routed = group.ffn.routed_weights(self.hidden_size)
                unused += group.count * (routed - routed * group.ffn.top_k // group.ffn.experts)
        return self.weight_count().layers - unused + self.hidden_size * self.vocab_size

    @property
    def attended_limits(self) -> tuple[int, ...]:
        """Contexts beyond which a layer attends to no more tokens, each once, rising. [tokens]."""
        limits = {_attended_limit(group.attention) for group in self.groups}
        return tuple(sorted(limits - {WHOLE_CONTEXT}))

    def kv_bytes_per_token(self, bytes_per_element: float) -> float:
        """Return the cache that one token adds over all layers while it is inside every window [bytes]."""
        return sum(
            group.count * kv_bytes_per_token_per_layer(group.attention, bytes_per_element)
            for group in self.groups
            if group.attention is not None
        )

    def kv_bytes_per_sequence(self, context_tokens: int, bytes_per_element: float) -> float:
        """Return the cache and recurrent state that a sequence holds over all layers [bytes].

        Parameters
        ----------
        context_tokens : int
            Tokens of the sequence; windowed layers keep their last `window` tokens. [tokens]
        bytes_per_element : float
            Data type of the cache; a recurrent state has `STATE_BYTES_PER_ELEMENT` with any cache.
        """
        held = 0.0
        for group in self.groups:
            if group.attention is not None:
                cache = _cache_bytes(group.attention, context_tokens, bytes_per_element)
                state = group.attention.state_elements_per_sequence * STATE_BYTES_PER_ELEMENT
                held += group.count * (cache + state)
        return held


def _attended_limit(attention: Attention | None) -> int:
    """Return tokens that a layer attends to at most, in entries or one by one; `WHOLE_CONTEXT` for all."""
    match attention:
        case GroupedQueryAttention(index=index) if index is not None:
            return index.block_tokens * index.blocks
        case GroupedQueryAttention():
            return attention.window
        case LatentAttention(index=index) if index is not None:
            return index.top_k
        case CompressedAttention(index=index) if index is not None:
            return index.top_k * attention.ratio
        case CompressedAttention(ratio=0):
            return attention.window
        case _:
            return WHOLE_CONTEXT


def _cache_bytes(attention: Attention, context_tokens: int, bytes_per_element: float) -> float:
    if isinstance(attention, CompressedAttention):
        return float(attention.cache_bytes(context_tokens, bytes_per_element))
    kept = kept_tokens(attention, context_tokens)
    return kept * kv_bytes_per_token_per_layer(attention, bytes_per_element)


def _total(terms: Iterable[tuple[int, int]]) -> int:
    return sum(count * each for count, each in terms)
