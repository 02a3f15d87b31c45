"""Attention layers of a decoder from its Hugging Face config, one entry a layer."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from fleetplan.fleet.figures import counted
from fleetplan.perfmodel.architecture.hf.reader import ConfigReader
from fleetplan.perfmodel.architecture.hf.windows import known_kind, layer_windows
from fleetplan.perfmodel.architecture.layers import (
    WHOLE_CONTEXT,
    Attention,
    GroupedQueryAttention,
    LatentAttention,
    LinearAttention,
    LinearVariant,
)
from fleetplan.perfmodel.architecture.sparse_index import SparseIndex

LLAMA4_ROPE_PATTERN: Final = 4
"""One layer in so many has no rotary positions and sees the whole context. [layers]

Source: transformers 4.57, Llama4TextConfig, default of `no_rope_layer_interval`."""

QWEN_HYBRID_PATTERN: Final = 4
"""One layer in so many is softmax attention where the config does not say. [layers]

Source: transformers 4.57, Qwen3NextConfig, default of `full_attention_interval`."""

DERIVED_HEAD_DIM: Final = frozenset(
    {
        "cohere",
        "cohere2",
        "deci",
        "falcon",
        "gptj",
        "granite",
        "granitemoe",
        "llama",
        "mistral",
        "mixtral",
        "nemotron",
        "nemotron-nas",
        "olmo2",
        "olmo3",
        "olmoe",
        "phi3",
        "phimoe",
        "qwen2",
        "qwen2_5_vl",
        "qwen2_5_vl_text",
        "qwen2_moe",
        "smollm3",
        "starcoder2",
    }
)
"""Families whose head is hidden_size / num_attention_heads wide where the config does not say.

Source: transformers 4.57, the attention classes of these families; others have defaults of their own."""

EQUAL_KV_HEADS: Final = frozenset(
    {"cohere", "cohere2", "gptj", "granite", "granitemoe", "llama", "olmo2", "olmo3", "olmoe", "phi3"}
)
"""Families with as many key-value heads as heads where the config does not say (transformers 4.57)."""


def grouped_query_layers(reader: ConfigReader) -> list[Attention]:
    """Softmax attention with shared key-value heads; windows as the config or the family says."""
    windows = layer_windows(reader, reader.count("num_hidden_layers"))
    made = {window: grouped_query(reader, window) for window in dict.fromkeys(windows)}
    return [made[window] for window in windows]


def gemma4_layers(reader: ConfigReader) -> list[Attention]:
    """Sliding layers, and layers over the whole context with heads of their own (Gemma 4).

    Keys that are values as well (`attention_k_eq_v`) have one projection in the checkpoint. It is counted
    twice, as frameworks join the projections of queries, keys and values; the cache holds both.
    """
    for key, what in (
        ("hidden_size_per_layer_input", "embeddings of each layer"),
        ("num_kv_shared_layers", "layers that share a cache"),
    ):
        if reader.switched_count(key):
            reader.refuse(f"{key!r}: {what} are not understood")
    usual = {"num_key_value_heads": "num_global_key_value_heads", "head_dim": "global_head_dim"}
    own = {key: value for key, name in usual.items() if (value := reader.optional_count(name)) is not None}
    wide = ConfigReader(reader.model, reader.model_type, {**reader.values, **own})
    return [
        grouped_query(wide if window == WHOLE_CONTEXT else reader, window)
        for window in layer_windows(reader, reader.count("num_hidden_layers"))
    ]


def falcon_layers(reader: ConfigReader) -> list[Attention]:
    """Return the key-value heads of the config, else one for all heads, else one each (Falcon)."""
    heads = reader.count("num_attention_heads")
    # Source: transformers 4.57, FalconAttention: the newer architecture reads the count, the older one has
    # one key-value head with `multi_query` (the default), and otherwise one a head.
    if reader.flag("new_decoder_architecture", absent=False):
        kv_heads = reader.optional_count("num_kv_heads") or heads
    else:
        kv_heads = 1 if reader.flag("multi_query", absent=True) else heads
    known = ConfigReader(reader.model, reader.model_type, {**reader.values, "num_key_value_heads": kv_heads})
    return grouped_query_layers(known)


def minimax_layers(reader: ConfigReader) -> list[Attention]:
    """Softmax attention in every layer: a list with other types (lightning attention, 0) is refused."""
    types = reader.per_layer("attn_type_list", reader.count("num_hidden_layers"))
    for kind in types or ():
        if kind != 1:
            reader.refuse(f"'attn_type_list': attention of type {kind!r} is not understood (known: 1)")
    return grouped_query_layers(reader)


def grouped_query(
    reader: ConfigReader, window: int = WHOLE_CONTEXT, *, chunked: bool = False, output_gate: bool = False
) -> GroupedQueryAttention:
    """One layer of softmax attention with the head counts of the config."""
    heads = reader.count("num_attention_heads")
    kv_heads = reader.optional_count("num_key_value_heads")
    if kv_heads is None:
        kv_heads = heads if reader.model_type in EQUAL_KV_HEADS else reader.count("num_key_value_heads")
    if heads % kv_heads:
        reader.refuse(f"{counted(heads, 'head')} cannot share {kv_heads} key-value heads evenly")
    head_dim = _head_dim(reader, heads)
    return GroupedQueryAttention(
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        value_head_dim=head_dim,
        window=window,
        chunked=chunked and window != WHOLE_CONTEXT,
        output_gate=output_gate,
        query_key_norm=reader.flag("use_qk_norm", absent=False),
    )


def _head_dim(reader: ConfigReader, heads: int) -> int:
    head_dim = reader.optional_count("head_dim") or reader.optional_count("attention_head_dim")
    if head_dim is not None:
        return head_dim
    hidden_size = reader.count("hidden_size")
    if reader.model_type not in DERIVED_HEAD_DIM:
        return reader.count("head_dim")
    if hidden_size % heads:
        reader.refuse(
            f"hidden_size {hidden_size} is not a multiple of {counted(heads, 'head')} and "
            f"'head_dim' is missing"
        )
    return hidden_size // heads


def chunked_layers(reader: ConfigReader) -> list[Attention]:
    """Attention within chunks, and in each fourth layer over the whole context (Llama 4)."""
    layers = reader.count("num_hidden_layers")
    chunk = reader.count("attention_chunk_size")
    types = reader.per_layer("layer_types", layers)
    rotary = reader.per_layer("no_rope_layers", layers)
    if types is not None:
        sizes = {"full_attention": WHOLE_CONTEXT, "chunked_attention": chunk}
        windows = [sizes[known_kind(reader, kind, sizes)] for kind in types]
    elif rotary:
        # The key lists which layers HAVE rotary positions (1), in spite of its name; those are chunked.
        windows = [chunk if has_rotary else WHOLE_CONTEXT for has_rotary in rotary]
    else:
        windows = [chunk if (layer + 1) % LLAMA4_ROPE_PATTERN else WHOLE_CONTEXT for layer in range(layers)]
    return [grouped_query(reader, window, chunked=True) for window in windows]


def latent_layers(reader: ConfigReader) -> list[Attention]:
    """Multi-head latent attention in every layer."""
    return [latent(reader, None)] * reader.count("num_hidden_layers")


def indexed_layers(reader: ConfigReader) -> list[Attention]:
    """Latent attention behind an indexer, which a layer may take over from an earlier one (GLM-5.2)."""
    layers = reader.count("num_hidden_layers")
    own = SparseIndex(
        heads=reader.count("index_n_heads"),
        head_dim=reader.count("index_head_dim"),
        top_k=reader.count("index_topk"),
    )
    known = {"full": own, "shared": replace(own, is_shared=True)}
    for kind in reader.per_layer("layer_types", layers) or ():
        known_kind(reader, kind, {"deepseek_sparse_attention": own})
    types = reader.per_layer("indexer_types", layers)
    if types is None:
        # GLM-5.2 counts an offset and a period as well; without the list nothing says how they combine.
        for key in ("index_topk_pattern", "index_topk_freq"):
            if reader.has(key) and reader.values[key] != 1:
                reader.refuse(f"{key!r} without 'indexer_types' does not say which layers have an indexer")
        types = ["full"] * layers
    return [latent(reader, known[known_kind(reader, kind, known, "indexers")]) for kind in types]


def latent(reader: ConfigReader, index: SparseIndex | None, *, output_gate: bool = False) -> LatentAttention:
    """One layer of latent attention with the widths of the config."""
    return LatentAttention(
        heads=reader.count("num_attention_heads"),
        query_rank=reader.switched_count("q_lora_rank"),
        kv_rank=reader.count("kv_lora_rank"),
        nope_head_dim=reader.count("qk_nope_head_dim"),
        rope_head_dim=reader.count("qk_rope_head_dim"),
        value_head_dim=reader.count("v_head_dim"),
        index=index,
        output_gate=output_gate,
    )


def delta_net_layers(reader: ConfigReader) -> list[Attention]:
    """Gated delta nets with softmax attention in between (Qwen3-Next, Qwen3.5)."""
    layers = reader.count("num_hidden_layers")
    linear = LinearAttention(
        variant=LinearVariant.GATED_DELTA_NET,
        key_heads=reader.count("linear_num_key_heads"),
        value_heads=reader.count("linear_num_value_heads"),
        key_head_dim=reader.count("linear_key_head_dim"),
        value_head_dim=reader.count("linear_value_head_dim"),
        convolution_width=reader.count("linear_conv_kernel_dim"),
    )
    # Qwen3-Next always gates and does not say so; Qwen3.5 has the key.
    softmax = grouped_query(reader, output_gate=reader.flag("attn_output_gate", absent=True))
    known: dict[object, Attention] = {"linear_attention": linear, "full_attention": softmax}
    types = reader.per_layer("layer_types", layers)
    if types is None:
        interval = reader.optional_count("full_attention_interval") or QWEN_HYBRID_PATTERN
        return [linear if (layer + 1) % interval else softmax for layer in range(layers)]
    for kind in types:
        if kind not in known:
            reader.refuse(f"attention layers of type {kind!r} are not understood")
    return [known[kind] for kind in types]


def mamba2(reader: ConfigReader) -> LinearAttention:
    """One Mamba-2 layer (Nemotron-H)."""
    return LinearAttention(
        variant=LinearVariant.MAMBA2,
        key_heads=reader.count("n_groups"),
        value_heads=reader.count("mamba_num_heads"),
        key_head_dim=reader.count("ssm_state_size"),
        value_head_dim=reader.count("mamba_head_dim"),
        convolution_width=reader.count("conv_kernel"),
    )


def lightning_layers(reader: ConfigReader) -> list[Attention]:
    """Lightning attention with softmax attention in between (MiniMax-Text-01, MiniMax-M1)."""
    layers = reader.count("num_hidden_layers")
    softmax = grouped_query(reader)
    lightning = LinearAttention(
        variant=LinearVariant.LIGHTNING,
        key_heads=softmax.heads,
        value_heads=softmax.heads,
        key_head_dim=softmax.head_dim,
        value_head_dim=softmax.head_dim,
        convolution_width=1,
    )
    known: dict[object, Attention] = {
        0: lightning,
        1: softmax,
        "linear_attention": lightning,
        "full_attention": softmax,
    }
    types = reader.per_layer("layer_types", layers) or reader.per_layer("attn_type_list", layers)
    if types is None:
        reader.refuse("its config lacks 'layer_types' and 'attn_type_list'")
    for kind in types:
        if kind not in known:
            reader.refuse(f"attention layers of type {kind!r} are not understood")
    return [known[kind] for kind in types]
