"""Feed-forward layers of a decoder from its Hugging Face config, one entry a layer."""

from __future__ import annotations

from typing import Final

from fleetplan.fleet.figures import counted
from fleetplan.perfmodel.architecture.hf.reader import ConfigReader
from fleetplan.perfmodel.architecture.layers import DenseFfn, Ffn, MoeFfn

WIDENING: Final = 4
"""Width of the feed-forward block over the hidden size where the config does not say.

Source: transformers 4.57, GPTJConfig (`n_inner`) and FalconConfig (`ffn_hidden_size`)."""


def dense_layers(reader: ConfigReader) -> list[Ffn]:
    """One gated feed-forward block in every layer."""
    return [DenseFfn(reader.count("intermediate_size"))] * reader.count("num_hidden_layers")


def ungated_layers(reader: ConfigReader) -> list[Ffn]:
    """One feed-forward block without a gate in every layer (Nemotron, StarCoder2)."""
    width = reader.count("intermediate_size")
    return [DenseFfn(width, gated=False)] * reader.count("num_hidden_layers")


def falcon_ffn(reader: ConfigReader) -> list[Ffn]:
    """One block without a gate, four times as wide as the hidden size unless stated (Falcon)."""
    width = reader.optional_count("ffn_hidden_size") or WIDENING * reader.count("hidden_size")
    return [DenseFfn(width, gated=False)] * reader.count("num_hidden_layers")


def gptj_ffn(reader: ConfigReader) -> list[Ffn]:
    """One block without a gate, four times as wide as the hidden size unless stated (GPT-J)."""
    width = reader.optional_count("n_inner") or WIDENING * reader.count("hidden_size")
    return [DenseFfn(width, gated=False)] * reader.count("num_hidden_layers")


def mixtral_layers(reader: ConfigReader) -> list[Ffn]:
    """Return the experts as wide as `intermediate_size` in every layer (Mixtral, MiniMax M2, gpt-oss)."""
    if reader.has("shared_intermediate_size"):
        reader.refuse("'shared_intermediate_size': shared experts are not understood in this family")
    experts = reader.count("num_local_experts")
    ffn = MoeFfn(
        experts=experts,
        top_k=chosen_experts(reader, experts),
        intermediate_size=reader.count("intermediate_size"),
    )
    return [ffn] * reader.count("num_hidden_layers")


def qwen_moe_layers(reader: ConfigReader) -> list[Ffn]:
    """Return experts in all layers except those dense by `mlp_only_layers` and `decoder_sparse_step`."""
    experts = reader.count("num_experts")
    shared = reader.switched_count("shared_expert_intermediate_size")
    moe = MoeFfn(
        experts=experts,
        top_k=chosen_experts(reader, experts),
        intermediate_size=reader.count("moe_intermediate_size"),
        shared_experts=0 if shared is None else 1,
        shared_intermediate_size=shared or 0,
    )
    step = reader.optional_count("decoder_sparse_step") or 1
    dense = set(reader.items("mlp_only_layers") or ())
    return [
        DenseFfn(reader.count("intermediate_size")) if layer in dense or (layer + 1) % step else moe
        for layer in range(reader.count("num_hidden_layers"))
    ]


def gemma4_ffn(reader: ConfigReader) -> list[Ffn]:
    """One gated block in every layer, beside it routed experts if `enable_moe_block` says so (Gemma 4)."""
    if reader.flag("use_double_wide_mlp", absent=False):
        reader.refuse("'use_double_wide_mlp' is not understood")
    width, layers = reader.count("intermediate_size"), reader.count("num_hidden_layers")
    if not reader.flag("enable_moe_block", absent=False):
        return [DenseFfn(width)] * layers
    experts = reader.count("num_experts")
    moe = MoeFfn(
        experts=experts,
        top_k=chosen_experts(reader, experts),
        intermediate_size=reader.count("moe_intermediate_size"),
        # Every token takes the dense block as well: transformers, Gemma4TextDecoderLayer.
        shared_experts=1,
        shared_intermediate_size=width,
    )
    return [moe] * layers


def shared_expert_layers(reader: ConfigReader) -> list[Ffn]:
    """Dense layers first, then routed experts beside shared ones (DeepSeek, Kimi, GLM)."""
    experts = reader.count("n_routed_experts")
    if (reader.optional_count("num_experts") or experts) != experts:
        reader.refuse(f"'n_routed_experts' is {experts}, but 'num_experts' is not")
    width = reader.count("moe_intermediate_size")
    shared = reader.switched_count("n_shared_experts") or 0
    moe = MoeFfn(
        experts=experts,
        top_k=chosen_experts(reader, experts),
        intermediate_size=width,
        shared_experts=shared,
        shared_intermediate_size=shared * width,
    )
    first_moe = reader.switched_count("first_k_dense_replace") or 0
    step = reader.optional_count("moe_layer_freq") or 1
    routed = [layer >= first_moe and layer % step == 0 for layer in range(reader.count("num_hidden_layers"))]
    if all(routed):
        return [moe] * len(routed)
    dense = DenseFfn(reader.count("intermediate_size"))
    return [moe if is_routed else dense for is_routed in routed]


def listed_moe_layers(reader: ConfigReader) -> list[Ffn]:
    """Return experts beside shared ones where `moe_layer_freq` is 1, else a dense block (MiniMax-M3)."""
    layers = reader.count("num_hidden_layers")
    experts = reader.count("num_local_experts")
    shared = reader.switched_count("n_shared_experts") or 0
    moe = MoeFfn(
        experts=experts,
        top_k=chosen_experts(reader, experts),
        intermediate_size=reader.count("intermediate_size"),
        shared_experts=shared,
        shared_intermediate_size=shared * reader.count("shared_intermediate_size") if shared else 0,
    )
    dense = DenseFfn(reader.count("dense_intermediate_size"))
    listed = reader.per_layer("moe_layer_freq", layers)
    if listed is None:
        reader.refuse("its config lacks 'moe_layer_freq'")
    first = reader.switched_count("first_k_dense_replace")
    if first is not None and list(listed) != [int(layer >= first) for layer in range(layers)]:
        reader.refuse(f"'moe_layer_freq' and 'first_k_dense_replace' ({first}) name different dense layers")
    known: dict[object, Ffn] = {0: dense, 1: moe}
    for kind in listed:
        if kind not in known:
            reader.refuse(f"'moe_layer_freq': layers of type {kind!r} are not understood (known: 0, 1)")
    return [known[kind] for kind in listed]


def llama4_layers(reader: ConfigReader) -> list[Ffn]:
    """Routed experts beside one shared expert in each `interleave_moe_layer_step`-th layer, else dense."""
    layers = reader.count("num_hidden_layers")
    experts = reader.count("num_local_experts")
    width = reader.count("intermediate_size")
    moe = MoeFfn(
        experts=experts,
        top_k=chosen_experts(reader, experts),
        intermediate_size=width,
        # The shared expert is part of the family, not of the config: transformers, Llama4TextMoe.
        shared_experts=1,
        shared_intermediate_size=width,
    )
    dense = DenseFfn(reader.count("intermediate_size_mlp"))
    listed = reader.items("moe_layers")
    step = reader.count("interleave_moe_layer_step")
    sparse = set(listed) if listed else {layer for layer in range(layers) if (layer + 1) % step == 0}
    return [moe if layer in sparse else dense for layer in range(layers)]


def nemotron_dense(reader: ConfigReader) -> DenseFfn:
    """One feed-forward block without a gate (Nemotron-H: squared ReLU)."""
    return DenseFfn(reader.count("intermediate_size"), gated=False)


def nemotron_moe(reader: ConfigReader) -> MoeFfn:
    """One block of experts without gates, in a latent space where the config has one (Nemotron 3)."""
    experts = reader.count("n_routed_experts")
    shared = reader.switched_count("n_shared_experts") or 0
    width = reader.count("moe_shared_expert_intermediate_size") if shared else 0
    return MoeFfn(
        experts=experts,
        top_k=chosen_experts(reader, experts),
        intermediate_size=reader.count("moe_intermediate_size"),
        gated=False,
        shared_experts=shared,
        shared_intermediate_size=shared * width,
        latent_size=reader.switched_count("moe_latent_size"),
    )


def chosen_experts(reader: ConfigReader, experts: int) -> int:
    """Return how many of the experts a token uses."""
    top_k = reader.count("num_experts_per_tok")
    if top_k > experts:
        reader.refuse(f"a token cannot use {top_k} of {counted(experts, 'expert')}")
    return top_k
