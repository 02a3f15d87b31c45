"""Configs of small decoders, and layers of models of the catalogue."""

from __future__ import annotations

from fleetplan.fleet.catalog import model_catalog
from fleetplan.perfmodel.architecture import (
    GroupedQueryAttention,
    ModelArchitecture,
    architecture_from_config,
)

TINY_LLAMA: dict[str, object] = {
    "model_type": "llama",
    "hidden_size": 64,
    "vocab_size": 100,
    "num_hidden_layers": 3,
    "num_attention_heads": 8,
    "num_key_value_heads": 2,
    "intermediate_size": 128,
}


TINY_DEEPSEEK: dict[str, object] = {
    "model_type": "deepseek_v3",
    "hidden_size": 64,
    "vocab_size": 100,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "q_lora_rank": 24,
    "kv_lora_rank": 16,
    "qk_nope_head_dim": 8,
    "qk_rope_head_dim": 4,
    "v_head_dim": 10,
    "intermediate_size": 96,
    "n_routed_experts": 6,
    "n_shared_experts": 2,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 12,
    "first_k_dense_replace": 1,
    "moe_layer_freq": 1,
}


def catalogued(identifier: str) -> ModelArchitecture:
    return architecture_from_config(model_catalog()[identifier].config, identifier)


def windows(architecture: ModelArchitecture) -> dict[int, int]:
    """Layers by window of the attention."""
    return {
        group.attention.window: group.count
        for group in architecture.groups
        if isinstance(group.attention, GroupedQueryAttention)
    }
