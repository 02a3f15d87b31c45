"""Decoders whose sliding layers have heads of their own: Step 3.5 and 3.7, MiMo-V2-Flash."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from fleetplan.perfmodel.architecture import (
    GroupedQueryAttention,
    MoeFfn,
    UnsupportedArchitecture,
    architecture_from_config,
    load_architecture,
)

STEP: dict[str, Any] = {
    "model_type": "step3p7",
    "hidden_size": 4096,
    "vocab_size": 128896,
    "num_hidden_layers": 8,
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "sliding_window": 512,
    "layer_types": (["full_attention"] + ["sliding_attention"] * 3) * 2,
    "intermediate_size": 11264,
    "num_experts": 288,
    "num_experts_per_tok": 8,
    "moe_intermediate_size": 1280,
    "share_expert_dim": 1280,
    "first_k_dense_replace": 3,
}
OWN_HEADS = {"attention_type": "sliding_attention", "num_attention_heads": 96, "num_attention_groups": 8}
MIMO: dict[str, Any] = {
    "model_type": "mimo_v2_flash",
    "hidden_size": 4096,
    "vocab_size": 152576,
    "num_hidden_layers": 4,
    **{f"{prefix}num_attention_heads": 64 for prefix in ("", "swa_")},
    "num_key_value_heads": 4,
    "swa_num_key_value_heads": 8,
    **{f"{prefix}head_dim": 192 for prefix in ("", "swa_")},
    **{f"{prefix}v_head_dim": 128 for prefix in ("", "swa_")},
    "sliding_window": 128,
    "attention_chunk_size": 128,
    "hybrid_layer_pattern": [0, 1, 1, 0],
    "moe_layer_freq": [0, 1, 1, 1],
    "intermediate_size": 16384,
    "n_routed_experts": 256,
    "n_shared_experts": None,
    "num_experts_per_tok": 8,
    "moe_intermediate_size": 2048,
}


def layers(config: dict[str, Any]) -> list[tuple[int, int, int, bool]]:
    """Window, heads and key-value heads of every layer, and whether it has experts."""
    found = []
    for group in architecture_from_config(config, "a/model").groups:
        assert isinstance(group.attention, GroupedQueryAttention)
        each = group.attention
        routed = isinstance(group.ffn, MoeFfn)
        found += [(each.window, each.heads, each.kv_heads, routed)] * group.count
    return found


def test_sliding_layers_of_step_have_heads_of_their_own_where_the_config_says() -> None:
    own = layers(STEP | {"attention_other_setting": OWN_HEADS})
    assert Counter((window, heads) for window, heads, _, _ in own) == {(0, 64): 2, (512, 96): 6}
    assert {heads for _, heads, _, _ in layers(STEP)} == {64}


@pytest.mark.parametrize("experts", [{}, {"moe_layers_enum": "3,4,5,6,7"}])
def test_first_layers_of_step_are_dense(experts: dict[str, Any]) -> None:
    assert Counter(routed for *_, routed in layers(STEP | experts)) == {False: 3, True: 5}


def test_values_of_mimo_are_narrower_than_keys() -> None:
    assert Counter(layers(MIMO)) == {(0, 64, 4, False): 1, (128, 64, 8, True): 2, (0, 64, 4, True): 1}
    first = architecture_from_config(MIMO, "a/model").groups[0].attention
    assert isinstance(first, GroupedQueryAttention)
    assert (first.head_dim, first.value_head_dim, first.kv_elements_per_token) == (192, 128, 4 * 320)


@pytest.mark.parametrize(
    ("config", "changed", "reason"),
    [
        (STEP, {"attention_other_setting": [96]}, "'attention_other_setting' must hold"),
        (STEP, {"attention_other_setting": OWN_HEADS | {"attention_type": "other"}}, "do not slide"),
        (STEP, {"moe_layers_enum": "3,9"}, "must name layers from 0 to 7"),
        (MIMO, {"attention_chunk_size": 64}, "'sliding_window' is 128"),
        (MIMO, {"hybrid_layer_pattern": [0, 1, 2, 0]}, "layers of type 2"),
        (MIMO, {"hybrid_layer_pattern": None}, "lacks 'hybrid_layer_pattern'"),
        (MIMO, {"moe_layer_freq": [0, 1, 1, 3]}, "layers of type 3"),
        (MIMO, {"moe_layer_freq": None}, "lacks 'moe_layer_freq'"),
        (MIMO, {"n_shared_experts": 1}, "shared experts"),
    ],
)
def test_what_is_not_understood_is_refused_by_name(
    config: dict[str, Any], changed: dict[str, Any], reason: str
) -> None:
    with pytest.raises(UnsupportedArchitecture, match=reason):
        architecture_from_config(config | changed, "a/model")


@pytest.mark.parametrize(
    ("model", "billion", "active_billion"),
    [("stepfun-ai/Step-3.7-Flash", 196.8, 11.0), ("XiaomiMiMo/MiMo-V2-Flash", 309.0, 15.0)],
)
def test_published_parameters(model: str, billion: float, active_billion: float) -> None:
    found = load_architecture(model, Path())
    assert found.total_parameters / 1e9 == pytest.approx(billion, rel=0.002)
    assert found.active_parameters / 1e9 == pytest.approx(active_billion, rel=0.05)
