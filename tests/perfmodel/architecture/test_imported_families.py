"""Families that no model of the catalogue has: configs that users import, by the figures of model cards."""

from __future__ import annotations

import pytest

from fleetplan.perfmodel.architecture import WHOLE_CONTEXT, GroupedQueryAttention, architecture_from_config

ROUNDED = 0.02
"""Cards round their counts to two or three digits."""

COLUMNS = (
    "model_type",
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "num_key_value_heads",
    "head_dim",
    "intermediate_size",
    "vocab_size",
)

# Model cards on Hugging Face, 2023 to 2025; parameters in billions.
CARDS: dict[str, tuple[tuple[str | int | None, ...], dict[str, object], float]] = {
    "OLMo-2-1124-7B": (("olmo2", 4096, 32, 32, 32, None, 11008, 100352), {}, 7.3),
    "Seed-OSS-36B": (("seed_oss", 5120, 64, 80, 8, 128, 27648, 155136), {}, 36.15),
    "granite-3.3-8b": (
        ("granite", 4096, 40, 32, 8, None, 12800, 49159),
        {"tie_word_embeddings": True},
        8.17,
    ),
    "command-a-03-2025": (
        ("cohere2", 12288, 64, 96, 8, 128, 36864, 256000),
        {"sliding_window": 4096, "sliding_window_pattern": 4},
        111.0,
    ),
    "GLM-4-32B-0414": (("glm4", 6144, 61, 48, 2, 128, 23040, 151552), {}, 32.6),
    "EXAONE-4.0-32B": (
        ("exaone4", 5120, 64, 40, 8, 128, 27392, 102400),
        {
            "sliding_window": 4096,
            "layer_types": (["sliding_attention"] * 3 + ["full_attention"]) * 16,
        },
        32.0,
    ),
    "starcoder2-15b": (
        ("starcoder2", 6144, 40, 48, 4, None, 24576, 49152),
        {"sliding_window": 4096, "tie_word_embeddings": False},
        15.96,
    ),
    "Qwen1.5-MoE-A2.7B": (
        ("qwen2_moe", 2048, 24, 16, 16, None, 5632, 151936),
        {
            "moe_intermediate_size": 1408,
            "shared_expert_intermediate_size": 5632,
            "num_experts": 60,
            "num_experts_per_tok": 4,
        },
        14.3,
    ),
    "OLMoE-1B-7B": (
        ("olmoe", 2048, 16, 16, 16, None, 1024, 50304),
        {"num_experts": 64, "num_experts_per_tok": 8},
        6.92,
    ),
    "Phi-3.5-MoE": (
        ("phimoe", 4096, 32, 32, 8, None, 6400, 32064),
        {"num_local_experts": 16, "num_experts_per_tok": 2},
        41.9,
    ),
    "ERNIE-4.5-21B-A3B": (
        ("ernie4_5_moe", 2560, 28, 20, 4, 128, 12288, 103424),
        {
            "moe_intermediate_size": 1536,
            "moe_num_experts": 64,
            "moe_k": 6,
            "moe_num_shared_experts": 2,
            "moe_layer_start_index": 1,
            "moe_layer_interval": 1,
        },
        21.8,
    ),
    "MiMo-7B": (("mimo", 4096, 36, 32, 8, 128, 11008, 151680), {}, 7.6),
    "Qwen2.5-VL-7B": (
        ("qwen2_5_vl", 3584, 28, 28, 4, None, 18944, 152064),
        {
            "sliding_window": 32768,
            "use_sliding_window": False,
            "max_window_layers": 28,
            "vision_config": {"model_type": "qwen2_5_vl", "hidden_size": 1280},
        },
        7.62,
    ),
}


def config_of(name: str) -> dict[str, object]:
    widths, more, _ = CARDS[name]
    stated = {key: value for key, value in zip(COLUMNS, widths, strict=True) if value is not None}
    return {**stated, **more}


@pytest.mark.parametrize("name", CARDS)
def test_a_family_has_the_parameters_of_its_card(name: str) -> None:
    found = architecture_from_config(config_of(name), name)
    assert found.total_parameters / 1e9 == pytest.approx(CARDS[name][2], rel=ROUNDED)


def test_a_tower_beside_the_decoder_is_said_to_be_left_out() -> None:
    assert architecture_from_config(config_of("Qwen2.5-VL-7B"), "vl").left_out == ("vision tower",)


def test_three_of_four_layers_of_command_a_slide() -> None:
    windows = {}
    for group in architecture_from_config(config_of("command-a-03-2025"), "command-a").groups:
        assert isinstance(group.attention, GroupedQueryAttention)
        windows[group.attention.window] = group.count
    assert windows == {4096: 48, WHOLE_CONTEXT: 16}
