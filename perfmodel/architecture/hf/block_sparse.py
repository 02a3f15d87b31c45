"""Attention to chosen blocks of tokens, from its Hugging Face config (MiniMax-M3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from fleetplan.perfmodel.architecture.hf.attention import grouped_query
from fleetplan.perfmodel.architecture.hf.reader import ConfigReader
from fleetplan.perfmodel.architecture.layers import Attention
from fleetplan.perfmodel.architecture.sparse_index import BlockIndex

_KEY: Final = "sparse_attention_config"


def block_sparse_layers(reader: ConfigReader) -> list[Attention]:
    """Softmax attention, to chosen blocks of tokens in the layers that `sparse_attention_freq` lists."""
    layers = reader.count("num_hidden_layers")
    if reader.flag("attention_output_gate", absent=False):
        reader.refuse("'attention_output_gate' is not understood in this family")
    dense = grouped_query(reader)
    part = reader.values.get(_KEY)
    if part is None:
        return [dense] * layers
    if not isinstance(part, Mapping):
        reader.refuse(f"{_KEY!r} must be a mapping")
    inner = ConfigReader(reader.model, reader.model_type, part)
    if not inner.flag("use_sparse_attention", absent=True):
        return [dense] * layers
    index = BlockIndex(
        heads=inner.count("sparse_num_index_heads"),
        head_dim=inner.count("sparse_index_dim"),
        block_tokens=inner.count("sparse_block_size"),
        blocks=inner.count("sparse_topk_blocks"),
    )
    if index.heads != dense.kv_heads:
        # Each index head chooses for one key-value head; nothing says how others would be shared out.
        reader.refuse(f"{index.heads} index heads with {dense.kv_heads} key-value heads are not understood")
    listed = _per_layer(inner, "sparse_attention_freq", layers)
    without_value = _per_layer(inner, "sparse_disable_index_value", layers)
    if any(sparse and not disabled for sparse, disabled in zip(listed, without_value, strict=True)):
        reader.refuse("'sparse_disable_index_value': indexers with values of their own are not understood")
    sparse = replace(dense, index=index)
    return [sparse if chosen else dense for chosen in listed]


def _per_layer(reader: ConfigReader, key: str, layers: int) -> list[bool]:
    """Return the switches under `key`, one a layer."""
    listed = reader.per_layer(key, layers)
    if listed is None:
        reader.refuse(f"its {_KEY!r} lacks {key!r}")
    for item in listed:
        if item not in (0, 1):
            reader.refuse(f"{key!r} must hold 0 or 1 for each layer, but holds {item!r}")
    return [bool(item) for item in listed]
