"""A dense decoder in torch, of the same architecture and kernels: what a measured table must predict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import torch
import torch.nn.functional as F  # noqa: N812 - the name that torch's own documentation has

from fleetplan.perfmodel.architecture import DenseFfn, GroupedQueryAttention, ModelArchitecture
from fleetplan.perfmodel.microbench.kernels import norm_with_residual, prompt_attention, token_attention

Cache = list[tuple[torch.Tensor, torch.Tensor]]
"""Keys and values of every layer, each of shape (batch, key-value heads, tokens, width)."""

ROTARY_BASE: Final = 10_000.0
"""Of the angles of rotary positions. Source: Su et al., RoFormer (2021), section 3.2.2."""


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
        Of dense layers without windows.
    where : torch.device
        For its weights.

    Raises
    ------
    ValueError
        Layers of another kind.
    """

    def __init__(self, architecture: ModelArchitecture, where: torch.device) -> None:
        self.hidden_size = architecture.hidden_size
        self._where = where
        self._embedding = self._weights(architecture.vocab_size, self.hidden_size)
        self._head = self._weights(architecture.vocab_size, self.hidden_size)
        self._norm = self._weights(self.hidden_size)
        self._layers = [
            self._layer(group.attention, group.ffn)
            for group in architecture.groups
            for _ in range(group.count)
        ]

    def prefill(self, tokens: torch.Tensor) -> tuple[torch.Tensor, Cache]:
        """Compute prompts of shape (batch, tokens); the logits of their last tokens, and their cache."""
        stream = update = F.embedding(tokens, self._embedding)
        cache: Cache = []
        for layer in self._layers:
            stream, normed = norm_with_residual(stream, update, layer.norms[0])
            queries, keys, values = self._heads(layer, normed, 0)
            cache.append((keys, values))
            update = self._joined(layer, prompt_attention(queries, keys, values))
            stream, update = self._ffn(layer, stream, update)
        _, normed = norm_with_residual(stream[:, -1], update[:, -1], self._norm)
        return F.linear(normed, self._head), cache

    def decode(self, tokens: torch.Tensor, cache: Cache) -> torch.Tensor:
        """Compute the next logits of sequences whose last token, of shape (batch, 1), is not cached yet.

        The cache has room for one token more than there are; the last place is written.
        """
        stream = update = F.embedding(tokens, self._embedding)
        for layer, (keys, values) in zip(self._layers, cache, strict=True):
            stream, normed = norm_with_residual(stream, update, layer.norms[0])
            queries, key, value = self._heads(layer, normed, keys.shape[2] - 1)
            keys[:, :, -1:], values[:, :, -1:] = key, value
            update = self._joined(layer, token_attention(queries, keys, values))
            stream, update = self._ffn(layer, stream, update)
        _, normed = norm_with_residual(stream[:, -1], update[:, -1], self._norm)
        return F.linear(normed, self._head)

    def _ffn(
        self, layer: _Layer, stream: torch.Tensor, update: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        stream, normed = norm_with_residual(stream, update, layer.norms[1])
        gate, up = F.linear(normed, layer.gate_up).chunk(2, dim=-1)
        return stream, F.linear(F.silu(gate) * up, layer.down)

    def _heads(
        self, layer: _Layer, normed: torch.Tensor, first: int
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        own = layer.attention
        projected = F.linear(normed, layer.qkv)
        split = projected.split(
            [own.heads * own.head_dim, own.kv_heads * own.head_dim, own.kv_heads * own.value_head_dim], dim=-1
        )
        counts = (own.heads, own.kv_heads, own.kv_heads)
        queries, keys, values = (
            part.unflatten(-1, (count, -1)).transpose(1, 2) for part, count in zip(split, counts, strict=True)
        )
        places = torch.arange(first, first + normed.shape[1], device=self._where, dtype=torch.float32)
        steps = torch.arange(0, own.head_dim, 2, device=self._where, dtype=torch.float32) / own.head_dim
        angles = torch.outer(places, ROTARY_BASE**-steps).to(torch.bfloat16)
        turned = (torch.cos(angles), torch.sin(angles))
        return _turned(queries, *turned), _turned(keys, *turned), values

    @staticmethod
    def _joined(layer: _Layer, attended: torch.Tensor) -> torch.Tensor:
        return F.linear(attended.transpose(1, 2).flatten(2), layer.output)

    def _layer(self, attention: object, ffn: object) -> _Layer:
        if not isinstance(attention, GroupedQueryAttention) or attention.window:
            raise ValueError("the reference decoder has grouped-query attention without a window alone")
        if not isinstance(ffn, DenseFfn) or not ffn.gated:
            raise ValueError("the reference decoder has gated dense layers alone")
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


def _turned(heads: torch.Tensor, cosines: torch.Tensor, sines: torch.Tensor) -> torch.Tensor:
    """Turn the halves of every head by the angle of its place."""
    first, second = heads.chunk(2, dim=-1)
    return torch.cat([first * cosines - second * sines, second * cosines + first * sines], dim=-1)
