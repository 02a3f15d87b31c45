"""Decoders found by architecture search, whose layers differ one by one (DeciLM, Llama-Nemotron)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from fleetplan.fleet.figures import counted
from fleetplan.perfmodel.architecture.hf.attention import grouped_query
from fleetplan.perfmodel.architecture.hf.reader import ConfigReader
from fleetplan.perfmodel.architecture.layers import Attention, DenseFfn, Ffn, GroupedQueryAttention

FFN_WIDTH_MULTIPLE: Final = 256
"""Widths of feed-forward blocks are rounded up to a multiple of it. [elements]

Source: configuration_decilm.py of nvidia/Llama-3_3-Nemotron-Super-49B-v1, as read by llama.cpp and vLLM."""

MOST_FFN_MULT: Final = 1000
"""Largest width of a block over the hidden size; published ones are below 10."""

UNDERSTOOD_WITHOUT: Final = {
    "attention": ("replace_with_linear", "sparsify", "unshifted_sink", "num_sink_tokens", "window_length"),
    "ffn": ("replace_with_linear", "sparsify"),
}
"""Keys of a block that change what it computes; a block that sets one is refused."""


def searched_heads(reader: ConfigReader) -> list[Attention]:
    """Attention whose key-value heads are listed layer by layer (DeciLM-7B)."""
    listed = reader.per_layer("num_key_value_heads_per_layer", reader.count("num_hidden_layers"))
    if listed is None:
        reader.refuse("its config lacks 'num_key_value_heads_per_layer'")
    return [_with_heads(reader, kv_heads) for kv_heads in listed]


def searched_blocks(reader: ConfigReader) -> list[tuple[Attention | None, Ffn | None]]:
    """Attention and feed-forward block of every layer, as `block_configs` describes them one by one."""
    blocks = reader.blocks_per_layer("block_configs", reader.count("num_hidden_layers"))
    if blocks is None:
        reader.refuse("its config lacks 'block_configs'")
    return [
        (_attention(reader, _part(reader, block, "attention")), _ffn(reader, _part(reader, block, "ffn")))
        for block in blocks
    ]


def _part(reader: ConfigReader, block: object, part: str) -> Mapping[str, object]:
    values = block.get(part) if isinstance(block, Mapping) else None
    if not isinstance(values, Mapping):
        reader.refuse(f"each item of 'block_configs' needs a mapping {part!r}")
    for key in UNDERSTOOD_WITHOUT[part]:
        if values.get(key):
            reader.refuse(f"'block_configs': {part} with {key!r} is not understood")
    return values


def _attention(reader: ConfigReader, values: Mapping[str, object]) -> Attention | None:
    if values.get("no_op"):
        return None
    group = values.get("n_heads_in_group")
    heads = reader.count("num_attention_heads")
    if isinstance(group, bool) or not isinstance(group, int) or group < 1 or heads % group:
        reader.refuse(f"'n_heads_in_group' must be a whole number that divides {heads}, but is {group!r}")
    return _with_heads(reader, heads // group)


def _with_heads(reader: ConfigReader, kv_heads: object) -> GroupedQueryAttention:
    heads = reader.count("num_attention_heads")
    if isinstance(kv_heads, bool) or not isinstance(kv_heads, int) or kv_heads < 1 or heads % kv_heads:
        reader.refuse(f"{counted(heads, 'head')} cannot share {kv_heads!r} key-value heads evenly")
    # The config's own count, where it has one, is of no layer in particular.
    each = ConfigReader(reader.model, reader.model_type, {**reader.values, "num_key_value_heads": heads})
    return replace(grouped_query(each), kv_heads=kv_heads)


def _ffn(reader: ConfigReader, values: Mapping[str, object]) -> Ffn | None:
    if values.get("no_op"):
        return None
    factor = values.get("ffn_mult")
    if isinstance(factor, bool) or not isinstance(factor, int | float) or not 0 < factor <= MOST_FFN_MULT:
        reader.refuse(f"'ffn_mult' must be a positive number up to {MOST_FFN_MULT}, but is {factor!r}")
    width = int(2 * factor * reader.count("hidden_size") / 3)
    return DenseFfn(-(-width // FFN_WIDTH_MULTIPLE) * FFN_WIDTH_MULTIPLE)
