"""Small kernels of a decoder layer in torch, shared by the measurements and the reference decoder."""

from __future__ import annotations

from typing import Final

import torch
import torch.nn.functional as F  # noqa: N812 - the name that torch's own documentation has

ROTARY_BASE: Final = 10_000.0
"""Base of the angles of rotary positions. Source: Su et al., RoFormer (2021), section 3.2.2."""

_EPSILON: Final = 1e-6


def norm_with_residual(
    stream: torch.Tensor, update: torch.Tensor, weight: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Add a block's output to the residual stream, and norm the sum for the next block."""
    summed = stream + update
    return summed, F.rms_norm(summed, (summed.shape[-1],), weight, _EPSILON)


def rotary_table(tokens: int, head_dim: int, where: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """Return cosines and sines of a number of positions, each of shape (tokens, 1, head_dim), once per model.

    The sines of the first half are negative: they go with the second half of a head.
    """
    steps = torch.arange(0, head_dim, 2, device=where, dtype=torch.float32) / head_dim
    places = torch.arange(tokens, device=where, dtype=torch.float32)
    angles = torch.outer(places, ROTARY_BASE**-steps)
    cosines, sines = torch.cos(angles), torch.sin(angles)
    whole = torch.cat([cosines, cosines], dim=-1), torch.cat([-sines, sines], dim=-1)
    return whole[0].to(torch.bfloat16).unsqueeze(1), whole[1].to(torch.bfloat16).unsqueeze(1)


def heads_of(
    projected: torch.Tensor, heads: int, kv_heads: int, turns: tuple[torch.Tensor, torch.Tensor]
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return queries, keys and values, shape (batch, heads, tokens, width), rotated by position.

    Parameters
    ----------
    projected : torch.Tensor
        Shape (batch, tokens, heads and twice kv_heads of a width), BF16.
    heads, kv_heads : int
        Query heads, and heads of keys and of values.
    turns : tuple[torch.Tensor, torch.Tensor]
        Rows of `rotary_table` for the tokens.
    """
    split = projected.unflatten(-1, (heads + 2 * kv_heads, -1))
    plain = split[..., : heads + kv_heads, :]
    cosines, sines = turns
    turned = torch.addcmul(plain * cosines, plain.roll(plain.shape[-1] // 2, -1), sines).transpose(1, 2)
    return turned[:, :heads], turned[:, heads:], split[..., heads + kv_heads :, :].transpose(1, 2)


def write_cache(cache: tuple[torch.Tensor, torch.Tensor], keys: torch.Tensor, values: torch.Tensor) -> None:
    """Write new keys and values at the end of a cache; all of shape (batch, kv heads, tokens, width)."""
    for kept, new in zip(cache, (keys, values), strict=True):
        kept[:, :, kept.shape[2] - new.shape[2] :] = new


def gated(gate_up: torch.Tensor) -> torch.Tensor:
    """Activate the gate and multiply: the operation between the two products of a feed-forward block."""
    gate, up = gate_up.chunk(2, dim=-1)
    return F.silu(gate) * up
