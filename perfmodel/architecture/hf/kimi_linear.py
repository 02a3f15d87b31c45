"""Kimi delta attention with latent attention in between, and experts in a latent space (Kimi-K3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from fleetplan.fleet.figures import counted
from fleetplan.perfmodel.architecture.hf.attention import latent
from fleetplan.perfmodel.architecture.hf.ffn import shared_expert_layers
from fleetplan.perfmodel.architecture.hf.reader import ConfigReader
from fleetplan.perfmodel.architecture.layers import Attention, Ffn, LinearAttention, LinearVariant, MoeFfn

_KEY: Final = "linear_attn_config"


def kimi_linear_attention(reader: ConfigReader) -> list[Attention]:
    """Delta attention in the layers of `kda_layers`, latent attention in those of `full_attn_layers`."""
    part = reader.values.get(_KEY)
    if not isinstance(part, Mapping):
        reader.refuse(f"{_KEY!r} must be a mapping")
    inner = ConfigReader(reader.model, reader.model_type, part)
    if not inner.flag("use_full_rank_gate", absent=False):
        reader.refuse("'use_full_rank_gate': output gates of low rank are not understood")
    heads, width = inner.count("num_heads"), inner.count("head_dim")
    linear = LinearAttention(
        variant=LinearVariant.KIMI_DELTA,
        key_heads=heads,
        value_heads=heads,
        key_head_dim=width,
        value_head_dim=width,
        convolution_width=inner.count("short_conv_kernel_size"),
        # The decay goes through the width of a head. Source: flash-linear-attention, fla/layers/kda.py.
        decay_rank=width,
    )
    softmax = latent(reader, None, output_gate=reader.flag("mla_use_output_gate", absent=False))
    layers = reader.count("num_hidden_layers")
    listed = [inner.items(key) or () for key in ("kda_layers", "full_attn_layers")]
    # Layers are counted from one.
    if sorted(str(each) for some in listed for each in some) != sorted(map(str, range(1, layers + 1))):
        reader.refuse(
            f"'kda_layers' and 'full_attn_layers' must list each of the {counted(layers, 'layer')} once"
        )
    delta = {int(str(each)) for each in listed[0]}
    return [linear if layer in delta else softmax for layer in range(1, layers + 1)]


def latent_expert_layers(reader: ConfigReader) -> list[Ffn]:
    """Dense layers first, then shared experts beside routed ones of their own width of tokens."""
    width = reader.switched_count("routed_expert_hidden_size")
    return [
        replace(ffn, latent_size=width) if isinstance(ffn, MoeFfn) else ffn
        for ffn in shared_expert_layers(reader)
    ]
