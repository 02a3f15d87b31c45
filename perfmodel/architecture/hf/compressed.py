"""Layers of compressed attention from a Hugging Face config, one entry a layer (DeepSeek-V4)."""

from __future__ import annotations

from typing import Final

from fleetplan.fleet.figures import counted
from fleetplan.perfmodel.architecture.compressed import NO_COMPRESSION, CompressedAttention
from fleetplan.perfmodel.architecture.hf.reader import ConfigReader
from fleetplan.perfmodel.architecture.layers import Attention
from fleetplan.perfmodel.architecture.sparse_index import SparseIndex
from fleetplan.perfmodel.operators.formats import INDEXED_RATIO

HEAVY_RATIO: Final = 128
"""Tokens of an entry in layers without an index; beside it and `INDEXED_RATIO`, no other ratio is understood.

Source: the published inference code of DeepSeek-V4."""


def compressed_layers(reader: ConfigReader) -> list[Attention]:
    """Attention to a window, and to entries of as many tokens as `compress_ratios` says of the layer."""
    layers = reader.count("num_hidden_layers")
    ratios = reader.items("compress_ratios")
    if ratios is None:
        reader.refuse("its config lacks 'compress_ratios'")
    # The list goes on with the layers that only draft.
    drafting = reader.switched_count("num_nextn_predict_layers") or 0
    if len(ratios) not in {layers, layers + drafting}:
        reader.refuse(
            f"'compress_ratios' describes {counted(len(ratios), 'layer')}, but the model has {layers}"
        )
    if reader.count("num_key_value_heads") != 1:
        reader.refuse("compressed attention with more than one key-value head is not understood")
    known = {ratio: _layer(reader, ratio) for ratio in (NO_COMPRESSION, INDEXED_RATIO, HEAVY_RATIO)}
    for ratio in ratios:
        # 4.0 and True equal a known ratio; only whole numbers are counted below.
        if isinstance(ratio, bool) or not isinstance(ratio, int) or ratio not in known:
            allowed = ", ".join(map(str, known))
            reader.refuse(
                f"'compress_ratios': layers of ratio {ratio!r} are not understood (known: {allowed})"
            )
    return [known[ratio] for ratio in ratios[:layers] if isinstance(ratio, int)]


def _layer(reader: ConfigReader, ratio: int) -> CompressedAttention:
    index = SparseIndex(
        heads=reader.count("index_n_heads"),
        head_dim=reader.count("index_head_dim"),
        top_k=reader.count("index_topk"),
    )
    heads, groups = reader.count("num_attention_heads"), reader.count("o_groups")
    if heads % groups:
        reader.refuse(f"{counted(heads, 'head')} cannot form {groups} output groups evenly")
    head_dim, rope_head_dim = reader.count("head_dim"), reader.count("qk_rope_head_dim")
    if rope_head_dim > head_dim:
        reader.refuse(f"{rope_head_dim} rotary elements are more than the {head_dim} of a head")
    return CompressedAttention(
        heads=heads,
        query_rank=reader.count("q_lora_rank"),
        head_dim=head_dim,
        rope_head_dim=rope_head_dim,
        window=reader.count("sliding_window"),
        ratio=ratio,
        output_groups=groups,
        output_rank=reader.count("o_lora_rank"),
        index=index if ratio == INDEXED_RATIO else None,
    )
