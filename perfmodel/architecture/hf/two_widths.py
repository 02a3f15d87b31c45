"""Decoders whose sliding layers have heads of their own beside experts from some layer on (Step, MiMo-V2).

Left out of the weights: the gate of each head of Step, one row of them a head, and sinks; together they are
below 0.1 % of either model.
"""

from __future__ import annotations

from collections.abc import Mapping

from fleetplan.perfmodel.architecture.hf.attention import grouped_query
from fleetplan.perfmodel.architecture.hf.ffn import chosen_experts
from fleetplan.perfmodel.architecture.hf.reader import ConfigReader
from fleetplan.perfmodel.architecture.hf.windows import layer_windows
from fleetplan.perfmodel.architecture.layers import (
    WHOLE_CONTEXT,
    Attention,
    DenseFfn,
    Ffn,
    GroupedQueryAttention,
    MoeFfn,
)


def step_attention(reader: ConfigReader) -> list[Attention]:
    """Attention over the whole context and in a window, by `layer_types` (Step 3.5 and 3.7).

    `attention_other_setting` has the heads of the layers that slide; without it they are as all others.
    """
    own = reader.values.get("attention_other_setting")
    if own is not None and not isinstance(own, Mapping):
        reader.refuse("'attention_other_setting' must hold the heads of other layers")
    sliding = reader
    if own:
        if own.get("attention_type", "sliding_attention") != "sliding_attention":
            reader.refuse("'attention_other_setting' of layers that do not slide is not understood")
        usual = {"num_attention_groups": "num_key_value_heads"}
        heads = {usual.get(str(key), str(key)): value for key, value in own.items()}
        sliding = ConfigReader(reader.model, reader.model_type, {**reader.values, **heads})
    windows = layer_windows(reader, reader.count("num_hidden_layers"))
    made = {
        window: grouped_query(reader if window == WHOLE_CONTEXT else sliding, window)
        for window in dict.fromkeys(windows)
    }
    return [made[window] for window in windows]


def step_ffn(reader: ConfigReader) -> list[Ffn]:
    """Return experts and a shared one in `moe_layers_enum`, or after the first dense layers (Step)."""
    layers, experts = reader.count("num_hidden_layers"), reader.count("num_experts")
    moe = MoeFfn(
        experts=experts,
        top_k=chosen_experts(reader, experts),
        intermediate_size=reader.count("moe_intermediate_size"),
        # One shared expert is part of the family: modeling code of Step-3.5-Flash, Step3p5MoEMLP.
        shared_experts=1,
        shared_intermediate_size=reader.count("share_expert_dim"),
    )
    dense = DenseFfn(reader.count("intermediate_size"))
    listed = reader.text("moe_layers_enum")
    if listed:
        named = [name.strip() for name in listed.split(",")]
        if not all(name.isdecimal() and int(name) < layers for name in named):
            reader.refuse(f"'moe_layers_enum' must name layers from 0 to {layers - 1}")
        routed = {int(name) for name in named}
    else:
        routed = set(range(reader.count("first_k_dense_replace"), layers))
    return [moe if layer in routed else dense for layer in range(layers)]


def mimo_attention(reader: ConfigReader) -> list[Attention]:
    """Attention over the whole context where `hybrid_layer_pattern` has a 0, in a window where it has a 1."""
    layers, window = reader.count("num_hidden_layers"), reader.count("sliding_window")
    for key in ("sliding_window_size", "attention_chunk_size"):
        if (reader.optional_count(key) or window) != window:
            reader.refuse(f"'sliding_window' is {window}, but {key!r} is not")
    pattern = reader.per_layer("hybrid_layer_pattern", layers)
    if pattern is None:
        reader.refuse("its config lacks 'hybrid_layer_pattern'")
    known: dict[object, Attention] = {0: _mimo_layer(reader, ""), 1: _mimo_layer(reader, "swa_", window)}
    for kind in pattern:
        if kind not in known:
            reader.refuse(f"'hybrid_layer_pattern': layers of type {kind!r} are not understood (known: 0, 1)")
    return [known[kind] for kind in pattern]


def _mimo_layer(reader: ConfigReader, prefix: str, window: int = WHOLE_CONTEXT) -> GroupedQueryAttention:
    """Return a layer whose values are narrower than its keys; `swa_` are the keys of layers that slide."""
    heads = reader.count(f"{prefix}num_attention_heads")
    kv_heads = reader.count(f"{prefix}num_key_value_heads")
    return GroupedQueryAttention(
        heads=heads,
        kv_heads=kv_heads,
        head_dim=reader.count(f"{prefix}head_dim"),
        value_head_dim=reader.count(f"{prefix}v_head_dim"),
        window=window,
    )


def mimo_ffn(reader: ConfigReader) -> list[Ffn]:
    """Return the experts where `moe_layer_freq` lists a 1, a dense block elsewhere (MiMo-V2)."""
    if reader.switched_count("n_shared_experts"):
        reader.refuse("'n_shared_experts': shared experts are not understood in this family")
    experts = reader.count("n_routed_experts")
    moe = MoeFfn(
        experts=experts,
        top_k=chosen_experts(reader, experts),
        intermediate_size=reader.count("moe_intermediate_size"),
    )
    listed = reader.per_layer("moe_layer_freq", reader.count("num_hidden_layers"))
    if listed is None:
        reader.refuse("its config lacks 'moe_layer_freq'")
    known: dict[object, Ffn] = {0: DenseFfn(reader.count("intermediate_size")), 1: moe}
    for kind in listed:
        if kind not in known:
            reader.refuse(f"'moe_layer_freq': layers of type {kind!r} are not understood (known: 0, 1)")
    return [known[kind] for kind in listed]
