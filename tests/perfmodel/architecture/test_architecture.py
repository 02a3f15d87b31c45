"""Architectures from configs: counts against published sizes, attention and experts by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import examples
from tests.perfmodel.architecture.small_models import TINY_DEEPSEEK, TINY_LLAMA, catalogued

from fleetplan.fleet.catalog import model_catalog
from fleetplan.perfmodel.architecture import (
    DenseFfn,
    GroupedQueryAttention,
    LatentAttention,
    LayerGroup,
    MoeFfn,
    NativeQuantisation,
    UnsupportedArchitecture,
    architecture_from_config,
    kept_tokens,
    kv_bytes_per_token_per_layer,
    load_architecture,
)

TOTAL_TOLERANCE = 0.02
"""Published totals are rounded to two or three digits; Scout's 109B has its vision tower in it."""

ACTIVE_TOLERANCE = 0.11
"""Published active counts are whole billions, with or without embeddings (10B for 9.0B)."""


def test_total_parameters_match_the_published_sizes() -> None:
    published = {name: facts.published_parameters * 1e9 for name, facts in model_catalog().items()}
    counted = {name: catalogued(name).total_parameters for name in published}
    assert counted == pytest.approx(published, rel=TOTAL_TOLERANCE)


def test_active_parameters_match_the_published_sizes() -> None:
    published = {
        name: facts.published_active_parameters * 1e9
        for name, facts in model_catalog().items()
        if facts.published_active_parameters
    }
    assert len(published) > 40
    counted = {name: catalogued(name).active_parameters for name in published}
    assert counted == pytest.approx(published, rel=ACTIVE_TOLERANCE)


def test_parts_add_up() -> None:
    for name in model_catalog():
        architecture = catalogued(name)
        by_group = sum(group.count * architecture.group_weights(group).total for group in architecture.groups)
        weights = architecture.weight_count()
        assert weights.layers == by_group, name
        total = by_group + weights.embedding + weights.head
        assert weights.total == total == architecture.total_parameters, name
        assert (weights.head == 0) == architecture.tied_embeddings, name
        assert architecture.active_parameters <= architecture.total_parameters, name


def test_grouped_query_attention_by_hand() -> None:
    architecture = architecture_from_config(TINY_LLAMA, "tiny")
    attention = GroupedQueryAttention(heads=8, kv_heads=2, head_dim=8, value_head_dim=8)
    assert architecture.groups == (LayerGroup(3, attention, DenseFfn(128)),)
    assert architecture.layer_count == 3
    weights = architecture.weight_count()
    # q 64x64, k and v 64x16 each, o 64x64.
    assert weights.attention == 3 * (4096 + 2 * 1024 + 4096)
    assert weights.dense_ffn == 3 * 3 * 64 * 128
    assert weights.embedding == weights.head == 6400
    assert architecture.active_parameters == weights.layers + 6400
    assert kv_bytes_per_token_per_layer(attention, 2.0) == 2 * 2 * 8 * 2
    assert architecture.kv_bytes_per_token(2.0) == 3 * 64
    assert architecture.kv_bytes_per_sequence(100, 2.0) == 100 * 3 * 64


def test_latent_attention_and_shared_experts_by_hand() -> None:
    architecture = architecture_from_config(TINY_DEEPSEEK, "tiny")
    attention = LatentAttention(4, 24, 16, 8, 4, 10)
    moe = MoeFfn(6, 2, 12, shared_experts=2, shared_intermediate_size=24)
    assert architecture.groups == (LayerGroup(1, attention, DenseFfn(96)), LayerGroup(3, attention, moe))
    queries = 64 * 24 + 24 * 4 * 12
    latent = 64 * (16 + 4) + 16 * 4 * (8 + 10)
    weights = architecture.weight_count()
    assert weights.attention == 4 * (queries + latent + 4 * 10 * 64)
    assert weights.dense_ffn == 3 * 64 * 96
    assert weights.routed_experts == 3 * 6 * 3 * 64 * 12
    assert weights.shared_experts == 3 * 3 * 64 * 24
    assert weights.router == 3 * 64 * 6
    assert architecture.active_parameters == weights.layers - weights.routed_experts * 4 // 6 + 6400
    assert architecture.kv_bytes_per_token(1.0) == 4 * (16 + 4)


def test_latent_attention_without_query_rank_projects_queries_at_once() -> None:
    architecture = architecture_from_config({**TINY_DEEPSEEK, "q_lora_rank": None}, "tiny")
    latent = 64 * (16 + 4) + 16 * 4 * (8 + 10)
    assert architecture.weight_count().attention == 4 * (64 * 4 * 12 + latent + 4 * 10 * 64)


def test_llama3_70b_cache_is_320_kib_a_token() -> None:
    assert catalogued("meta-llama/Llama-3.1-70B").kv_bytes_per_token(2.0) == 320 * 1024


def test_deepseek_v3_cache_is_70_kb_a_token() -> None:
    """DeepSeek, Insights into DeepSeek-V3, ISCA 2025, Table 1: 70.272 KB a token in BF16."""
    assert catalogued("deepseek-ai/DeepSeek-V3").kv_bytes_per_token(2.0) == 70_272


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({"quant_method": "fp8", "weight_block_size": [128, 128]}, NativeQuantisation("fp8", "fp8_block")),
        ({"quant_method": "fp8"}, NativeQuantisation("fp8", "fp8")),
        ({"quant_method": "mxfp4"}, NativeQuantisation("mxfp4", "mxfp4")),
        ({"quant_method": "awq", "bits": 4}, NativeQuantisation("awq", "int4")),
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, NativeQuantisation("modelopt", "fp4")),
        ({"quant_method": "modelopt", "quant_algo": "MIXED"}, NativeQuantisation("modelopt", None)),
        ({"quant_method": "bitsandbytes"}, NativeQuantisation("bitsandbytes", None)),
        (
            {
                "quant_method": "compressed-tensors",
                "config_groups": {"a": {"weights": {"type": "int", "num_bits": 4}}},
            },
            NativeQuantisation("compressed-tensors", "int4"),
        ),
        (
            {"quant_method": "compressed-tensors", "config_groups": {"a": {}, "b": {}}},
            NativeQuantisation("compressed-tensors", None),
        ),
    ],
)
def test_native_quantisation_is_kept_as_a_fact(
    entry: dict[str, object], expected: NativeQuantisation
) -> None:
    config = {**TINY_LLAMA, "quantization_config": entry}
    assert architecture_from_config(config, "tiny").quantisation == expected


def test_load_by_id_alias_and_path(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "config.json").write_text(json.dumps(TINY_LLAMA), encoding="utf-8")
    by_alias = load_architecture("LLAMA3-70B", tmp_path)
    assert by_alias == load_architecture("meta-llama/Llama-3.1-70B", tmp_path)
    assert by_alias.name == "meta-llama/Llama-3.1-70B"
    by_file = load_architecture("mine/config.json", tmp_path)
    assert (by_file.name, by_file.layer_count) == ("mine/config.json", 3)
    assert load_architecture("mine", tmp_path).groups == by_file.groups


@given(
    kv_heads=st.integers(1, 16),
    group=st.integers(1, 8),
    head_dim=st.integers(1, 256),
    layers=st.integers(1, 100),
    factor=st.integers(1, 8),
)
@examples(100, 25, 100)
def test_cache_is_proportional_to_key_value_heads(
    kv_heads: int, group: int, head_dim: int, layers: int, factor: int
) -> None:
    def cache(kv_heads: int) -> float:
        heads: dict[str, object] = {
            "num_hidden_layers": layers,
            "num_attention_heads": kv_heads * group,
            "num_key_value_heads": kv_heads,
            "head_dim": head_dim,
        }
        return architecture_from_config({**TINY_LLAMA, **heads}, "any").kv_bytes_per_token(2.0)

    assert cache(kv_heads * factor) == factor * cache(kv_heads)


@given(context=st.integers(0, 10**6), more=st.integers(0, 10**6), window=st.integers(0, 10**5))
@examples(100, 25, 100)
def test_cache_never_shrinks_with_context_and_never_exceeds_the_window(
    context: int, more: int, window: int
) -> None:
    attention = GroupedQueryAttention(8, 8, 64, 64, window=window)
    assert kept_tokens(attention, context) <= kept_tokens(attention, context + more)
    assert kept_tokens(attention, context) == (min(context, window) if window else context)


def test_params_of_mistral_are_the_config_of_the_same_model() -> None:
    dense = {"dim": 64, "n_layers": 3, "n_heads": 8, "n_kv_heads": 2, "hidden_dim": 128, "vocab_size": 100}
    assert architecture_from_config(dense, "m").groups == architecture_from_config(TINY_LLAMA, "m").groups
    experts = {
        "num_experts": TINY_DEEPSEEK["n_routed_experts"],
        "num_experts_per_tok": TINY_DEEPSEEK["num_experts_per_tok"],
        "expert_hidden_dim": TINY_DEEPSEEK["moe_intermediate_size"],
        "num_shared_experts": TINY_DEEPSEEK["n_shared_experts"],
        "first_k_dense_replace": TINY_DEEPSEEK["first_k_dense_replace"],
        "route_every_n": 1,
    }
    same = {
        key: TINY_DEEPSEEK[key] for key in TINY_DEEPSEEK if key.endswith(("_rank", "_dim")) or "vocab" in key
    }
    latent = {"dim": 64, "n_layers": 4, "n_heads": 4, "hidden_dim": 96, "moe": experts, **same}
    expected = architecture_from_config(TINY_DEEPSEEK, "m")
    assert architecture_from_config(latent, "m").groups == expected.groups
    sees = architecture_from_config({**latent, "vision_encoder": {"hidden_size": 32}}, "m")
    assert (sees.groups, sees.left_out) == (expected.groups, ("vision tower",))


def test_towers_are_named_though_their_config_says_nothing() -> None:
    for identifier in ("Qwen/Qwen3.5-27B", "meta-llama/Llama-4-Scout-17B-16E-Instruct"):
        assert "vision tower" in catalogued(identifier).left_out
    assert "vision tower" not in catalogued("meta-llama/Llama-3.1-8B").left_out


def test_a_copy_of_glm_may_name_its_layers_and_count_its_experts_twice() -> None:
    config = model_catalog()["zai-org/GLM-5.2"].config
    layers, experts = config["num_hidden_layers"], config["n_routed_experts"]
    assert isinstance(layers, int)
    assert isinstance(experts, int)
    copy = {**config, "layer_types": ["deepseek_sparse_attention"] * layers, "num_experts": experts}
    assert architecture_from_config(copy, "copy") == architecture_from_config(config, "copy")
    for key, value, said in (
        ("layer_types", ["full_attention"] * layers, "attention layers of type 'full_attention'"),
        ("num_experts", experts + 1, "'num_experts' is not"),
    ):
        with pytest.raises(UnsupportedArchitecture, match=said):
            architecture_from_config({**copy, key: value}, "copy")
