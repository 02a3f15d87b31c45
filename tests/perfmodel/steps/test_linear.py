"""The operators and the states of recurrent layers, and experts without gates, by hand."""

from pathlib import Path

import numpy as np
import pytest
from tests.perfmodel.fakes import WorkSource, accelerator, configurations, whole
from tests.perfmodel.steps.test_decoder_step import operators, row

from fleetplan.fleet.inventory import Precision
from fleetplan.perfmodel.architecture import LinearAttention, LinearVariant, load_architecture
from fleetplan.perfmodel.evaluator import Evaluator
from fleetplan.perfmodel.operators import OperatorKind, work
from fleetplan.perfmodel.steps import decode_shape, part_dtypes, prefill_shape, step_operators
from fleetplan.perfmodel.steps.sharding import (
    cache_elements_per_token,
    state_bytes_per_sequence,
    weights_per_accelerator,
)

BF16 = Precision("bf16", "bf16")
DELTA = LinearAttention(LinearVariant.GATED_DELTA_NET, 16, 32, 128, 128, 4)


def test_delta_nets_alternate_with_gated_attention() -> None:
    model = load_architecture("Qwen/Qwen3.5-397B-A17B", Path())
    shape = prefill_shape(configurations(("TP4",), (2,), input_tokens=100, prefix_tokens=50))
    found = operators(model, shape)
    # 45 of 60 layers are delta nets with 16 key and 64 value heads of 128: 4 and 16 on an accelerator.
    assert found["prefill_recurrence"].kind is OperatorKind.DELTA_PREFILL
    assert row(found["prefill_recurrence"]) == (2, 100, 4, 16, 128, 128, 4)
    assert found["prefill_recurrence"].count.tolist() == [45.0]
    assert found["prefill_attention"].count.tolist() == [15.0]
    # Queries, keys, values and the gate; two scalars a value head have a projection of their own, and a
    # kernel reads and writes what both of them bring.
    width = 2 * 4 * 128 + 16 * 128 + 16 * 128
    assert row(found["linear_input_projection"]) == (200, width, 4096)
    assert row(found["linear_scalar_projection"]) == (200, 2 * 16, 4096)
    assert found["linear_rearrangement"].dims["traffic_bytes"].tolist() == [2 * 2 * 200 * (width + 32)]
    # Gated attention: the queries' projection also makes the gate.
    assert row(found["qkv_projection"]) == (200, 2 * 8 * 256 + 2 * 256, 4096)


def test_the_shared_expert_of_qwen_has_a_gate() -> None:
    shape = decode_shape(configurations(("TP1",), (16,)))
    found = operators(load_architecture("Qwen/Qwen3.5-397B-A17B", Path()), shape)
    # The gate reads the tokens; the sum reads the routed sums, the shared ones twice, and writes both.
    assert found["shared_experts_gate"].dims["traffic_bytes"].tolist() == [2 * 16 * 4096]
    assert found["shared_experts_sum"].dims["traffic_bytes"].tolist() == [2 * 5 * 16 * 4096]
    assert found["shared_experts_sum"].count.tolist() == [60.0]
    assert "shared_experts_gate" not in operators(load_architecture("deepseek-ai/DeepSeek-R1", Path()), shape)


def test_fp8_of_qwen_3_5_is_scaled_in_blocks_but_for_its_scalars() -> None:
    model = load_architecture("Qwen/Qwen3.5-397B-A17B", Path())
    dtypes = part_dtypes(model, Precision("fp8", "bf16"))
    shape = decode_shape(configurations(("TP1",), (16,)))
    found = {operator.name: operator.dtype for operator in step_operators(model, dtypes, shape)}
    assert found["linear_input_projection"] == found["routed_experts"] == "fp8_block"
    assert found["linear_scalar_projection"] == "bf16"


def test_nemotron_has_scans_and_experts_without_gates() -> None:
    model = load_architecture("nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", Path())
    found = operators(model, decode_shape(configurations(("TP2",), (16,))))
    assert found["decode_recurrence"].kind is OperatorKind.SCAN_DECODE
    assert row(found["decode_recurrence"]) == (16, 4, 32, 128, 64, 4)
    assert found["routed_experts"].kind is OperatorKind.UNGATED_MOE
    assert found["shared_experts_gate_up"].dims["n"].tolist() == [3712 // 2]


def test_experts_in_a_latent_space_take_narrow_tokens() -> None:
    model = load_architecture("nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-BF16", Path())
    found = operators(model, decode_shape(configurations(("TP1",), (16,))))
    hidden, latent = model.hidden_size, found["routed_experts"].dims["hidden"][0]
    assert latent < hidden
    assert row(found["latent_down"]) == (16, latent, hidden)
    assert row(found["latent_up"]) == (16, hidden, latent)


def test_state_is_constant_and_shared_out_by_heads() -> None:
    tp = whole(1, 8)
    assert cache_elements_per_token(DELTA, tp).tolist() == [0, 0]
    state = state_bytes_per_sequence(DELTA, tp)
    assert state.tolist() == [4.0 * DELTA.state_elements_per_sequence, DELTA.state_elements_per_sequence / 2]
    weights = weights_per_accelerator(2048, DELTA, tp)
    assert int(weights[0]) == DELTA.weights(2048)
    assert int(weights[1]) * 8 == DELTA.weights(2048)


def test_recurrence_costs_nothing_more_in_a_long_context() -> None:
    model = load_architecture("Qwen/Qwen3.5-397B-A17B", Path())
    evaluator = Evaluator(model, accelerator(hbm_gib=180.0), WorkSource(), BF16)
    short, long = (
        evaluator.decode(configurations(("TP4",), (8,), context_tokens=context)) for context in (1024, 65536)
    )
    per_token = 15 * 2 * 256 * 2 * 2.0
    # Tensor parallelism of 4 leaves one whole key-value head of two on each accelerator.
    grown_gib = 8 * (65536 - 1024) * per_token / 2 / 2**30
    assert long.memory.kv_gib[0] - short.memory.kv_gib[0] == pytest.approx(grown_gib)
    assert long.latency_ms[0] > short.latency_ms[0]


def test_work_of_a_recurrence() -> None:
    dims = {
        "batch": whole(3),
        "key_heads": whole(2),
        "value_heads": whole(4),
        "key_head_dim": whole(16),
        "value_head_dim": whole(32),
        "taps": whole(4),
    }
    decode = work(OperatorKind.SCAN_DECODE, "bf16", dims)
    channels = 4 * 32 + 2 * 2 * 16
    # State and recent tokens are read and written in FP32.
    assert decode.kv_bytes.tolist() == [2 * 4.0 * 3 * (4 * 16 * 32 + channels * 3)]
    assert decode.flops.tolist() == [3 * 4 * 4 * 16 * 32 + 2.0 * 3 * channels * 4]
    delta = work(OperatorKind.DELTA_DECODE, "bf16", dims)
    assert delta.flops[0] > decode.flops[0]
    prompts = {"batch": whole(3), "new_tokens": whole(100), **{k: v for k, v in dims.items() if k != "batch"}}
    prefill = work(OperatorKind.SCAN_PREFILL, "bf16", prompts)
    assert prefill.kv_bytes.tolist() == decode.kv_bytes.tolist()
    assert prefill.flops[0] > 100 * decode.flops[0] - 1
    assert not np.any(prefill.weight_bytes)


def test_lightning_attention_has_no_convolution_and_no_scalars() -> None:
    model = load_architecture("minimax-text-01", Path())
    found = operators(model, decode_shape(configurations(("TP8",), (16,))))
    # 70 of 80 layers; queries, keys, values and the gate of 64 heads of 128, an eighth of them here.
    assert found["decode_recurrence"].count.tolist() == [70.0]
    assert row(found["linear_input_projection"]) == (16, 4 * 8 * 128, 6144)
    assert row(found["decode_recurrence"]) == (16, 8, 8, 128, 128, 1)
    assert found["decode_attention"].count.tolist() == [10.0]
    lightning = LinearAttention(LinearVariant.LIGHTNING, 64, 64, 128, 128, 1)
    assert lightning.weights(6144) == 6144 * (24576 + 8192 + 8192)
    assert lightning.state_elements_per_sequence == 64 * 128 * 128
