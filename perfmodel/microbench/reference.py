"""A dense decoder in torch, of the same architecture and kernels: what a measured table must predict."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F  # noqa: N812 - the name that torch's own documentation has

from fleetplan.perfmodel.architecture import DenseFfn, GroupedQueryAttention, ModelArchitecture
from fleetplan.perfmodel.microbench.kernels import Attend, prompt_attention, token_attention
from fleetplan.perfmodel.microbench.layer_parts import (
    gated,
    heads_of,
    norm_with_residual,
    rotary_table,
    write_cache,
)

Cache = list[tuple[torch.Tensor, torch.Tensor]]
"""Keys and values of every layer, each of shape (batch, key-value heads, tokens, width)."""


@dataclass(frozen=True, slots=True)
class _Layer:
    attention: GroupedQueryAttention
    qkv: torch.Tensor
    output: torch.Tensor
    gate_up: torch.Tensor
    down: torch.Tensor
    norms: tuple[torch.Tensor, torch.Tensor]


class ReferenceDecoder:
    """A dense decoder with grouped-query attention, its weights at random, in BF16.

    Parameters
    ----------
    architecture : ModelArchitecture
        Decoder of dense layers without windows.
    where : torch.device
        For its weights.
    most_tokens : int
        Longest sequence, prompt and generated tokens.

    Raises
    ------
    ValueError
        Layers of another kind.
    """

    def __init__(self, architecture: ModelArchitecture, where: torch.device, most_tokens: int) -> None:
        self.hidden_size = architecture.hidden_size
        self._where = where
        self._embedding = self._weights(architecture.vocab_size, self.hidden_size)
        self._head = self._weights(architecture.vocab_size, self.hidden_size)
        self._norm = self._weights(self.hidden_size)
        self._most_tokens = most_tokens
        self._turns: dict[int, tuple[torch.Tensor, torch.Tensor]] = {}
        self._layers = [
            self._layer(group.attention, group.ffn)
            for group in architecture.groups
            for _ in range(group.count)
        ]

    def prefill(self, tokens: torch.Tensor, attend: Attend = prompt_attention) -> tuple[torch.Tensor, Cache]:
        """Compute prompts of shape (batch, tokens); the logits of their last tokens, and their cache."""
        stream = update = F.embedding(tokens, self._embedding)
        cache: Cache = []
        for layer in self._layers:
            stream, normed = norm_with_residual(stream, update, layer.norms[0])
            queries, keys, values = self._heads(layer, normed, 0)
            # A cache has separate memory, laid out for attention.
            empty = torch.empty((2, *keys.shape), dtype=keys.dtype, device=self._where)
            cache.append((empty[0], empty[1]))
            write_cache(cache[-1], keys, values)
            update = self._joined(layer, attend(queries, keys, values))
            stream, update = self._ffn(layer, stream, update)
        _, normed = norm_with_residual(stream[:, -1], update[:, -1], self._norm)
        return F.linear(normed, self._head), cache

    def decode(self, tokens: torch.Tensor, cache: Cache, attend: Attend = token_attention) -> torch.Tensor:
        """Compute the next logits of sequences whose last token, of shape (batch, 1), is not cached yet.

        The cache has room for one token more than there are; the last place is written.
        """
        stream = update = F.embedding(tokens, self._embedding)
        for layer, (keys, values) in zip(self._layers, cache, strict=True):
            stream, normed = norm_with_residual(stream, update, layer.norms[0])
            queries, key, value = self._heads(layer, normed, keys.shape[2] - 1)
            write_cache((keys, values), key, value)
            update = self._joined(layer, attend(queries, keys, values))
            stream, update = self._ffn(layer, stream, update)
        _, normed = norm_with_residual(stream[:, -1], update[:, -1], self._norm)
        return F.linear(normed, self._head)

    def _ffn(
        self, layer: _Layer, stream: torch.Tensor, update: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        stream, normed = norm_with_residual(stream, update, layer.norms[1])
        return stream, F.linear(gated(F.linear(normed, layer.gate_up)), layer.down)

    def _heads(
        self, layer: _Layer, normed: torch.Tensor, first: int
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        own = layer.attention
        cosines, sines = self._turns[own.head_dim]
        last = first + normed.shape[1]
        turns = cosines[first:last], sines[first:last]
        return heads_of(F.linear(normed, layer.qkv), own.heads, own.kv_heads, turns)

    @staticmethod
    def _joined(layer: _Layer, attended: torch.Tensor) -> torch.Tensor:
        return F.linear(attended.transpose(1, 2).flatten(2), layer.output)

    def _layer(self, attention: object, ffn: object) -> _Layer:
        if not isinstance(attention, GroupedQueryAttention) or attention.window:
            raise ValueError("the reference decoder has grouped-query attention without a window alone")
        if not isinstance(ffn, DenseFfn) or not ffn.gated:
            raise ValueError("the reference decoder has gated dense layers alone")
        if attention.value_head_dim != attention.head_dim:
            raise ValueError("the reference decoder has values as wide as keys alone")
        if attention.head_dim not in self._turns:
            self._turns[attention.head_dim] = rotary_table(self._most_tokens, attention.head_dim, self._where)
        hidden, width = self.hidden_size, attention.heads * attention.value_head_dim
        projected = attention.heads * attention.head_dim + attention.kv_elements_per_token
        return _Layer(
            attention,
            self._weights(projected, hidden),
            self._weights(hidden, width),
            self._weights(2 * ffn.intermediate_size, hidden),
            self._weights(hidden, ffn.intermediate_size),
            (self._weights(hidden), self._weights(hidden)),
        )

    def _weights(self, *shape: int) -> torch.Tensor:
        # Small, so that sums over a thousand of them stay in range.
        return (torch.randn(*shape, device=self._where) * 0.02).to(torch.bfloat16)
