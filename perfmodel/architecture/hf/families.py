"""Which families of decoders are understood, and how each spells its layers in its config."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from fleetplan.fleet.figures import counted
from fleetplan.perfmodel.architecture.hf.attention import (
    chunked_layers,
    delta_net_layers,
    falcon_layers,
    gemma4_layers,
    grouped_query,
    grouped_query_layers,
    indexed_layers,
    latent_layers,
    lightning_layers,
    mamba2,
    minimax_layers,
)
from fleetplan.perfmodel.architecture.hf.block_sparse import block_sparse_layers
from fleetplan.perfmodel.architecture.hf.compressed import compressed_layers
from fleetplan.perfmodel.architecture.hf.family import Layer, ModelFamily
from fleetplan.perfmodel.architecture.hf.ffn import (
    dense_layers,
    falcon_ffn,
    gemma4_ffn,
    gptj_ffn,
    listed_moe_layers,
    llama4_layers,
    mixtral_layers,
    nemotron_dense,
    nemotron_moe,
    qwen_moe_layers,
    shared_expert_layers,
    ungated_layers,
)
from fleetplan.perfmodel.architecture.hf.kimi_linear import kimi_linear_attention, latent_expert_layers
from fleetplan.perfmodel.architecture.hf.reader import ConfigReader
from fleetplan.perfmodel.architecture.hf.searched import searched_blocks, searched_heads
from fleetplan.perfmodel.architecture.hf.two_widths import mimo_attention, mimo_ffn, step_attention, step_ffn
from fleetplan.perfmodel.architecture.layers import Attention, Ffn


def _paired(
    attention: Callable[[ConfigReader], list[Attention]], ffn: Callable[[ConfigReader], list[Ffn]]
) -> Callable[[ConfigReader], list[Layer]]:
    def layers(reader: ConfigReader) -> list[Layer]:
        return list(zip(attention(reader), ffn(reader), strict=True))

    return layers


def _nemotron_layers(reader: ConfigReader) -> list[Layer]:
    """Return the blocks one by one, as the pattern lists them: each is a layer of its own."""
    pattern = reader.text("hybrid_override_pattern")
    blocks = list(pattern) if pattern else reader.items("layers_block_type")
    if blocks is None:
        reader.refuse("its config lacks 'hybrid_override_pattern' and 'layers_block_type'")
    stated = reader.optional_count("num_hidden_layers")
    if stated is not None and stated != len(blocks):
        reader.refuse(f"its pattern has {counted(len(blocks), 'block')}, but num_hidden_layers is {stated}")
    makers: dict[object, Callable[[ConfigReader], Layer]] = {
        "M": lambda config: (mamba2(config), None),
        "*": lambda config: (grouped_query(config), None),
        "E": lambda config: (None, nemotron_moe(config)),
        "-": lambda config: (None, nemotron_dense(config)),
    }
    spelled_out = {"mamba": "M", "attention": "*", "moe": "E", "mlp": "-"}
    letters = [spelled_out.get(str(block), block) for block in blocks]
    for letter in letters:
        if letter not in makers:
            reader.refuse(f"blocks of type {letter!r} are not understood")
    made = {letter: makers[letter](reader) for letter in dict.fromkeys(letters)}
    return [made[letter] for letter in letters]


_WINDOWED: Final = frozenset({"sliding_window", "layer_types"})
_DENSE: Final = ModelFamily(_paired(grouped_query_layers, dense_layers), _WINDOWED)
_TIED_DENSE: Final = replace(_DENSE, tied_by_default=True)
_MIXTRAL: Final = ModelFamily(
    _paired(grouped_query_layers, mixtral_layers),
    _WINDOWED | {"num_local_experts", "shared_intermediate_size"},
)
_LIGHTNING: Final = ModelFamily(
    _paired(lightning_layers, mixtral_layers),
    frozenset({"attn_type_list", "layer_types", "num_local_experts", "shared_intermediate_size"}),
)
_QWEN_EXPERT_KEYS: Final = frozenset({"num_experts", "mlp_only_layers", "shared_expert_intermediate_size"})
_QWEN_MOE: Final = ModelFamily(
    # This family has no shared expert: the key is in some of its configs, but only as 0.
    _paired(grouped_query_layers, qwen_moe_layers),
    _WINDOWED | (_QWEN_EXPERT_KEYS - {"shared_expert_intermediate_size"}),
)
_SHARED_EXPERT_KEYS: Final = frozenset(
    {"first_k_dense_replace", "moe_layer_freq", "n_routed_experts", "n_shared_experts"}
)
_DEEPSEEK: Final = ModelFamily(
    _paired(latent_layers, shared_expert_layers), _SHARED_EXPERT_KEYS | {"kv_lora_rank"}
)
_INDEXED: Final = ModelFamily(
    _paired(indexed_layers, shared_expert_layers),
    # Copies of GLM-5.2 give the number of experts under two names.
    _DEEPSEEK.reads | {"index_topk", "indexer_types", "layer_types", "num_experts"},
)
_GEMMA4: Final = ModelFamily(
    _paired(gemma4_layers, gemma4_ffn),
    _WINDOWED | {"num_experts"},
    tied_by_default=True,
    names={"num_experts_per_tok": "top_k_experts"},
)
_GLM: Final = ModelFamily(_paired(grouped_query_layers, shared_expert_layers), _SHARED_EXPERT_KEYS)
_QWEN2_MOE: Final = ModelFamily(_paired(grouped_query_layers, qwen_moe_layers), _WINDOWED | _QWEN_EXPERT_KEYS)
_OLMOE: Final = ModelFamily(
    _paired(grouped_query_layers, mixtral_layers),
    frozenset({"num_experts", "num_local_experts"}),
    names={"num_local_experts": "num_experts"},
)
_ERNIE_MOE: Final = ModelFamily(
    _paired(grouped_query_layers, shared_expert_layers),
    _SHARED_EXPERT_KEYS,
    tied_by_default=True,
    # Source: transformers 4.57, Ernie4_5_MoeConfig; every layer from the first with experts on has them.
    names={
        "n_routed_experts": "moe_num_experts",
        "num_experts_per_tok": "moe_k",
        "n_shared_experts": "moe_num_shared_experts",
        "first_k_dense_replace": "moe_layer_start_index",
        "moe_layer_freq": "moe_layer_interval",
    },
)
# Source: transformers 4.57, CohereDecoderLayer: both blocks read the same norm and are added together.
_COHERE: Final = replace(_TIED_DENSE, parallel_blocks=lambda reader: True)
_UNGATED: Final = ModelFamily(_paired(grouped_query_layers, ungated_layers), _WINDOWED)
_GPTJ: Final = ModelFamily(
    _paired(grouped_query_layers, gptj_ffn),
    frozenset(),
    # Source: transformers 4.57, GPTJConfig.attribute_map; GPTJBlock adds both blocks to the residual stream.
    names={
        "hidden_size": "n_embd",
        "max_position_embeddings": "n_positions",
        "num_attention_heads": "n_head",
        "num_hidden_layers": "n_layer",
    },
    parallel_blocks=lambda reader: True,
)
_FALCON: Final = ModelFamily(
    _paired(falcon_layers, falcon_ffn),
    frozenset(),
    tied_by_default=True,
    parallel_blocks=lambda reader: (
        reader.flag("parallel_attn", absent=True) or reader.flag("new_decoder_architecture", absent=False)
    ),
)
_STEP: Final = ModelFamily(
    _paired(step_attention, step_ffn),
    _WINDOWED
    | {
        "attention_other_setting",
        "first_k_dense_replace",
        "moe_layers_enum",
        "n_shared_experts",
        "num_experts",
    },
    # Source: stepfun-ai/Step-3.5-Flash, configuration_step3p5.py; that of 3.7 has the usual names.
    names={
        "num_key_value_heads": "num_attention_groups",
        "num_experts": "moe_num_experts",
        "num_experts_per_tok": "moe_top_k",
        "max_position_embeddings": "max_seq_len",
    },
)
_DELTA_NET_KEYS: Final = frozenset(
    {"layer_types", "full_attention_interval", "linear_num_value_heads", "attn_output_gate"}
)

FAMILIES: Final[dict[str, ModelFamily]] = {
    "llama": _DENSE,
    "mistral": _DENSE,
    "qwen2": _DENSE,
    "qwen3": _DENSE,
    "qwen3_vl_text": _DENSE,
    "phi3": _DENSE,
    # Source of each: transformers 4.57, the decoder layer of the family: norms differ, shapes do not.
    "exaone4": _DENSE,
    "glm": _DENSE,
    "glm4": _DENSE,
    "granite": _DENSE,
    "mimo": _DENSE,
    "olmo2": _DENSE,
    "olmo3": _DENSE,
    # The config of Qwen2.5-VL holds its decoder beside the vision tower, or under `text_config`.
    "qwen2_5_vl": _DENSE,
    "qwen2_5_vl_text": _DENSE,
    "seed_oss": _DENSE,
    "ernie4_5": _TIED_DENSE,
    "smollm3": _TIED_DENSE,
    "cohere": _COHERE,
    "cohere2": _COHERE,
    "nemotron": _UNGATED,
    "starcoder2": replace(_UNGATED, tied_by_default=True),
    "granitemoe": _MIXTRAL,
    "phimoe": _MIXTRAL,
    "olmoe": _OLMOE,
    "qwen2_moe": _QWEN2_MOE,
    "ernie4_5_moe": _ERNIE_MOE,
    "gemma2": _TIED_DENSE,
    "gemma3_text": _TIED_DENSE,
    "gemma4_text": _GEMMA4,
    "mixtral": _MIXTRAL,
    "minimax_m2": ModelFamily(_paired(minimax_layers, mixtral_layers), _MIXTRAL.reads | {"attn_type_list"}),
    "minimax_m3": ModelFamily(
        _paired(block_sparse_layers, listed_moe_layers),
        frozenset(
            {
                "first_k_dense_replace",
                "moe_layer_freq",
                "n_shared_experts",
                "num_local_experts",
                "shared_intermediate_size",
                "sparse_attention_config",
            }
        ),
    ),
    "minimax": _LIGHTNING,
    "minimax_m1": _LIGHTNING,
    "minimax_text_01": _LIGHTNING,
    "gpt_oss": _MIXTRAL,
    "qwen3_moe": _QWEN_MOE,
    "qwen3_vl_moe_text": _QWEN_MOE,
    "glm4_moe": _GLM,
    "llama4_text": ModelFamily(
        _paired(chunked_layers, llama4_layers),
        frozenset({"attention_chunk_size", "interleave_moe_layer_step", "num_local_experts", "layer_types"}),
    ),
    "deepseek_v2": _DEEPSEEK,
    "deepseek_v3": _DEEPSEEK,
    "deepseek_v32": _INDEXED,
    "deepseek_v4": ModelFamily(
        # Layers with hash routing pick experts by the token itself, but score them by a router as well.
        _paired(compressed_layers, shared_expert_layers),
        frozenset(
            {
                "compress_ratios",
                "hc_mult",
                "index_topk",
                "n_routed_experts",
                "n_shared_experts",
                "sliding_window",
            }
        ),
        residual_streams=lambda reader: reader.count("hc_mult"),
    ),
    "glm_moe_dsa": _INDEXED,
    "kimi_k2": _DEEPSEEK,
    "kimi_linear": ModelFamily(
        _paired(kimi_linear_attention, latent_expert_layers),
        _DEEPSEEK.reads
        | {"attn_res_block_size", "linear_attn_config", "num_experts", "routed_expert_hidden_size"},
        names={
            "n_routed_experts": "num_experts",
            "n_shared_experts": "num_shared_experts",
            "num_experts_per_tok": "num_experts_per_token",
        },
    ),
    "gptj": _GPTJ,
    "mimo_v2_flash": ModelFamily(
        _paired(mimo_attention, mimo_ffn),
        frozenset(
            {
                "attention_chunk_size",
                "hybrid_layer_pattern",
                "moe_layer_freq",
                "n_routed_experts",
                "n_shared_experts",
                "sliding_window",
            }
        ),
    ),
    "step3p5": _STEP,
    "step3p7": _STEP,
    "falcon": _FALCON,
    "deci": ModelFamily(_paired(searched_heads, dense_layers), frozenset({"num_key_value_heads_per_layer"})),
    "nemotron-nas": ModelFamily(searched_blocks, frozenset({"block_configs"})),
    "qwen3_next": ModelFamily(
        _paired(delta_net_layers, qwen_moe_layers), _DELTA_NET_KEYS | _QWEN_EXPERT_KEYS
    ),
    "qwen3_5_text": ModelFamily(_paired(delta_net_layers, dense_layers), _DELTA_NET_KEYS),
    "qwen3_5_moe_text": ModelFamily(
        _paired(delta_net_layers, qwen_moe_layers), _DELTA_NET_KEYS | _QWEN_EXPERT_KEYS
    ),
    "nemotron_h": ModelFamily(
        _nemotron_layers,
        frozenset(
            {
                "hybrid_override_pattern",
                "layers_block_type",
                "moe_latent_size",
                "n_routed_experts",
                "n_shared_experts",
            }
        ),
    ),
}
"""The decoders that are understood, by `model_type`."""

WRAPPERS: Final[dict[str, str]] = {
    "llama4": "llama4_text",
    "gemma3": "gemma3_text",
    "gemma4": "gemma4_text",
    "mistral3": "mistral",
    "kimi_k25": "kimi_k2",
    "kimi_k3": "kimi_linear",
    "minimax_m3_vl": "minimax_m3",
    "qwen2_5_vl": "qwen2_5_vl_text",
    "qwen3_vl": "qwen3_vl_text",
    "qwen3_vl_moe": "qwen3_vl_moe_text",
    "qwen3_5": "qwen3_5_text",
    "qwen3_5_moe": "qwen3_5_moe_text",
}
"""Models that also see: their decoder is under `text_config`, and is of this type where it names none."""
