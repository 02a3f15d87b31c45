"""How a family of decoders spells its layers in its config."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from fleetplan.perfmodel.architecture.hf.reader import ConfigReader
from fleetplan.perfmodel.architecture.layers import Attention, Ffn

Layer = tuple[Attention | None, Ffn | None]

SHAPE_KEYS: Final = frozenset(
    {
        "attention_chunk_size",
        "attention_other_setting",
        "attn_output_gate",
        "attn_res_block_size",
        "attn_type_list",
        "block_configs",
        "compress_ratios",
        "first_k_dense_replace",
        "full_attention_interval",
        "hc_mult",
        "hybrid_layer_pattern",
        "hybrid_override_pattern",
        "index_topk",
        "indexer_types",
        "interleave_moe_layer_step",
        "kv_lora_rank",
        "layer_types",
        "layers_block_type",
        "linear_attn_config",
        "linear_num_value_heads",
        "mlp_only_layers",
        "moe_latent_size",
        "moe_layer_freq",
        "moe_layers_enum",
        "n_routed_experts",
        "n_shared_experts",
        "num_experts",
        "num_key_value_heads_per_layer",
        "num_local_experts",
        "routed_expert_hidden_size",
        "shared_expert_intermediate_size",
        "shared_intermediate_size",
        "sliding_window",
        "sparse_attention_config",
    }
)
"""Keys that change the shape of a decoder; one that a family does not read makes us refuse the model."""


@dataclass(frozen=True, slots=True)
class ModelFamily:
    """How a `model_type` spells its layers.

    Attributes
    ----------
    layers : Callable[[ConfigReader], list[Layer]]
        Attention and feed-forward block of every layer, in order.
    reads : frozenset[str]
        The keys of `SHAPE_KEYS` that it reads.
    tied_by_default : bool
        Whether embedding and head are one matrix where the config does not say.
    names : Mapping[str, str]
        What it calls keys that other families share, by their usual name.
    parallel_blocks : Callable[[ConfigReader], bool]
        Whether attention and feed-forward block of a layer run side by side.
    residual_streams : Callable[[ConfigReader], int]
        Copies of the residual stream.
    """

    layers: Callable[[ConfigReader], list[Layer]]
    reads: frozenset[str]
    tied_by_default: bool = False
    names: Mapping[str, str] = field(default_factory=dict)
    parallel_blocks: Callable[[ConfigReader], bool] = lambda reader: False
    residual_streams: Callable[[ConfigReader], int] = lambda reader: 1

    def renamed(self, reader: ConfigReader) -> ConfigReader:
        """Return the config with the usual names beside the family's own."""
        usual = {ours: reader.values[own] for ours, own in self.names.items() if own in reader.values}
        return ConfigReader(reader.model, reader.model_type, {**reader.values, **usual})
