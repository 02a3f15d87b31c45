"""Kimi delta attention, gated latent attention and attention residuals, by hand on Kimi-K3's widths."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tests.perfmodel.fakes import WorkSource, accelerator, configurations, layouts, whole
from tests.perfmodel.steps.test_decoder_step import operators, row

from fleetplan.fleet.catalog import accelerators, model_catalog
from fleetplan.fleet.inventory import Precision
from fleetplan.perfmodel.architecture import (
    DenseFfn,
    LatentAttention,
    LinearAttention,
    LinearVariant,
    MoeFfn,
    UnsupportedArchitecture,
    architecture_from_config,
    load_architecture,
)
from fleetplan.perfmodel.evaluator import Evaluator
from fleetplan.perfmodel.operators import OperatorKind, Provenance
from fleetplan.perfmodel.optables import operator_source
from fleetplan.perfmodel.optables.formulas.roofline import roofline_ms
from fleetplan.perfmodel.optables.measured.delta import kimi_delta_tables
from fleetplan.perfmodel.optables.measured.folders import data_folder
from fleetplan.perfmodel.steps import decode_shape, prefill_shape
from fleetplan.perfmodel.steps.memory import kv_gib_per_sequence
from fleetplan.perfmodel.steps.sharding import weights_per_accelerator

K3 = load_architecture("kimi-k3", Path())
MXFP4 = Precision("mxfp4", "bf16")
KDA = LinearAttention(LinearVariant.KIMI_DELTA, 96, 96, 128, 128, 4, decay_rank=128)
MLA = LatentAttention(96, 1536, 512, 128, 64, 128, output_gate=True)
WIDE = 96 * 128
KDA_WEIGHTS = 5 * 7168 * WIDE + 7168 * (96 + 128) + 128 * WIDE + 3 * WIDE * 4
MLA_WEIGHTS = 1536 * (7168 + 96 * 192) + 7168 * 576 + 512 * 96 * 256 + 2 * 7168 * WIDE


def test_layers_and_weights() -> None:
    moe = MoeFfn(896, 16, 3072, shared_experts=2, shared_intermediate_size=6144, latent_size=3584)
    assert [(each.count, each.attention, each.ffn) for each in K3.groups] == [
        (1, KDA, DenseFfn(33792)),
        (68, KDA, moe),
        (24, MLA, moe),
    ]
    weights = K3.weight_count()
    assert weights.attention == 69 * KDA_WEIGHTS + 24 * MLA_WEIGHTS
    assert weights.routed_experts == 92 * 896 * 3 * 3584 * 3072
    assert weights.shared_experts == 92 * 3 * 7168 * 6144
    assert weights.router == 92 * (7168 * 896 + 2 * 7168 * 3584)
    assert weights.dense_ffn == 3 * 7168 * 33792
    assert K3.total_parameters == 2_779_479_130_112
    assert K3.left_out == ("vision tower",)


def test_latent_vectors_grow_and_states_do_not() -> None:
    assert K3.kv_bytes_per_token(2.0) == 24 * 576 * 2
    state = 69 * (96 * 128 * 128 + 3 * WIDE * 3) * 4
    assert K3.kv_bytes_per_sequence(1000, 2.0) == 1000 * 24 * 576 * 2 + state
    dtypes = Evaluator(K3, accelerator(), WorkSource(), MXFP4).dtypes
    assert (dtypes.attention, dtypes.routed_experts, dtypes.shared_experts) == ("bf16", "mxfp4", "bf16")
    held = kv_gib_per_sequence(K3, dtypes, layouts("TP8"), whole(1000))
    assert held == pytest.approx((1000 * 24 * 576 * 2 + state / 8) / 2**30)


def test_tensor_parallelism_splits_all_but_what_is_narrow() -> None:
    one, eight = weights_per_accelerator(7168, KDA, whole(1, 8)).tolist()
    assert one == KDA_WEIGHTS
    assert eight == (KDA_WEIGHTS - 7168 * 128) / 8 + 7168 * 128
    one, eight = weights_per_accelerator(7168, MLA, whole(1, 8)).tolist()
    assert one == MLA_WEIGHTS
    assert eight == (MLA_WEIGHTS - 7168 * (1536 + 576)) / 8 + 7168 * (1536 + 576)


def test_operators_of_a_decode_step() -> None:
    found = operators(K3, decode_shape(configurations(("TP8",), (16,))), MXFP4)
    assert row(found["decode_recurrence"]) == (16, 12, 12, 128, 128, 4)
    assert found["decode_recurrence"].kind is OperatorKind.KIMI_DELTA_DECODE
    assert found["decode_recurrence"].count.tolist() == [69.0]
    assert row(found["linear_input_projection"]) == (16, 4 * 12 * 128, 7168)
    assert row(found["linear_scalar_projection"]) == (16, 96 + 128, 7168)
    assert row(found["linear_decay_projection"]) == (16, 12 * 128, 128)
    assert row(found["output_gate_projection"]) == (16, 12 * 128, 7168)
    assert found["output_gate_projection"].count.tolist() == [24.0]
    assert row(found["routed_experts"])[:5] == (16, 3584, 3072, 16, 896)
    # Eight blocks of residuals: a mix reads four and a half in the mean, and writes one row.
    assert row(found["residual_mixing"]) == (16 * 7168 * 11 // 2 * 2,)
    assert found["residual_mixing"].count.tolist() == [2.0 * 93]


def test_operators_of_prompts() -> None:
    found = operators(K3, prefill_shape(configurations(("TP8",), (2,), 1000, 500)), MXFP4)
    assert row(found["prefill_recurrence"]) == (2, 1000, 12, 12, 128, 128, 4)
    assert found["prefill_recurrence"].kind is OperatorKind.KIMI_DELTA_PREFILL


def test_a_pipeline_hands_on_the_residuals_of_all_blocks() -> None:
    found = operators(K3, decode_shape(configurations(("PP2-TP8",), (16,))), MXFP4)
    assert row(found["pipeline_send"])[0] == 16 * 9 * 7168 * 2 // 8


@pytest.mark.parametrize("framework", ["vllm", "sglang", "trtllm"])
def test_measured_times_are_near_the_roofline_and_grow(framework: str) -> None:
    if data_folder() is None:
        pytest.skip("the measured tables are not installed")
    part = accelerators()["H200-SXM"]
    source = operator_source(part, framework)
    batch = np.array([1, 4, 16, 64, 256])
    common = {name: np.full(5, 12) for name in ("key_heads", "value_heads")}
    common |= {"key_head_dim": np.full(5, 128), "value_head_dim": np.full(5, 128), "taps": np.full(5, 4)}
    decode = {"batch": batch, **common}
    prefill = {"batch": np.ones(5, dtype=np.int64), "new_tokens": 512 * batch, **common}
    for kind, dims in (
        (OperatorKind.KIMI_DELTA_DECODE, decode),
        (OperatorKind.KIMI_DELTA_PREFILL, prefill),
    ):
        found = source.times(kind, "bf16", dims)
        assert (found.provenance <= Provenance.EXTRAPOLATED).all()
        assert (np.diff(found.latency_ms) >= 0).all()
        ratio = found.latency_ms / roofline_ms(part, kind, "bf16", dims)
        assert ((ratio > 0.5) & (ratio < 12)).all()
    own = source.times(OperatorKind.KIMI_DELTA_DECODE, "bf16", decode).provenance
    assert (own == Provenance.MEASURED).all() == (framework != "trtllm")


def test_kernels_with_the_convolution_compete_with_those_without() -> None:
    base: dict[str, object] = {
        "phase": "generation",
        "version": "0.1.dev19262+g",
        "batch_size": 4,
        "seq_len": 1,
    }
    base |= {"num_k_heads": 12, "num_v_heads": 12, "head_k_dim": 128, "head_v_dim": 128, "d_conv": 4}
    times = {"causal_conv1d_update": 0.003, "fused_recurrent_kda_packed_decode": 0.005}
    rows = [base | {"kernel_source": name, "latency": ms} for name, ms in times.items()]
    (apart,) = kimi_delta_tables(pd.DataFrame(rows))
    assert apart.latency_ms.tolist() == pytest.approx([0.008])
    rows.append(base | {"kernel_source": "fused_kda_decode", "latency": 0.007})
    assert min(table.latency_ms.min() for table in kimi_delta_tables(pd.DataFrame(rows))) == 0.007
    # Prompts of that version wait for Python.
    rows = [row | {"phase": "context"} for row in rows[:2]]
    assert kimi_delta_tables(pd.DataFrame(rows)) == []
    assert len(kimi_delta_tables(pd.DataFrame([row | {"version": "0.27.0"} for row in rows]))) == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"linear_attn_config": None}, "'linear_attn_config' must be a mapping"),
        ({"index_topk": 2048}, "'index_topk' is not understood in this family"),
        ({"moe_latent_size": 512}, "'moe_latent_size' is not understood in this family"),
        ({"num_hidden_layers": 94}, "must list each of the 94 layers once"),
    ],
)
def test_what_is_not_understood_is_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(UnsupportedArchitecture, match=message):
        architecture_from_config(changed(change), "changed")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"use_full_rank_gate": False}, "output gates of low rank are not understood"),
        ({"kda_layers": [1, 1]}, "must list each of the 93 layers once"),
        ({"kda_layers": ["one"]}, "must list each of the 93 layers once"),
    ],
)
def test_delta_layers_that_are_not_understood_are_refused(change: dict[str, object], message: str) -> None:
    inner = text_config()["linear_attn_config"]
    assert isinstance(inner, dict)
    with pytest.raises(UnsupportedArchitecture, match=message):
        architecture_from_config(changed({"linear_attn_config": inner | change}), "changed")


def text_config() -> dict[str, object]:
    found = model_catalog()["moonshotai/Kimi-K3"].config["text_config"]
    assert isinstance(found, dict)
    return found


def changed(change: dict[str, object]) -> dict[str, object]:
    return dict(model_catalog()["moonshotai/Kimi-K3"].config) | {"text_config": text_config() | change}
