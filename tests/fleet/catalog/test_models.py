"""The model catalogue: names, aliases and the facts it must have."""

from __future__ import annotations

import pytest

from fleetplan.fleet.catalog import UnknownModelError, model_catalog
from fleetplan.fleet.catalog.models import checkpoint, resolve
from fleetplan.fleet.errors import InputError

SHORT_NAMES = {
    "llama2-70b": "meta-llama/Llama-2-70b-hf",
    "llama3-8b": "meta-llama/Llama-3.1-8B",
    "llama3-70b": "meta-llama/Llama-3.1-70B",
    "llama3-405b": "meta-llama/Llama-3.1-405B",
    "llama3.3-70b": "meta-llama/Llama-3.3-70B-Instruct",
    "llama4-maverick": "meta-llama/Llama-4-Maverick-17B-128E-Instruct",
    "qwen2.5-72b": "Qwen/Qwen2.5-72B",
    "qwen3-235b": "Qwen/Qwen3-235B-A22B",
    "mixtral-8x7b": "mistralai/Mixtral-8x7B-v0.1",
    "deepseek-r1": "deepseek-ai/DeepSeek-R1",
    "kimi-k2": "moonshotai/Kimi-K2-Instruct",
    "gpt-oss-120b": "openai/gpt-oss-120b",
    "gemma3-27b": "google/gemma-3-27b-it",
    "glm-4.5-air": "zai-org/GLM-4.5-Air",
    "minimax-m2.5": "MiniMaxAI/MiniMax-M2.5",
    "kimi-k3": "moonshotai/Kimi-K3",
    "minimax-m3": "MiniMaxAI/MiniMax-M3",
    "phi-4": "microsoft/phi-4",
    "nemotron-3-nano": "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16",
}


def test_catalogue_has_the_widely_served_models() -> None:
    assert len(model_catalog()) >= 35


@pytest.mark.parametrize(("alias", "identifier"), SHORT_NAMES.items())
def test_short_names(alias: str, identifier: str) -> None:
    assert resolve(alias) == identifier


def test_entries_are_found_by_each_of_their_names_in_any_case() -> None:
    for identifier, facts in model_catalog().items():
        assert facts.name == identifier
        assert facts.aliases, identifier
        for name in (identifier, *facts.aliases):
            assert resolve(name) == resolve(name.upper()) == resolve(f" {name.lower()} ") == identifier


def test_entries_name_their_source_and_their_own_config() -> None:
    for identifier, facts in model_catalog().items():
        own = facts.source.startswith(f"HF {identifier} config.json")
        assert own or "Meta-Llama-3.1" in facts.source, identifier
        assert "config.json" in facts.source, identifier
        assert "model_type" in facts.config, identifier


@pytest.mark.parametrize(
    ("wrong", "meant"),
    [
        ("lama3-70b", "llama3-70b"),
        ("meta-llama/Llama-3.1-70", "meta-llama/Llama-3.1-70B"),
        ("deepseek_v3", "deepseek-v3"),
        ("Qwen3 32B", "qwen3-32b"),
    ],
)
def test_unknown_name_gives_the_nearest(wrong: str, meant: str) -> None:
    with pytest.raises(UnknownModelError) as caught:
        resolve(wrong)
    assert caught.value.reference == wrong
    assert f"did you mean {meant!r}?" in caught.value.hint
    assert str(caught.value).startswith(f"{wrong}: no such model in the catalogue; allowed: ")


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("RedHatAI/Llama-3.3-70B-Instruct-FP8-dynamic", "meta-llama/Llama-3.3-70B-Instruct"),
        ("RedHatAI/Llama-3.3-70B-Instruct-quantized.w4a16", "meta-llama/Llama-3.3-70B-Instruct"),
        ("neuralmagic/Meta-Llama-3.1-70B-Instruct-FP8", "meta-llama/Llama-3.1-70B"),
        ("amd/Llama-3.1-405B-Instruct-FP8-KV", "meta-llama/Llama-3.1-405B"),
        ("Qwen/Qwen2.5-72B-Instruct-GPTQ-Int4", "Qwen/Qwen2.5-72B"),
        ("qwen/qwen3-235b-a22b-instruct-2507-fp8", "Qwen/Qwen3-235B-A22B-Instruct-2507"),
    ],
)
def test_a_quantised_copy_has_the_shapes_of_its_original_and_keeps_its_name(name: str, model: str) -> None:
    assert resolve(name) == model
    assert checkpoint(f" {name} ") == name


@pytest.mark.parametrize(
    "name",
    [
        "acme/Llama-3.3-70B-Instruct",  # no copy by its name: a tune may have other shapes
        "acme/Llama-3.3-70B-Instruct-FP8-pruned-50",
        "acme/none/Llama-3.3-70B-Instruct-FP8",
        "Llama-3.3-70B-Instruct-FP8",
        "acme/FP8",
        "acme/-FP8",
    ],
)
def test_what_is_no_quantised_copy_by_its_name_is_unknown(name: str) -> None:
    with pytest.raises(UnknownModelError) as caught:
        resolve(name)
    assert ("plan import model" in caught.value.hint) == (name.count("/") == 1)


def test_unknown_name_is_a_mistake_of_the_user_and_nothing_is_guessed() -> None:
    with pytest.raises(InputError) as caught:
        resolve("zzzzzzzz")
    assert "did you mean" not in str(caught.value)


def test_catalogue_cannot_be_changed_by_its_readers() -> None:
    facts = model_catalog()["openai/gpt-oss-20b"]
    with pytest.raises(TypeError):
        facts.config["hidden_size"] = 1  # type: ignore[index]
