"""The operators of a step, by hand."""

import numpy as np
import pytest
from tests.perfmodel.fakes import configurations, dense_model, mixture_model, whole

from fleetplan.fleet.inventory import Precision
from fleetplan.perfmodel.architecture import ModelArchitecture
from fleetplan.perfmodel.operators import DIMENSIONS, Operator, OperatorKind
from fleetplan.perfmodel.steps import (
    StepShape,
    decode_shape,
    mixed_shape,
    part_dtypes,
    prefill_shape,
    step_operators,
)

BF16 = Precision("bf16", "bf16")


def operators(model: ModelArchitecture, shape: StepShape, precision: Precision = BF16) -> dict[str, Operator]:
    """The operators that some configuration runs, by name."""
    found = list(step_operators(model, part_dtypes(model, precision), shape))
    for operator in found:
        assert tuple(operator.dims) == DIMENSIONS[operator.kind]
    return {operator.name: operator for operator in found if operator.count.any()}


def row(operator: Operator, position: int = 0) -> tuple[int, ...]:
    return tuple(int(values[position]) for values in operator.dims.values())


def test_dense_prefill_on_one_accelerator() -> None:
    shape = prefill_shape(configurations(("TP1",), (2,), input_tokens=100, prefix_tokens=50))
    found = operators(dense_model(layers=4), shape)
    # hidden 512, 8 query and 2 key-value heads of 64, width 1024: 200 tokens of two prompts.
    assert row(found["qkv_projection"]) == (200, 8 * 64 + 2 * 2 * 64, 512)
    assert row(found["prefill_attention"]) == (2, 100, 50, 8, 2, 64, 0)
    assert row(found["output_projection"]) == (200, 512, 512)
    assert row(found["ffn_gate_up"]) == (200, 2048, 512)
    assert row(found["ffn_down"]) == (200, 512, 1024)
    assert row(found["lm_head"]) == (2, 32_000, 512)
    assert row(found["ffn_activation"]) == (200 * (2048 + 1024) * 2,)
    for name in ("qkv_projection", "prefill_attention", "output_projection", "ffn_gate_up", "ffn_down"):
        assert found[name].count.tolist() == [4.0]
    assert found["lm_head"].count.tolist() == [1.0]
    assert not {name for name in found if "reduce" in name or "gather" in name or "send" in name}
    assert "decode_attention" not in found


def test_tensor_parallel_decode_never_splits_a_key_value_head() -> None:
    shape = decode_shape(configurations(("TP8",), (16,), context_tokens=1000))
    found = operators(dense_model(layers=4, kv_heads=2, window=128), shape)
    # 8 accelerators, 2 key-value heads: each holds a whole one.
    assert row(found["qkv_projection"]) == (16, 64 + 2 * 64, 512)
    assert row(found["decode_attention"]) == (16, 1000, 1, 1, 64, 128)
    assert row(found["ffn_gate_up"]) == (16, 2 * 1024 // 8, 512)
    assert row(found["lm_head"]) == (16, 4000, 512)
    message = 16 * 512 * 2
    for name in ("attention_all_reduce", "ffn_all_reduce"):
        assert row(found[name]) == (message, 8, 1)
        assert found[name].count.tolist() == [4.0]
    assert row(found["lm_head_all_gather"]) == (16 * 32_000 * 2, 8, 1)
    assert "prefill_attention" not in found


def test_pipeline_hands_over_shares_and_counts_all_stages() -> None:
    shape = decode_shape(configurations(("PP4-TP2",), (16,)))
    found = operators(dense_model(layers=4), shape)
    assert row(found["pipeline_send"]) == (16 * 512 * 2 // 2, 2)
    assert found["pipeline_send"].count.tolist() == [3.0]
    assert row(found["pipeline_all_gather"]) == (16 * 512 * 2, 2, 1)
    assert found["qkv_projection"].count.tolist() == [4.0]


def test_ranks_of_attention_meet_in_one_dense_block() -> None:
    shape = decode_shape(configurations(("TP4DP2-TP8",), (16,)))
    found = operators(dense_model(), shape)
    assert row(found["qkv_projection"])[0] == 16
    assert row(found["ffn_gate_up"]) == (32, 2 * 1024 // 8, 512)
    # Ranks of the gather are 4 accelerators apart, one in each attention rank.
    assert row(found["ffn_token_gather"]) == (32 * 512 * 2, 2, 4)
    assert row(found["ffn_reduce_scatter"]) == (32 * 512 * 2, 2, 4)
    assert row(found["ffn_all_reduce"]) == (16 * 512 * 2, 4, 1)


def test_experts_on_one_group_need_an_all_reduce_alone() -> None:
    shape = decode_shape(configurations(("TP4",), (16,)))
    found = operators(mixture_model(shared=128), shape)
    assert row(found["router"]) == (16, 16, 512)
    assert row(found["routed_experts"]) == (16, 512, 256, 2, 16, 4, 1)
    assert row(found["shared_experts_gate_up"]) == (16, 2 * 128 // 4, 512)
    assert found["routed_experts"].count.tolist() == [3.0]
    assert found["ffn_gate_up"].count.tolist() == [1.0]
    assert not {name for name in found if "dispatch" in name or "combine" in name}


def test_spread_experts_are_reached_by_dispatch_and_combine() -> None:
    shape = decode_shape(configurations(("TP4DP2-TP4EP2",), (16,)))
    found = operators(mixture_model(shared=128), shape)
    assert row(found["routed_experts"]) == (32, 512, 256, 2, 16, 4, 2)
    # The dense part runs within each group, on the group's own tokens.
    assert row(found["shared_experts_gate_up"]) == (16, 2 * 128 // 4, 512)
    # Each token reaches 2 (1 - (1/2)^2) = 1.5 groups; an accelerator sends a quarter of its rank's.
    assert row(found["expert_dispatch"]) == (6 * 512 * 2, 2, 4)
    assert row(found["expert_combine"]) == (6 * 512 * 2, 2, 4)
    # 32 tokens times 1.5 over 2 groups arrive in each.
    assert row(found["expert_all_gather"]) == (24 * 512 * 2, 4, 1)
    assert found["expert_dispatch"].count.tolist() == [3.0]


def test_expert_groups_within_a_rank_hold_all_tokens_already() -> None:
    shape = decode_shape(configurations(("TP8-TP2EP4",), (16,)))
    found = operators(mixture_model(), shape)
    assert row(found["routed_experts"]) == (16, 512, 256, 2, 16, 2, 4)
    assert not {name for name in found if "dispatch" in name}
    kinds = {name for name, operator in found.items() if operator.kind is OperatorKind.ALL_REDUCE}
    assert kinds == {"embedding_all_reduce", "attention_all_reduce", "ffn_all_reduce"}


def test_mixed_step_fuses_gemms_and_keeps_both_attentions() -> None:
    batch = configurations(("TP1", "TP1"), (16, 16), input_tokens=100, context_tokens=1000)
    found = operators(dense_model(), mixed_shape(batch, whole(0, 3)))
    assert found["qkv_projection"].dims["m"].tolist() == [16, 316]
    assert found["lm_head"].dims["m"].tolist() == [16, 19]
    assert found["prefill_attention"].count.tolist() == [0.0, 4.0]
    assert found["decode_attention"].count.tolist() == [4.0, 4.0]


@pytest.mark.parametrize(
    ("weights", "model", "expected"),
    [
        ("fp8", "dense", ("fp8", "fp8", "bf16")),
        ("fp8-ffn", "dense", ("bf16", "fp8", "bf16")),
        ("int4", "dense", ("int4", "int4", "bf16")),
        ("int4", "mixture", ("bf16", "int4", "bf16")),
        ("mxfp4", "mixture", ("bf16", "mxfp4", "bf16")),
        ("fp8-ffn", "mixture", ("bf16", "fp8", "bf16")),
    ],
)
def test_weights_by_part(weights: str, model: str, expected: tuple[str, str, str]) -> None:
    architecture = dense_model() if model == "dense" else mixture_model()
    shape = decode_shape(configurations(("TP1",), (16,)))
    found = operators(architecture, shape, Precision(weights, "fp8"))
    block = found["ffn_gate_up" if model == "dense" else "routed_experts"]
    assert (found["qkv_projection"].dtype, block.dtype, found["lm_head"].dtype) == expected
    assert found["decode_attention"].dtype == "fp8"


def test_unknown_precision_is_a_bug() -> None:
    with pytest.raises(ValueError, match="unknown precision"):
        part_dtypes(dense_model(), Precision("fp7", "bf16"))


def test_dimensions_stay_valid_where_an_operator_does_not_run() -> None:
    batch = configurations(("TP1", "PP2-TP4DP2-TP4EP2"), (1, 3))
    shape = mixed_shape(batch, whole(0, 2))
    for operator in step_operators(mixture_model(), part_dtypes(mixture_model(), BF16), shape):
        for name, values in operator.dims.items():
            least = 0 if name in {"window", "prefix_tokens"} else 1
            assert (values >= least).all(), (operator.name, name)
        assert np.isfinite(operator.count).all()
