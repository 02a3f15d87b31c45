"""Latent attention behind an indexer, by hand on DeepSeek-V3.2's and GLM-5's published widths."""

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tests.perfmodel.fakes import WorkSource, accelerator, configurations, whole
from tests.perfmodel.steps.test_decoder_step import operators, row

from fleetplan.fleet.catalog import accelerators, model_catalog
from fleetplan.fleet.inventory import Precision
from fleetplan.perfmodel.architecture import (
    LatentAttention,
    ModelArchitecture,
    UnsupportedArchitecture,
    architecture_from_config,
    index_bytes_per_token,
    kv_bytes_per_token_per_layer,
    load_architecture,
)
from fleetplan.perfmodel.evaluator import Evaluator
from fleetplan.perfmodel.operators import OperatorKind, work
from fleetplan.perfmodel.optables import operator_source
from fleetplan.perfmodel.optables.formulas.roofline import roofline_ms
from fleetplan.perfmodel.optables.measured.folders import data_folder
from fleetplan.perfmodel.parallelism import Layouts, parse_parallelism
from fleetplan.perfmodel.steps import decode_shape, prefill_shape
from fleetplan.perfmodel.steps.memory import kv_gib_per_sequence
from fleetplan.perfmodel.steps.sharding import weights_per_accelerator
from fleetplan.perfmodel.steps.sparse import with_dense_prompts

V32 = load_architecture("deepseek-ai/DeepSeek-V3.2", Path())
GLM = load_architecture("zai-org/GLM-5", Path())
FP8 = Precision("fp8", "bf16")
PROJECTIONS = {"attention_norm", "latent_projection", "query_projection", "output_projection"}
BLOCK = PROJECTIONS | {
    "index_query_projection",
    "index_key_projection",
    "index_rotation",
    "prefill_index",
    "decode_index",
    "key_value_projection",
    "prefill_absorbed_queries",
    "prefill_absorbed_outputs",
    "absorbed_queries",
    "absorbed_outputs",
    "prefill_limited_attention",
    "decode_attention",
}


def attention(model: ModelArchitecture) -> LatentAttention:
    found = model.groups[0].attention
    assert isinstance(found, LatentAttention)
    return found


def test_the_indexer_adds_its_projections_and_a_key_a_token() -> None:
    sparse = attention(V32)
    plain = replace(sparse, index=None)
    indexer = 1536 * 64 * 128 + 7168 * (128 + 64)
    assert sparse.weights(7168) - plain.weights(7168) == indexer
    # Tensor parallelism splits the heads of attention, and leaves the indexer whole.
    tp = whole(1, 8)
    more = weights_per_accelerator(7168, sparse, tp) - weights_per_accelerator(7168, plain, tp)
    assert more.tolist() == [indexer, indexer]
    # 128 elements in FP8 and one FP32 scale, whatever the KV cache has.
    assert index_bytes_per_token(sparse) == 132.0
    assert kv_bytes_per_token_per_layer(sparse, 2.0) == 576 * 2 + 132
    assert kv_bytes_per_token_per_layer(sparse, 1.0) == 576 + 132
    assert V32.kv_bytes_per_token(1.0) == 61 * 708
    assert V32.kv_bytes_per_sequence(1000, 1.0) == 61 * 708 * 1000
    layouts = Layouts.of([parse_parallelism("TP8")])
    dtypes = Evaluator(V32, accelerator(), WorkSource(), FP8).dtypes
    held = kv_gib_per_sequence(V32, dtypes, layouts, whole(1000))
    assert held == pytest.approx(61 * 1000 * (576 * 2 + 132) / 2**30)


def test_a_token_attends_to_the_chosen_ones_alone() -> None:
    found = operators(V32, decode_shape(configurations(("TP8",), (16,), context_tokens=50_000)), FP8)
    assert row(found["index_query_projection"]) == (16, 64 * 128, 1536)
    assert row(found["index_key_projection"]) == (16, 128 + 64, 7168)
    # One new token after 49,999: all heads of the indexer are on each of the 8 accelerators.
    assert row(found["decode_index"]) == (16, 1, 49_999, 64, 128, 2048)
    assert row(found["decode_attention"]) == (16, 1, 2047, 16, 512, 64, 2048)
    assert row(found["absorbed_queries"]) == (16, 16, 512, 128)
    assert found["decode_index"].count.tolist() == [61.0]
    done = work(OperatorKind.SPARSE_ATTENTION, "bf16", found["decode_attention"].dims)
    assert done.kv_bytes.tolist() == [16 * 2048 * 576 * 2.0]
    assert done.flops.tolist() == [2.0 * 16 * 16 * (576 + 512) * 2048]
    scored = work(OperatorKind.TOKEN_SELECTION, "fp8", found["decode_index"].dims)
    assert scored.flops.tolist() == [2.0 * 16 * 64 * 128 * 50_000]
    assert scored.kv_bytes.tolist() == [16 * 50_000 * 128.0]
    # Scores in FP32, written and read.
    assert scored.activation_bytes.tolist() == [16 * 50_000 * 8.0]


def test_a_long_prompt_chooses_in_the_absorbed_form() -> None:
    asked = configurations(("TP8",), (2,), input_tokens=4096, prefix_tokens=1000)
    found = operators(V32, prefill_shape(asked), FP8)
    assert row(found["prefill_index"]) == (2, 4096, 1000, 64, 128, 2048)
    assert row(found["prefill_absorbed_queries"]) == (2 * 4096, 16, 512, 128)
    assert row(found["prefill_limited_attention"]) == (2, 4096, 1000, 16, 512, 64, 2048)
    assert row(found["prefill_absorbed_outputs"]) == (2 * 4096, 16, 128, 512)
    assert "key_value_projection" not in found
    # The first new token sees 1,001 keys, the last 5,096.
    scored = work(OperatorKind.TOKEN_SELECTION, "fp8", found["prefill_index"].dims)
    assert scored.flops.tolist() == [2.0 * 2 * 64 * 128 * sum(range(1001, 5097))]


def test_short_prompts_are_dense_where_the_framework_has_it_so() -> None:
    short = prefill_shape(configurations(("TP8", "TP8"), (1, 1), input_tokens=1024, prefix_tokens=1024))
    everywhere = operators(V32, short, FP8)
    assert row(everywhere["prefill_limited_attention"])[-1] == 2048
    dense = operators(with_dense_prompts(V32), short, FP8)
    assert row(dense["prefill_limited_attention"]) == (1, 1024, 1024, 16, 192, 128)
    assert row(dense["key_value_projection"]) == (2048, 16 * 256, 512)
    assert "prefill_index" not in dense
    assert "index_key_projection" in dense
    longer = prefill_shape(configurations(("TP8",), (1,), input_tokens=1025, prefix_tokens=1024))
    found = operators(with_dense_prompts(V32), longer, FP8)
    assert row(found["prefill_limited_attention"])[-1] == 2048


def test_context_parallel_ranks_share_what_was_chosen() -> None:
    shape = decode_shape(configurations(("TP4CP2-TP8",), (16,), context_tokens=50_000))
    found = operators(V32, shape, FP8)
    assert row(found["decode_index"])[:3] == (16, 1, 24_999)
    assert row(found["decode_attention"])[:3] == (16, 1, 1023)


def test_layers_that_take_over_a_choice_have_no_indexer() -> None:
    model = load_architecture("glm-5.2", Path())
    indexed = [group for group in model.groups if group.attention and index_bytes_per_token(group.attention)]
    # Three layers of their own, then one in four of the other 75.
    assert sum(group.count for group in indexed) == 3 + 18
    assert model.layer_count == 78
    found = operators(model, decode_shape(configurations(("TP8",), (16,), context_tokens=50_000)), FP8)
    assert found["decode_index"].count.tolist() == [21.0]
    assert model.kv_bytes_per_token(1.0) == 78 * 576 + 21 * 132
    assert model.total_parameters < GLM.total_parameters


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"index_topk": None}, "lacks 'index_topk'"),
        ({"indexer_types": ["full"]}, "describes 1 layer"),
        ({"indexer_types": ["half"] * 78}, "indexers of type 'half' are not understood"),
        ({"index_topk_freq": 4}, "does not say which layers have an indexer"),
    ],
)
def test_an_indexer_that_is_not_understood_is_refused(change: dict[str, object], reason: str) -> None:
    config = dict(model_catalog()["zai-org/GLM-5"].config) | change
    with pytest.raises(UnsupportedArchitecture, match=reason):
        architecture_from_config(config, "my/model")


def test_long_contexts_cost_the_index_and_not_the_attention() -> None:
    part = accelerators()["MI300X"]
    own = Evaluator(GLM, part, operator_source(part, "sglang"), Precision("fp8", "fp8"))
    asked = (
        configurations(("TP8",) * 2, (16, 16)),
        configurations(("TP8",) * 2, (16, 16), context_tokens=120_000),
    )
    near, far = (own.step(decode_shape(each)) for each in asked)
    grown = dict(zip(near.names, far.breakdown_ms[:, 0] - near.breakdown_ms[:, 0], strict=True))
    assert grown["decode_index"] > 0
    assert grown["decode_attention"] == pytest.approx(0.0)
    # Full attention over as much context reads 58 times the chosen tokens.
    dense = replace(
        GLM,
        groups=tuple(replace(group, attention=replace(attention(GLM), index=None)) for group in GLM.groups),
    )
    full = replace(own, architecture=dense).step(decode_shape(asked[1]))
    assert full.latency_ms[0] > 1.3 * far.latency_ms[0]


def test_the_chip_computes_heads_in_tiles() -> None:
    dims = {
        name: whole(value, value)
        for name, value in {"batch": 1, "new_tokens": 8192, "prefix_tokens": 8192, "kv_rank": 512}.items()
    }
    dims |= {"rope_head_dim": whole(64, 64), "top_k": whole(2048, 2048), "heads": whole(8, 64)}
    hopper, blackwell = (
        roofline_ms(accelerators()[name], OperatorKind.SPARSE_ATTENTION, "bf16", dims)
        for name in ("H200-SXM", "B200-SXM")
    )
    assert hopper[0] == pytest.approx(hopper[1])
    flops = 2.0 * 8192 * 64 * (576 + 512) * 2048
    assert hopper[0] == pytest.approx(flops / (989.5e9 * 0.55), rel=1e-3)
    assert blackwell[0] == pytest.approx(2 * flops / (accelerators()["B200-SXM"].bf16_tflops * 0.55e9))


def test_one_query_waits_for_its_own_choice() -> None:
    part = accelerators()["H200-SXM"]
    names = ("batch", "new_tokens", "prefix_tokens", "heads", "head_dim", "top_k")
    asked = {
        name: whole(*values)
        for name, values in zip(
            names, ((1, 1), (1, 1), (131_071, 1_999), (32, 32), (128, 128), (2048, 2048)), strict=True
        )
    }
    long, short = roofline_ms(part, OperatorKind.TOKEN_SELECTION, "fp8", asked)
    reading_us = 131_072 * 128 / (part.hbm_gb_per_s * 1e3 * part.efficiency.kv_read_ratio)
    # Scores, then 3.8 us and 0.21 us a thousand tokens of one block; 2,000 tokens leave nothing to choose.
    assert long * 1e3 == pytest.approx(3.6 + reading_us + 3.8 + 0.21 * 131.072, rel=1e-6)
    assert 3.6 < short * 1e3 < 3.8


def test_attention_to_few_tokens_takes_its_least_time() -> None:
    names = ("batch", "new_tokens", "prefix_tokens", "heads", "kv_rank", "rope_head_dim", "top_k")
    dims = {name: whole(value) for name, value in zip(names, (1, 1, 99, 8, 512, 64, 2048), strict=True)}
    found = roofline_ms(accelerators()["H200-SXM"], OperatorKind.SPARSE_ATTENTION, "bf16", dims)
    assert found.tolist() == pytest.approx([8.4e-3])


@cache
def on_h200(model: ModelArchitecture, framework: str) -> Evaluator:
    part = accelerators()["H200-SXM"]
    return Evaluator(model, part, operator_source(part, framework), FP8)


def block_errors(model: ModelArchitecture, framework: str, version: str, phase: str) -> np.ndarray:
    """Our sum of a block's operators over the measured block, less one."""
    folder = data_folder()
    if folder is None:
        pytest.skip("the measured tables are not installed")
    name = f"dsa_{phase}_module_perf.parquet"
    frame = pd.read_parquet(folder / "h200_sxm" / "sparse_attention" / framework / version / name)
    heads = attention(model).heads
    frame = frame[
        (frame["model"] == model.name)
        & (frame["gemm_type"] == "fp8_block")
        & (frame["kv_cache_dtype"] == "bfloat16")
        & ~frame["op_name"].str.contains("skip")
        & frame["num_heads"].isin([heads // 8, heads])
    ]
    if phase == "generation":
        frame = frame[frame["batch_size"].isin([1, 16, 64, 256]) & frame["step"].isin([1024, 4096, 16384])]
    else:
        # Below 2 ms the blocks of prompts wait for their launches from Python.
        frame = frame[frame["batch_size"].isin([1, 4]) & frame["isl"].isin([2048, 4096, 8192])]
        frame = frame[frame["step"].isin([0, 4096]) & (frame["latency"] > 2.0)]
    keys = ["num_heads", "batch_size", "isl", "step"]
    errors = []
    for block in frame.groupby(keys, as_index=False)["latency"].min().itertuples():
        length = int(block.step if phase == "generation" else block.isl)
        prefix = 0 if phase == "generation" else int(block.step)
        label = f"TP{heads // block.num_heads}"
        asked = configurations((label,), (block.batch_size,), length, prefix, context_tokens=length)
        shape = decode_shape(asked) if phase == "generation" else prefill_shape(asked)
        times = on_h200(model, framework).step(shape)
        parts = [ms[0] for name, ms in zip(times.names, times.breakdown_ms, strict=True) if name in BLOCK]
        errors.append(sum(parts) / model.layer_count / block.latency - 1)
    return np.array(errors)


def test_sglang_blocks_of_generated_tokens_are_the_sum_of_their_operators() -> None:
    errors = block_errors(V32, "sglang", "0.5.14", "generation")
    assert errors.size >= 12
    assert np.median(np.abs(errors)) < 0.15
    assert np.abs(errors).max() < 0.25


@pytest.mark.parametrize(
    ("model", "framework", "version"), [(V32, "sglang", "0.5.14"), (GLM, "vllm", "0.24.0")]
)
def test_blocks_of_long_prompts_are_the_sum_of_their_operators(
    model: ModelArchitecture, framework: str, version: str
) -> None:
    errors = block_errors(model, framework, version, "context")
    assert errors.size >= 8
    assert np.median(np.abs(errors)) < 0.12
    assert np.quantile(np.abs(errors), 0.9) < 0.35
