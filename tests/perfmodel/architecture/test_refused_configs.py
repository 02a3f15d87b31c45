"""Configs that are not understood: refused by name, in words and with their place."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from tests.parts import first_parts
from tests.perfmodel.architecture.small_models import TINY_DEEPSEEK, TINY_LLAMA

from fleetplan.fleet.catalog import UnknownModelError, model_catalog
from fleetplan.fleet.errors import InputError
from fleetplan.perfmodel.architecture import (
    UnsupportedArchitecture,
    architecture_from_config,
    load_architecture,
)


@pytest.mark.parametrize(
    ("key", "value"),
    [("hidden_size_per_layer_input", 256), ("num_kv_shared_layers", 18), ("use_double_wide_mlp", True)],
)
def test_what_gemma4_has_in_its_small_models_is_refused(key: str, value: object) -> None:
    config = dict(model_catalog()["google/gemma-4-31B-it"].config)
    config["text_config"] = {**config["text_config"], key: value}  # type: ignore[dict-item]
    with pytest.raises(UnsupportedArchitecture, match=key):
        architecture_from_config(config, "small")


REFUSALS: list[tuple[dict[str, object], str]] = [
    ({"model_type": "deepseek_v9"}, "no such model_type is understood"),
    ({"model_type": ""}, "its config lacks 'model_type'"),
    ({"kv_lora_rank": 512}, "'kv_lora_rank' is not understood in this family"),
    ({"num_local_experts": 8}, "'num_local_experts' is not understood in this family"),
    ({"block_configs": [{}]}, "'block_configs' is not understood in this family"),
    ({"index_topk": 2048}, "'index_topk' is not understood in this family"),
    ({"vocab_size": None}, "its config lacks 'vocab_size'"),
    ({"hidden_size": "64"}, "'hidden_size' must be a whole number from 1 to 16,777,216, but is '64'"),
    ({"hidden_size": True}, "'hidden_size' must be a whole number from 1 to 16,777,216, but is True"),
    ({"num_hidden_layers": -1}, "'num_hidden_layers' must be a whole number from 1 to 10,000, but is -1"),
    ({"num_key_value_heads": 3}, "8 heads cannot share 3 key-value heads evenly"),
    ({"hidden_size": 65}, "hidden_size 65 is not a multiple of 8 heads and 'head_dim' is missing"),
    ({"tie_word_embeddings": "no"}, "'tie_word_embeddings' must be true or false, but is 'no'"),
    ({"layer_types": ["full_attention"]}, "'layer_types' describes 1 layer, but the model has 3"),
    ({"layer_types": "full_attention"}, "'layer_types' must be a list, but is 'full_attention'"),
    (
        {"layer_types": ["full_attention", "full_attention", "lightning"]},
        "attention layers of type 'lightning' are not understood (known: full_attention)",
    ),
    (
        {"layer_types": ["full_attention", "sliding_attention", "full_attention"]},
        "its config lacks 'sliding_window'",
    ),
    ({"sliding_window": 16}, "it has a window of 16 tokens but no 'layer_types' that say which layers slide"),
    ({"quantization_config": "fp8"}, "'quantization_config' must be a mapping"),
    ({"model_type": "qwen3"}, "its config lacks 'head_dim'"),
    ({"model_type": "mistral", "num_key_value_heads": None}, "its config lacks 'num_key_value_heads'"),
    ({"model_type": "llama4", "text_config": []}, "'text_config' must be a mapping"),
    (
        {"num_key_value_heads": 0},
        "'num_key_value_heads' must be a whole number from 1 to 16,777,216",
    ),
    ({"num_hidden_layers": 10**9}, "'num_hidden_layers' must be a whole number from 1 to 10,000, but is"),
    ({"hidden_size": 10**18}, "'hidden_size' must be a whole number from 1 to 16,777,216, but is"),
    ({"layer_types": [[], {}, "x"]}, "'layer_types' must hold names or numbers, but holds []"),
    ({"hidden_size": 2**24, "intermediate_size": 2**24}, "it has more than 1e+15 parameters"),
]


QWEN_THAT_SEES = {
    "model_type": "qwen3_vl",
    "text_config": {**TINY_LLAMA, "model_type": "qwen3_vl_text", "head_dim": 128},
    "vision_config": {
        "model_type": "qwen3_vl",
        "depth": 27,
        "hidden_size": 1152,
        "intermediate_size": 4304,
        "num_heads": 16,
        "spatial_merge_size": 2,
        "out_hidden_size": 1024,
        "deepstack_visual_indexes": [8, 16, 24],
    },
}

GEMMA_THAT_SEES = {
    "model_type": "gemma3",
    "mm_tokens_per_image": 256,
    "text_config": {**TINY_LLAMA, "model_type": "gemma3_text", "head_dim": 128},
    "vision_config": {
        "model_type": "siglip_vision_model",
        "num_hidden_layers": 27,
        "hidden_size": 1152,
        "intermediate_size": 4304,
        "num_attention_heads": 16,
        "image_size": 896,
        "patch_size": 14,
    },
}

WRONG_VALUES = (
    0,
    -1,
    10**15,
    2**24,
    1,
    3,
    "x",
    "long" * 1000,
    ["a"] * 5000,
    "",
    [],
    {},
    [[]],
    [{}],
    [1],
    {"a": []},
    1.5,
    True,
    False,
    None,
)
"""What a config may hold by mistake under any key."""


def _changed(config: dict[str, object]) -> Iterator[dict[str, object]]:
    """A config with one value of it, at any depth, replaced by each wrong one, and with each key left out."""
    for key, value in config.items():
        yield {name: kept for name, kept in config.items() if name != key}
        yield from ({**config, key: wrong} for wrong in WRONG_VALUES)
        if isinstance(value, Mapping):
            yield from ({**config, key: inner} for inner in _changed(dict(value)))
        elif isinstance(value, list | tuple):
            # A number that equals a whole one is none of its kind.
            wrong_items = (*WRONG_VALUES, *(float(item) for item in value[:5] if isinstance(item, int)))
            yield from ({**config, key: [wrong, *value[1:]]} for wrong in wrong_items)


LONGEST_REFUSAL = 1_010
"""Of a message, whatever the config holds."""


def _layers_or_refusal(config: dict[str, object]) -> tuple[int, str]:
    try:
        found = architecture_from_config(config, "my/model")
    except UnsupportedArchitecture as error:
        return 0, str(error)
    return sum(group.count for group in found.groups), ""


@pytest.mark.parametrize("every", first_parts((3, 1), 1))
def test_a_config_with_a_wrong_value_is_understood_or_refused_in_words(every: int) -> None:
    by_family = {str(each.config.get("model_type")): dict(each.config) for each in model_catalog().values()}
    tried = refused = 0
    for config in (*by_family.values(), QWEN_THAT_SEES, GEMMA_THAT_SEES):
        for changed in itertools.islice(_changed(config), 0, None, every):
            tried += 1
            layers, refusal = _layers_or_refusal(changed)
            assert len(refusal) < LONGEST_REFUSAL
            refused += bool(refusal)
            text = changed.get("text_config") or changed
            assert isinstance(text, Mapping) or refusal
            if isinstance(text, Mapping) and not refusal:
                assert layers == text.get("num_hidden_layers", text.get("n_layers", layers))
    assert tried > 5000 // every
    assert refused > tried / 10


@pytest.mark.parametrize("content", ["[" * 100_000, '{"hidden_size": ' + "9" * 5000 + "}", '{"a": NaN}'])
def test_a_config_that_cannot_be_held_is_refused_with_its_place(tmp_path: Path, content: str) -> None:
    (tmp_path / "config.json").write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=r"config\.json:1:\d+: no valid JSON: "):
        load_architecture("config.json", tmp_path)


@pytest.mark.parametrize(("change", "reason"), REFUSALS)
def test_what_is_not_understood_is_refused_by_name(change: dict[str, object], reason: str) -> None:
    with pytest.raises(UnsupportedArchitecture) as caught:
        architecture_from_config({**TINY_LLAMA, **change}, "my/model")
    error = caught.value
    assert error.model == "my/model"
    assert error.model_type == change.get("model_type", "llama")
    assert reason in error.reason
    assert str(error).startswith(f"my/model: architecture {error.model_type!r} is not supported: ")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"num_experts_per_tok": 7}, "a token cannot use 7 of 6 experts"),
        ({"index_topk": 2048}, "'index_topk' is not understood in this family"),
        ({"v_head_dim": None}, "its config lacks 'v_head_dim'"),
    ],
)
def test_latent_attention_and_experts_are_refused_by_name(change: dict[str, object], reason: str) -> None:
    with pytest.raises(UnsupportedArchitecture, match=reason):
        architecture_from_config({**TINY_DEEPSEEK, **change}, "tiny")


def test_minimax_with_other_than_softmax_attention_is_refused() -> None:
    config = {**model_catalog()["MiniMaxAI/MiniMax-M2.7"].config, "attn_type_list": [0] + [1] * 61}
    with pytest.raises(UnsupportedArchitecture, match="attention of type 0 is not understood"):
        architecture_from_config(config, "tiny")


def test_hybrid_blocks_that_are_not_understood_are_refused() -> None:
    config = {**model_catalog()["nvidia/Nemotron-H-56B-Base-8K"].config, "num_hidden_layers": 2}
    with pytest.raises(UnsupportedArchitecture, match="blocks of type 'X' are not understood"):
        architecture_from_config({**config, "hybrid_override_pattern": "MX"}, "tiny")
    with pytest.raises(UnsupportedArchitecture, match="its pattern has 1 block, but num_hidden_layers is 2"):
        architecture_from_config({**config, "hybrid_override_pattern": "M"}, "tiny")


def test_load_of_an_unknown_model_gives_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(UnknownModelError, match=r"did you mean 'llama3-70b'\?"):
        load_architecture("lama3-70b", tmp_path)
    with pytest.raises(UnknownModelError, match=r"missing/config\.json: no such model"):
        load_architecture("missing/config.json", tmp_path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"a": 1,\n  b}', r"config\.json:2:3: no valid JSON"),
        (b"[]", r"config\.json:1:1: a model config must be a JSON object"),
        (b"\xff\xfe\x00", r"config\.json: cannot be read: it is UTF-16 text"),
        (b"", r"config\.json:1:1: no valid JSON"),
    ],
)
def test_unreadable_config_says_where(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "config.json").write_bytes(content)
    with pytest.raises(InputError, match=message):
        load_architecture("config.json", tmp_path)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"moe": {"num_experts": 8, "num_experts_per_tok": 2}}, "experts in this form"),
        ({"sliding_window": [64, None]}, "'sliding_window' is not understood"),
        ({"multimodal": {"whisper_model_args": {"encoder_args": {}}}}, "'multimodal' is not understood"),
    ],
)
def test_params_that_are_not_understood(more: dict[str, object], words: str) -> None:
    dense = {"dim": 64, "n_layers": 3, "n_heads": 8, "n_kv_heads": 2, "hidden_dim": 128, "vocab_size": 100}
    with pytest.raises(UnsupportedArchitecture, match=words):
        architecture_from_config({**dense, **more}, "m")
