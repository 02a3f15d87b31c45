"""The operators and the cache of multi-head latent attention, by hand on DeepSeek-V3's published widths."""

from pathlib import Path

import numpy as np
import pytest
from tests.perfmodel.fakes import WorkSource, accelerator, configurations, whole
from tests.perfmodel.steps.test_decoder_step import operators, row

from fleetplan.fleet.inventory import Precision
from fleetplan.perfmodel.architecture import (
    DenseFfn,
    LatentAttention,
    LayerGroup,
    ModelArchitecture,
    load_architecture,
)
from fleetplan.perfmodel.evaluator import Evaluator
from fleetplan.perfmodel.operators import OperatorKind, work
from fleetplan.perfmodel.steps import decode_shape, mixed_shape, prefill_shape
from fleetplan.perfmodel.steps.sharding import cache_elements_per_token, weights_per_accelerator

V3 = load_architecture("deepseek-ai/DeepSeek-V3", Path())
FP8 = Precision("fp8", "bf16")
LATENT = LatentAttention(
    heads=128, query_rank=1536, kv_rank=512, nope_head_dim=128, rope_head_dim=64, value_head_dim=128
)


def test_prompts_rebuild_keys_and_values() -> None:
    shape = prefill_shape(configurations(("TP8",), (2,), input_tokens=100, prefix_tokens=50))
    found = operators(V3, shape, FP8)
    # The way down to the latent vectors (1536 + 512 + 64) is on every accelerator, 16 of 128 heads are.
    assert row(found["latent_projection"]) == (200, 2112, 7168)
    assert row(found["query_projection"]) == (200, 16 * 192, 1536)
    # Of the cached prefix as well: 2 prompts of 150 tokens.
    assert row(found["key_value_projection"]) == (300, 16 * 256, 512)
    assert row(found["prefill_attention"]) == (2, 100, 50, 16, 192, 128)
    assert row(found["output_projection"]) == (200, 7168, 16 * 128)
    assert found["key_value_projection"].count.tolist() == [61.0]
    assert not {name for name in found if "absorbed" in name}


def test_generation_reads_nothing_but_latent_vectors() -> None:
    shape = decode_shape(configurations(("TP8",), (16,), context_tokens=1000))
    found = operators(V3, shape, FP8)
    assert row(found["absorbed_queries"]) == (16, 16, 512, 128)
    assert row(found["decode_attention"]) == (16, 1000, 16, 512, 64)
    assert row(found["absorbed_outputs"]) == (16, 16, 128, 512)
    assert found["absorbed_queries"].dtype == "fp8"
    assert found["decode_attention"].dtype == "bf16"
    assert "key_value_projection" not in found
    done = work(OperatorKind.LATENT_DECODE_ATTENTION, "bf16", found["decode_attention"].dims)
    # 16 sequences of 1000 tokens with 576 elements, whatever the heads are.
    assert done.kv_bytes.tolist() == [16 * 1000 * 576 * 2.0]
    assert done.flops.tolist() == [2.0 * 16 * 16 * (576 + 512) * 1000]


def test_first_layers_are_dense_and_the_rest_has_a_shared_expert() -> None:
    found = operators(V3, decode_shape(configurations(("TP8",), (16,))), FP8)
    assert found["ffn_gate_up"].count.tolist() == [3.0]
    assert row(found["ffn_gate_up"]) == (16, 2 * 18432 // 8, 7168)
    assert found["routed_experts"].count.tolist() == [58.0]
    assert row(found["shared_experts_down"]) == (16, 7168, 2048 // 8)


def test_rows_without_prompts_keep_valid_shapes() -> None:
    batch = configurations(("TP1", "TP8"), (16, 16), input_tokens=100)
    found = operators(V3, mixed_shape(batch, whole(0, 3)), FP8)
    assert found["prefill_attention"].count.tolist() == [0.0, 61.0]
    assert found["key_value_projection"].dims["m"].tolist() == [100, 300]
    assert found["decode_attention"].count.tolist() == [61.0, 61.0]


def test_queries_without_a_rank_are_projected_at_once() -> None:
    attention = LatentAttention(8, None, 512, 128, 64, 128)
    model = ModelArchitecture("m", "deepseek", 512, 1000, False, (LayerGroup(1, attention, DenseFfn(64)),))
    found = operators(model, decode_shape(configurations(("TP1",), (1,))))
    assert row(found["latent_projection"]) == (1, 576, 512)
    assert row(found["query_projection"]) == (1, 8 * 192, 512)


def test_the_latent_cache_is_whole_on_every_accelerator() -> None:
    tp = whole(1, 8)
    assert cache_elements_per_token(LATENT, tp).tolist() == [576, 576]
    weights = weights_per_accelerator(7168, LATENT, tp)
    assert int(weights[0]) == LATENT.weights(7168)
    replicated = 7168 * 2112
    assert int(weights[1]) == replicated + (LATENT.weights(7168) - replicated) // 8


def test_attention_data_parallelism_saves_cache_where_tensor_parallelism_does_not() -> None:
    evaluator = Evaluator(V3, accelerator(hbm_gib=180.0), WorkSource(), FP8)
    found = evaluator.decode(configurations(("TP8", "DP8-EP8"), (64, 8)))
    # Both hold 64 sequences; under TP each accelerator holds all of them.
    assert found.memory.kv_gib[0] == pytest.approx(8 * found.memory.kv_gib[1])
    assert found.memory.kv_gib[0] == pytest.approx(64 * (2123 + 75) * 576 * 2 * 61 / 2**30)
    assert np.isfinite(found.latency_ms).all()
