"""Compressed attention and hyper-connections, by hand on DeepSeek-V4's published widths."""

from pathlib import Path

import numpy as np
import pytest
from tests.perfmodel.fakes import configurations, layouts, whole
from tests.perfmodel.steps.test_decoder_step import operators, row

from fleetplan.fleet.catalog import accelerators, model_catalog
from fleetplan.fleet.inventory import Precision
from fleetplan.perfmodel.architecture import (
    CompressedAttention,
    ModelArchitecture,
    UnsupportedArchitecture,
    architecture_from_config,
    load_architecture,
)
from fleetplan.perfmodel.landscape.layout_problems import layout_problem
from fleetplan.perfmodel.operators import IntArray, OperatorKind, work
from fleetplan.perfmodel.optables.formulas.roofline import roofline_ms
from fleetplan.perfmodel.optables.times import UnsupportedDtype
from fleetplan.perfmodel.parallelism import parse_parallelism
from fleetplan.perfmodel.steps import decode_shape, part_dtypes, prefill_shape, step_operators
from fleetplan.perfmodel.steps.memory import kv_gib_per_sequence
from fleetplan.perfmodel.steps.sharding import weights_per_accelerator

FLASH = load_architecture("deepseek-ai/DeepSeek-V4-Flash", Path())
PRO = load_architecture("deepseek-ai/DeepSeek-V4-Pro", Path())
NATIVE = Precision("mxfp4", "fp8")
PARTS = accelerators()
WINDOW_ONLY, INDEXED, HEAVY = 0, 4, 128

# One layer of Flash: queries through 1,024, 64 heads of 512, outputs in 8 groups through 1,024 each.
QUERIES = 4096 * 1024 + 1024 * 64 * 512
LATENT = 4096 * 512
OUTPUTS = 64 * 512 * 1024 + 8 * 1024 * 4096
# A value and a share for each entry; with an index a token is part of two, of attention and of the index.
HEAVY_COMPRESSOR = 2 * 4096 * 512
INDEXED_COMPRESSORS = 2 * 4096 * 2 * (512 + 128)
INDEXER = 64 * (1024 * 128 + 4096)


def layer(model: ModelArchitecture, ratio: int) -> CompressedAttention:
    found = [each.attention for each in model.groups if isinstance(each.attention, CompressedAttention)]
    return next(each for each in found if each.ratio == ratio)


def ratios(model: ModelArchitecture) -> list[tuple[int, int]]:
    attention = [(each.count, each.attention) for each in model.groups]
    return [(count, each.ratio) for count, each in attention if isinstance(each, CompressedAttention)]


def test_weights_of_a_layer_are_those_of_its_kind() -> None:
    common = QUERIES + LATENT + OUTPUTS
    assert layer(FLASH, WINDOW_ONLY).weights(4096) == common
    assert layer(FLASH, HEAVY).weights(4096) == common + HEAVY_COMPRESSOR
    assert layer(FLASH, INDEXED).weights(4096) == common + INDEXED_COMPRESSORS + INDEXER


def test_layers_are_counted_without_the_draft_layer() -> None:
    assert ratios(FLASH) == [(2, WINDOW_ONLY), (21, INDEXED), (20, HEAVY)]
    assert ratios(PRO) == [(31, HEAVY), (30, INDEXED)]
    assert FLASH.left_out == ("draft layers",)


def test_parameters_are_the_published_ones() -> None:
    # Published: 284 billion with 13 active, and 1.6 trillion with 49 active.
    assert FLASH.total_parameters / 1e9 == pytest.approx(284, rel=2e-3)
    assert FLASH.active_parameters / 1e9 == pytest.approx(13, rel=2e-2)
    assert PRO.total_parameters / 1e12 == pytest.approx(1.6, rel=2e-2)
    assert PRO.active_parameters / 1e9 == pytest.approx(49, rel=1e-2)


def test_tensor_parallelism_splits_heads_and_leaves_compressors_whole() -> None:
    indexed = layer(FLASH, INDEXED)
    whole_part = 4096 * (1024 + 512) + INDEXED_COMPRESSORS + INDEXER
    split = 64 * 512 * (1024 + 1024) + 8 * 1024 * 4096
    each = weights_per_accelerator(4096, indexed, whole(1, 8))
    assert each.tolist() == [whole_part + split, whole_part + split // 8]


def test_a_cache_has_a_window_entries_and_index_keys() -> None:
    # A vector in FP8: 448 bytes, 64 rotary elements in BF16, 7 scales and a byte.
    entry = 448 + 2 * 64 + 8
    assert layer(FLASH, WINDOW_ONLY).cache_bytes(8192, 1.0) == 128 * entry
    assert layer(FLASH, WINDOW_ONLY).cache_bytes(100, 1.0) == 100 * entry
    assert layer(FLASH, HEAVY).cache_bytes(8192, 1.0) == (128 + 64) * entry
    # An index key is 128 elements in FP8 and a scale in FP32.
    assert layer(FLASH, INDEXED).cache_bytes(8192, 1.0) == (128 + 2048) * entry + 2048 * 132
    assert layer(FLASH, INDEXED).cache_bytes(8192, 2.0) == (128 + 2048) * 1024 + 2048 * 132
    # An unfinished entry is not in the cache: compressors keep its tokens, in FP32.
    assert layer(FLASH, HEAVY).cache_bytes(8191, 1.0) == (128 + 63) * entry
    assert layer(FLASH, HEAVY).state_bytes == 2 * 128 * 512 * 4
    assert layer(FLASH, INDEXED).state_bytes == 2 * 8 * 2 * (512 + 128) * 4
    assert layer(FLASH, WINDOW_ONLY).state_bytes == 0


def test_a_sequence_holds_what_its_layers_hold() -> None:
    entry, tokens = 584, 8192
    states = 21 * 2 * 8 * 2 * 640 * 4 + 20 * 2 * 128 * 512 * 4
    entries = 43 * 128 + 21 * tokens // 4 + 20 * tokens // 128
    held = entries * entry + 21 * tokens // 4 * 132 + states
    assert FLASH.kv_bytes_per_sequence(tokens, 1.0) == held
    dtypes = part_dtypes(FLASH, NATIVE)
    on_one = kv_gib_per_sequence(FLASH, dtypes, layouts("TP1", "TP8"), whole(tokens, tokens))
    # One latent vector serves all heads: every accelerator holds it.
    assert on_one * 2**30 == pytest.approx([held, held])
    # A million tokens need about a twelfth of what DeepSeek-V3.2 keeps (656 + 132 bytes a token and layer).
    million = FLASH.kv_bytes_per_sequence(2**20, 1.0) / (61 * 788 * 2**20)
    assert million == pytest.approx(1 / 12, rel=0.05)


@pytest.mark.parametrize(
    ("weights", "attention", "experts"),
    [
        ("mxfp4", "fp8_block", "mxfp4"),
        ("fp4", "fp8_block", "fp4"),
        ("fp8", "fp8_block", "fp8_block"),
        ("bf16", "bf16", "bf16"),
    ],
)
def test_experts_in_four_bits_have_fp8_beside_them(weights: str, attention: str, experts: str) -> None:
    found = part_dtypes(FLASH, Precision(weights, "fp8"))
    assert (found.attention, found.shared_experts) == (attention, attention)
    assert found.routed_experts == experts
    assert found.other == "bf16"


def test_a_decode_step_runs_every_layer_once_and_mixes_streams_around_every_block() -> None:
    shape = decode_shape(configurations(("TP8",), (16,), context_tokens=4096))
    found = list(step_operators(FLASH, part_dtypes(FLASH, NATIVE), shape))
    blocks = [each for each in found if each.kind is OperatorKind.COMPRESSED_DECODE]
    assert [float(each.count[0]) for each in blocks] == [2, 21, 20]
    assert {each.dtype for each in blocks} == {"fp8_block"}
    # Heads and output groups of one of eight accelerators, in FP8 with a cache of 8 bits.
    assert row(blocks[1]) == (16, 4096, 8, 1, 4096, 1024, 512, 64, 128, 4, 512, 64, 128, 1024, 8)
    assert row(blocks[2]) == (16, 4096, 8, 1, 4096, 1024, 512, 64, 128, 128, 0, 0, 0, 1024, 8)
    mixed = {each.name: each for each in found if each.kind is OperatorKind.HYPER_CONNECTION}
    assert row(mixed["streams_before"]) == (16, 4096, 4, 1)
    assert row(mixed["streams_behind"]) == (16, 4096, 4, 2)
    assert {float(each.count[0]) for each in mixed.values()} == {2 * 43}
    reductions = [each for each in found if each.name == "attention_all_reduce"]
    assert sum(float(each.count[0]) for each in reductions) == 43
    # A norm no longer adds to the residual stream: it reads and writes a row in BF16.
    assert row(operators(FLASH, shape, NATIVE)["ffn_norm"]) == (2 * 16 * 4096 * 2,)


def test_pipeline_stages_hand_on_all_streams() -> None:
    shape = prefill_shape(configurations(("PP2",), (1,), input_tokens=100))
    assert row(operators(FLASH, shape, NATIVE)["pipeline_send"])[0] == 100 * 4 * 4096 * 2


def test_the_work_of_a_generated_token_by_hand() -> None:
    dims = block(INDEXED, batch=2, context_tokens=8192)
    done = work(OperatorKind.COMPRESSED_DECODE, "fp8_block", dims)
    stored = QUERIES + LATENT + OUTPUTS + 64 * 1024 * 128
    in_bf16 = INDEXED_COMPRESSORS + 64 * 4096
    # 128 tokens of the window and 512 chosen entries; 2,048 keys are scored by 64 heads of 128.
    flops = 2 * (stored + in_bf16) + 4 * 64 * 512 * (128 + 512) + 2 * 64 * 128 * 2048
    assert done.flops == pytest.approx(2 * flops)
    assert done.weight_bytes == pytest.approx(stored + 2 * in_bf16)
    assert done.kv_bytes == pytest.approx(2 * ((128 + 512) * (448 + 128) + 2048 * 132), rel=1e-3)
    heavy = work(OperatorKind.COMPRESSED_DECODE, "fp8_block", block(HEAVY, batch=2, context_tokens=8192))
    products = 2 * (QUERIES + LATENT + OUTPUTS + HEAVY_COMPRESSOR)
    assert heavy.flops == pytest.approx(2 * (products + 4 * 64 * 512 * (128 + 64)))
    alone = work(
        OperatorKind.COMPRESSED_DECODE, "fp8_block", block(WINDOW_ONLY, batch=2, context_tokens=8192)
    )
    assert alone.flops == pytest.approx(2 * (2 * (QUERIES + LATENT + OUTPUTS) + 4 * 64 * 512 * 128))


def test_the_last_token_of_a_prompt_works_as_a_generated_one() -> None:
    names = ("flops", "weight_bytes", "kv_bytes")
    for ratio in (WINDOW_ONLY, INDEXED, HEAVY):
        decode = work(OperatorKind.COMPRESSED_DECODE, "fp8_block", block(ratio, batch=3, context_tokens=5000))
        dims = block(ratio, batch=3, new_tokens=1, prefix_tokens=4999)
        prompt = work(OperatorKind.COMPRESSED_PREFILL, "fp8_block", dims)
        for name in names:
            assert getattr(prompt, name) == pytest.approx(getattr(decode, name)), (ratio, name)


@pytest.mark.parametrize("part", ["H200-SXM", "B200-SXM", "MI300X"])
@pytest.mark.parametrize("ratio", [WINDOW_ONLY, INDEXED, HEAVY])
def test_the_roofline_grows_with_every_token(part: str, ratio: int) -> None:
    sizes = whole(1, 2, 100, 128, 129, 511, 2048, 2049, 8192, 131_072, 1_048_575)
    one = np.ones_like(sizes)
    fixed = {name: values * one for name, values in block(ratio, batch=1, context_tokens=1).items()}
    by_context = roofline_ms(
        PARTS[part], OperatorKind.COMPRESSED_DECODE, "fp8_block", fixed | {"context_tokens": sizes}
    )
    assert (np.diff(by_context) >= 0).all()
    fixed = {
        name: values * one for name, values in block(ratio, batch=1, new_tokens=64, prefix_tokens=0).items()
    }
    kind = OperatorKind.COMPRESSED_PREFILL
    for name in ("batch", "new_tokens", "prefix_tokens"):
        times = roofline_ms(PARTS[part], kind, "fp8_block", fixed | {name: sizes})
        assert (np.diff(times) >= 0).all(), name


def test_a_part_without_units_for_the_weights_is_refused() -> None:
    dims = block(HEAVY, batch=1, context_tokens=1)
    with pytest.raises(UnsupportedDtype):
        roofline_ms(PARTS["A100-SXM-80GB"], OperatorKind.COMPRESSED_DECODE, "fp8_block", dims)


@pytest.mark.parametrize(
    ("layout", "problem"),
    [
        ("TP8", ""),
        ("DP8-EP8", ""),
        ("TP16", "tp 16 does not divide 8 groups of output heads"),
        ("TP2CP2-TP4", "cp 2 of compressed attention is not evaluated"),
    ],
)
def test_layouts_that_the_blocks_cannot_have_are_named(layout: str, problem: str) -> None:
    assert layout_problem(FLASH, parse_parallelism(layout), PARTS["H200-SXM"]) == problem


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"compress_ratios": None}, "its config lacks 'compress_ratios'"),
        ({"compress_ratios": [4, 128]}, "'compress_ratios' describes 2 layers, but the model has 43"),
        (
            {"compress_ratios": [8] * 43},
            "'compress_ratios': layers of ratio 8 are not understood (known: 0, 4, 128)",
        ),
        (
            {"num_key_value_heads": 2},
            "compressed attention with more than one key-value head is not understood",
        ),
        ({"o_groups": 7}, "64 heads cannot form 7 output groups evenly"),
        ({"qk_rope_head_dim": 513}, "513 rotary elements are more than the 512 of a head"),
        ({"hc_mult": None}, "its config lacks 'hc_mult'"),
        ({"layer_types": ["sliding_attention"] * 43}, "'layer_types' is not understood in this family"),
    ],
)
def test_what_is_not_understood_of_the_family_is_refused(change: dict[str, object], reason: str) -> None:
    config = {**model_catalog()["deepseek-ai/DeepSeek-V4-Flash"].config, **change}
    with pytest.raises(UnsupportedArchitecture) as caught:
        architecture_from_config(config, "my/model")
    assert caught.value.reason == reason


def test_the_formats_of_published_checkpoints() -> None:
    config = dict(model_catalog()["deepseek-ai/DeepSeek-V4-Flash"].config)
    block_fp8 = {"quant_method": "fp8", "weight_block_size": [128, 128]}
    for changes, stored in (
        ({"expert_dtype": "fp4", "quantization_config": block_fp8}, "mxfp4"),
        ({"expert_dtype": "fp4", "quantization_config": {**block_fp8, "moe_quant_algo": "NVFP4"}}, "fp4"),
        ({"expert_dtype": None, "quantization_config": block_fp8}, "fp8_block"),
        ({"expert_dtype": "fp3", "quantization_config": block_fp8}, None),
    ):
        quantisation = architecture_from_config({**config, **changes}, "my/model").quantisation
        assert quantisation is not None
        assert quantisation.dtype == stored


def block(ratio: int, **own: int) -> dict[str, IntArray]:
    """Dimensions of a block of Flash on one accelerator."""
    index = layer(FLASH, ratio).index
    dims = {
        **own,
        "heads": 64,
        "groups": 8,
        "hidden": 4096,
        "query_rank": 1024,
        "head_dim": 512,
        "rope_head_dim": 64,
        "window": 128,
        "ratio": ratio,
        "top_k": 0 if index is None else 512,
        "index_heads": 0 if index is None else 64,
        "index_head_dim": 0 if index is None else 128,
        "output_rank": 1024,
        "kv_bits": 8,
    }
    return {name: whole(value) for name, value in dims.items()}
