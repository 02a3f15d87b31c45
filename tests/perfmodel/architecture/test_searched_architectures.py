"""Decoders whose layers differ one by one, and decoders whose two blocks run side by side."""

from pathlib import Path

import pytest
from tests.perfmodel.fakes import configurations
from tests.perfmodel.steps.test_decoder_step import operators, row

from fleetplan.fleet.catalog import model_catalog
from fleetplan.perfmodel.architecture import (
    DenseFfn,
    GroupedQueryAttention,
    ModelArchitecture,
    UnsupportedArchitecture,
    architecture_from_config,
    load_architecture,
)
from fleetplan.perfmodel.steps import decode_shape

SEARCHED: dict[str, object] = {
    "model_type": "nemotron-nas",
    "hidden_size": 96,
    "vocab_size": 1000,
    "tie_word_embeddings": False,
    "num_hidden_layers": 3,
    "num_attention_heads": 6,
    "num_key_value_heads": None,
    "block_configs": [
        {"attention": {"n_heads_in_group": 3}, "ffn": {"ffn_mult": 5.25}},
        {"attention": {"no_op": True}, "ffn": {"ffn_mult": 1.3}},
        {"attention": {"n_heads_in_group": 6}, "ffn": {"no_op": True}},
    ],
}


def model(name: str) -> ModelArchitecture:
    return load_architecture(name, Path())


def test_searched_blocks_by_hand() -> None:
    groups = architecture_from_config(SEARCHED, "my/model").groups
    # 2/3 of 5.25 x 96 is 336, rounded up to a multiple of 256; of 1.3 x 96 it is 83.
    assert [(group.attention, group.ffn) for group in groups] == [
        (GroupedQueryAttention(6, 2, 16, 16), DenseFfn(512)),
        (None, DenseFfn(256)),
        (GroupedQueryAttention(6, 1, 16, 16), None),
    ]


def test_nemotron_super_has_layers_without_attention() -> None:
    groups = model("nemotron-super-49b").groups
    assert sum(group.count for group in groups if group.attention) == 49
    assert sum(group.count for group in groups) == 80
    widths = {group.ffn.intermediate_size for group in groups if isinstance(group.ffn, DenseFfn)}
    assert max(widths) == 28672
    found = operators(model("nemotron-super-49b"), decode_shape(configurations(("TP8",), (4,))))
    assert found["decode_attention"].count.tolist() == [49.0]
    assert found["attention_all_reduce"].count.tolist() == [49.0]


def test_decilm_counts_key_value_heads_layer_by_layer() -> None:
    decilm = model("decilm-7b")
    heads = {
        group.attention.kv_heads: group.count
        for group in decilm.groups
        if isinstance(group.attention, GroupedQueryAttention)
    }
    assert heads == {4: 7, 2: 14, 1: 11}
    assert decilm.kv_bytes_per_token(2.0) == 67 * 2 * 128 * 2


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"block_configs": None}, "lacks 'block_configs'"),
        ({"block_configs": [{}] * 3}, "needs a mapping 'attention'"),
        ({"block_configs": [{"attention": {"replace_with_linear": True}}] * 3}, "'replace_with_linear'"),
        ({"block_configs": [{"attention": {"n_heads_in_group": 4}}] * 3}, "divides 6"),
        (
            {"block_configs": [{"attention": {"no_op": True}, "ffn": {"ffn_mult": 0}}] * 3},
            "'ffn_mult' must be a positive number up to 1000",
        ),
        ({"model_type": "deci", "block_configs": None}, "lacks 'num_key_value_heads_per_layer'"),
        (
            {"model_type": "deci", "block_configs": None, "num_key_value_heads_per_layer": [1, 2, 4]},
            "cannot share 4 key-value heads",
        ),
        ({"model_type": "llama", "intermediate_size": 8, "num_key_value_heads": 6}, "'block_configs'"),
    ],
)
def test_what_is_not_understood_is_refused(change: dict[str, object], reason: str) -> None:
    with pytest.raises(UnsupportedArchitecture, match=reason):
        architecture_from_config({**SEARCHED, **change}, "my/model")


def test_gptj_reads_the_names_of_its_family() -> None:
    gptj = model("GPT-J 6B")
    (group,) = gptj.groups
    assert (group.count, group.attention) == (28, GroupedQueryAttention(16, 16, 256, 256))
    assert group.ffn == DenseFfn(16384, gated=False)
    assert gptj.max_context_tokens == 2048
    wider = dict(model_catalog()["EleutherAI/gpt-j-6b"].config) | {"n_inner": 1000}
    assert architecture_from_config(wider, "my/model").groups[0].ffn == DenseFfn(1000, gated=False)


@pytest.mark.parametrize(
    ("change", "kv_heads"),
    [
        ({}, 1),
        ({"multi_query": False}, 71),
        ({"new_decoder_architecture": True}, 71),
        ({"new_decoder_architecture": True, "num_kv_heads": None}, 71),
    ],
)
def test_falcon_counts_key_value_heads_by_its_architecture(change: dict[str, object], kv_heads: int) -> None:
    config = dict(model_catalog()["tiiuae/falcon-7b"].config) | change
    attention = architecture_from_config(config, "my/falcon").groups[0].attention
    assert isinstance(attention, GroupedQueryAttention)
    assert attention.kv_heads == kv_heads


def test_blocks_side_by_side_share_a_norm_and_a_reduction() -> None:
    found = operators(model("falcon-40b"), decode_shape(configurations(("TP8",), (16,))))
    assert row(found["ffn_gate_up"]) == (16, 4 * 8192 // 8, 8192)
    assert found["ffn_all_reduce"].count.tolist() == [60.0]
    assert "attention_all_reduce" not in found
    assert "ffn_norm" not in found
    config = dict(model_catalog()["tiiuae/falcon-7b"].config) | {"parallel_attn": False}
    after_another = operators(
        architecture_from_config(config, "my/falcon"), decode_shape(configurations(("TP1",), (1,)))
    )
    assert "ffn_norm" in after_another


def test_blocks_side_by_side_reduce_apart_where_they_are_split_apart() -> None:
    found = operators(model("falcon-40b"), decode_shape(configurations(("TP2DP4-TP8", "TP8"), (16, 16))))
    assert found["attention_all_reduce"].count.tolist() == [60.0, 0.0]
