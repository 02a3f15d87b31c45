"""Softmax attention to chosen blocks of tokens, by hand on MiniMax-M3's published widths."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.perfmodel.fakes import WorkSource, accelerator, configurations, layouts, whole
from tests.perfmodel.steps.test_decoder_step import operators, row

from fleetplan.fleet.catalog import accelerators, model_catalog
from fleetplan.fleet.inventory import Precision
from fleetplan.perfmodel.architecture import (
    BlockIndex,
    DenseFfn,
    GroupedQueryAttention,
    MoeFfn,
    UnsupportedArchitecture,
    architecture_from_config,
    index_bytes_per_token,
    load_architecture,
)
from fleetplan.perfmodel.evaluator import Evaluator
from fleetplan.perfmodel.operators import OperatorKind, work
from fleetplan.perfmodel.optables.formulas.roofline import roofline_ms
from fleetplan.perfmodel.steps import decode_shape, prefill_shape
from fleetplan.perfmodel.steps.memory import kv_gib_per_sequence
from fleetplan.perfmodel.steps.sharding import weights_per_accelerator

M3 = load_architecture("minimax-m3", Path())
DENSE = GroupedQueryAttention(heads=64, kv_heads=4, head_dim=128, value_head_dim=128)
SPARSE = replace(DENSE, index=BlockIndex(heads=4, head_dim=128, block_tokens=128, blocks=16))
QKV = 6144 * (64 + 4 + 4) * 128
INDEX = 6144 * (4 + 1) * 128
OUTPUT = 64 * 128 * 6144


def test_three_dense_layers_come_before_the_sparse_ones() -> None:
    moe = MoeFfn(128, 4, 3072, shared_experts=1, shared_intermediate_size=3072)
    assert [(each.count, each.attention, each.ffn) for each in M3.groups] == [
        (3, DENSE, DenseFfn(12288)),
        (57, SPARSE, moe),
    ]
    weights = M3.weight_count()
    assert weights.attention == 60 * (QKV + OUTPUT) + 57 * INDEX
    assert weights.dense_ffn == 3 * 3 * 6144 * 12288
    assert weights.routed_experts == 57 * 128 * 3 * 6144 * 3072
    assert weights.shared_experts == 57 * 3 * 6144 * 3072
    assert weights.router == 57 * 6144 * 128
    assert M3.total_parameters == 426_173_792_256
    assert M3.left_out == ("vision tower", "draft layers")


def test_an_index_key_a_token_is_cached_in_bf16_by_every_accelerator() -> None:
    assert index_bytes_per_token(DENSE) == 0.0
    assert index_bytes_per_token(SPARSE) == 256.0
    assert M3.kv_bytes_per_token(2.0) == 60 * 2 * 4 * 128 * 2 + 57 * 256
    assert M3.kv_bytes_per_token(1.0) == 60 * 2 * 4 * 128 + 57 * 256
    dtypes = Evaluator(M3, accelerator(), WorkSource(), Precision("bf16", "bf16")).dtypes
    held = kv_gib_per_sequence(M3, dtypes, layouts("TP8"), whole(1000))
    # One key-value head on each of the eight.
    assert held == pytest.approx(1000 * (60 * 2 * 128 * 2 + 57 * 256) / 2**30)


def test_tensor_parallelism_splits_index_heads_as_it_does_key_value_heads() -> None:
    tp = whole(1, 4, 8)
    found = weights_per_accelerator(6144, SPARSE, tp) - weights_per_accelerator(6144, DENSE, tp)
    assert found.tolist() == [INDEX, 6144 * 2 * 128, 6144 * 2 * 128]


def test_a_token_attends_to_the_best_blocks() -> None:
    found = operators(M3, decode_shape(configurations(("TP4",), (16,), context_tokens=50_000)))
    assert row(found["index_projection"]) == (16, 256, 6144)
    assert found["index_projection"].count.tolist() == [57.0]
    assert row(found["decode_attention"]) == (16, 50_000, 16, 1, 128, 1, 128, 128, 16)
    done = work(OperatorKind.BLOCK_SPARSE_DECODE, "fp8", found["decode_attention"].dims)
    # 2,048 keys and values in FP8, and the index keys of the whole context in BF16.
    assert done.kv_bytes.tolist() == [16 * (2 * 128 * 2048 + 2 * 128 * 50_000.0)]
    assert done.flops.tolist() == [16 * (4 * 16 * 128 * 2048 + 2 * 128 * 50_000.0)]


def test_a_prompt_attends_to_all_of_a_short_context() -> None:
    found = operators(M3, prefill_shape(configurations(("TP1",), (1,), 1000, 500)))
    assert row(found["prefill_limited_attention"]) == (1, 1000, 500, 64, 4, 128, 4, 128, 128, 16)
    dims = found["prefill_limited_attention"].dims
    pairs = 1000 * 500 + 1000 * 1001 / 2
    assert work(OperatorKind.BLOCK_SPARSE_PREFILL, "bf16", dims).flops.tolist() == [
        4 * 64 * 128 * pairs + 2 * 4 * 128 * pairs
    ]
    long = dims | {"prefix_tokens": whole(100_000)}
    scored = 1000 * 100_000 + 1000 * 1001 / 2
    assert work(OperatorKind.BLOCK_SPARSE_PREFILL, "bf16", long).flops.tolist() == [
        4 * 64 * 128 * 1000 * 2048 + 2 * 4 * 128 * scored
    ]


def test_decode_over_a_long_context_reads_its_index_keys() -> None:
    part = accelerators()["MI300X"]
    dims = operators(M3, decode_shape(configurations(("TP4",), (64,), context_tokens=100_000)))[
        "decode_attention"
    ].dims
    done = work(OperatorKind.BLOCK_SPARSE_DECODE, "bf16", dims)
    reading_ms = (done.kv_bytes + done.activation_bytes) / (
        part.hbm_gb_per_s * 1e6 * part.efficiency.kv_read_ratio
    )
    found = roofline_ms(part, OperatorKind.BLOCK_SPARSE_DECODE, "bf16", dims)
    assert found == pytest.approx(reading_ms + 12e-3)
    assert found > 64 * 100_000 * 256 / (part.hbm_gb_per_s * 1e6)


def text_config() -> dict[str, object]:
    found = model_catalog()["MiniMaxAI/MiniMax-M3"].config["text_config"]
    assert isinstance(found, dict)
    return dict(found)


REFUSED = [
    ({"sparse_attention_config": 1}, "'sparse_attention_config' must be a mapping"),
    ({"attention_output_gate": True}, "'attention_output_gate' is not understood"),
    ({"moe_layer_freq": [0, 1, 1]}, "describes 3 layers"),
    ({"moe_layer_freq": None}, "lacks 'moe_layer_freq'"),
    ({"moe_layer_freq": [0] * 3 + [2] * 57, "first_k_dense_replace": None}, "type 2 are not understood"),
    ({"first_k_dense_replace": 4}, "name different dense layers"),
    ({"index_topk": 2048}, "'index_topk' is not understood in this family"),
]
REFUSED_INDEX = [
    ({"sparse_num_index_heads": 8}, "8 index heads with 4 key-value heads"),
    ({"sparse_disable_index_value": [0] * 60}, "values of their own"),
    ({"sparse_attention_freq": None}, "lacks 'sparse_attention_freq'"),
    ({"sparse_attention_freq": [0] * 59 + [2]}, "must hold 0 or 1"),
    ({"sparse_block_size": 0}, "'sparse_block_size' must be a whole number"),
]


@pytest.mark.parametrize(("change", "message"), REFUSED)
def test_what_is_not_understood_is_refused(change: dict[str, object], message: str) -> None:
    config = text_config() | change
    with pytest.raises(UnsupportedArchitecture, match=message):
        architecture_from_config(config, "changed")


@pytest.mark.parametrize(("change", "message"), REFUSED_INDEX)
def test_indexers_that_are_not_understood_are_refused(change: dict[str, object], message: str) -> None:
    config = text_config()
    part = config["sparse_attention_config"]
    assert isinstance(part, dict)
    config["sparse_attention_config"] = part | change
    with pytest.raises(UnsupportedArchitecture, match=message):
        architecture_from_config(config, "changed")


def test_without_sparse_attention_all_layers_see_everything() -> None:
    config = text_config()
    for switched_off in ({"use_sparse_attention": False}, None):
        found = architecture_from_config(config | {"sparse_attention_config": switched_off}, "dense")
        assert {group.attention for group in found.groups} == {DENSE}
