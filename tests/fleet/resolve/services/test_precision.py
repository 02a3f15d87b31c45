"""Data types of weights: as names and configs of checkpoints say."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fleetplan.fleet.catalog.models import model_catalog
from fleetplan.fleet.resolve import stored_weights
from fleetplan.scenarios.load import load_fleet

FLEET = """\
version: 1
name: checkpoints
pools: [{{name: own, hardware: H200-SXM, hosts: 1, owned: {{capex_usd_per_host: 1000}}}}]
services:
  - name: chat
    model: {model}
    workload: {{input_tokens: 100, output_tokens: 10}}
    slo: {{}}
    demand: 1
{more}
"""


def four_bit_floats(group_size: int | None) -> dict[str, object]:
    weights = {"type": "float", "num_bits": 4, "group_size": group_size}
    return {"quant_method": "compressed-tensors", "config_groups": {"group_0": {"weights": weights}}}


@pytest.mark.parametrize(
    ("model", "checkpoint", "weights"),
    [
        ("llama3.1-8b", None, "bf16"),
        ("openai/gpt-oss-120b", None, "mxfp4"),
        ("deepseek-r1", None, "fp8"),
        ("deepseek-ai/DeepSeek-R1-0528", None, "fp8"),
        ("deepseek-ai/DeepSeek-V3.1", None, "fp8"),
        ("nvidia/DeepSeek-V3.1-NVFP4", None, "fp4"),
        ("nvidia/DeepSeek-R1-FP4", None, "fp4"),
        ("nvidia/Llama-3.1-70B-Instruct-FP8", None, "fp8"),
        ("Qwen/Qwen3-235B-A22B", None, "bf16"),
        ("Qwen/Qwen3-235B-A22B-FP8", None, "fp8"),
        ("moonshotai/Kimi-K2.5", None, "int4"),
        ("moonshotai/Kimi-K3", None, "mxfp4"),
        ("nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-BF16", None, "bf16"),
        ("nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-FP8", None, "fp8"),
        ("llama3.1-8b", "acme/chat-8b-AWQ", "int4"),
        ("llama3.1-8b", "acme/chat-8b-w8a8", "int8"),
        ("deepseek-r1", "acme/r1-tuned", "fp8"),
        ("deepseek-r1", "acme/r1-tuned-bf16", "bf16"),
        ("deepseek-v4-flash", None, "mxfp4"),
        ("sgl-project/DeepSeek-V4-Pro-FP8", None, "fp8"),
        ("nvidia/DeepSeek-V4-Flash-NVFP4", None, "fp4"),
    ],
)
def test_weights_are_those_of_the_named_checkpoint(
    model: str, checkpoint: str | None, weights: str, tmp_path: Path
) -> None:
    assert stored_weights(model, checkpoint, tmp_path) == weights


def test_every_name_of_the_catalogue_has_one_answer() -> None:
    for facts in model_catalog().values():
        for name in (facts.name, *facts.aliases):
            stored = stored_weights(name, None, Path())
            assert stored in {"bf16", "fp8", "int4", "int8", "fp4", "mxfp4"}, name


@pytest.mark.parametrize(
    ("quantisation", "weights"),
    [
        (None, "bf16"),
        ({"quant_method": "fp8"}, "fp8"),
        ({"quant_method": "awq", "bits": 4}, "int4"),
        (four_bit_floats(32), "mxfp4"),
        (four_bit_floats(16), "fp4"),
        (four_bit_floats(64), "bf16"),
        (four_bit_floats(None), "bf16"),
        ({"quant_method": "some-new-method"}, "bf16"),
        ("a word", "bf16"),
    ],
)
def test_a_config_file_says_how_weights_are_stored(
    quantisation: object, weights: str, tmp_path: Path
) -> None:
    config = dict(model_catalog()["meta-llama/Llama-3.1-8B"].config)
    if quantisation is not None:
        config["quantization_config"] = quantisation
    # The name of a file of shapes says nothing of a checkpoint.
    (tmp_path / "fp8.json").write_text(json.dumps(config), encoding="utf-8")
    assert stored_weights("fp8.json", None, tmp_path) == weights


@pytest.mark.parametrize("text", ["{", "[1]", "\xff"])
def test_what_cannot_be_read_says_nothing(text: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(text, encoding="latin-1")
    assert stored_weights("config.json", None, tmp_path) == "bf16"
    assert stored_weights("there-is-none.json", None, tmp_path) == "bf16"
    assert stored_weights("no-such-model", None, tmp_path) == "bf16"


def read(tmp_path: Path, model: str, more: str = "") -> tuple[list[str], tuple[str, ...]]:
    """Weights of the service and its variants, and the warnings."""
    (tmp_path / "fleet.yaml").write_text(FLEET.format(model=model, more=more), encoding="utf-8")
    fleet = load_fleet(tmp_path / "fleet.yaml")
    (service,) = fleet.services
    return [service.precision.weights, *(each.weights for each in service.variants)], fleet.warnings


def test_a_service_runs_what_its_checkpoint_stores_and_says_so(tmp_path: Path) -> None:
    weights, warnings = read(tmp_path, "openai/gpt-oss-120b")
    assert weights == ["mxfp4"]
    assert warnings == ("services.chat.precision: weights are mxfp4, as openai/gpt-oss-120b stores them",)


def test_stated_weights_hold_and_need_no_words(tmp_path: Path) -> None:
    stated = "    precision: {weights: bf16}"
    assert read(tmp_path, "openai/gpt-oss-120b", stated) == (["bf16"], ())
    assert read(tmp_path, "llama3.1-8b") == (["bf16"], ())
    cache_alone = "    precision: {kv: fp8}"
    assert read(tmp_path, "deepseek-r1", cache_alone)[0] == ["fp8"]


def test_variants_run_what_their_own_checkpoints_store(tmp_path: Path) -> None:
    variants = (
        "    variants:\n"
        "      - {name: whole, quality: 1}\n"
        "      - {name: narrow, quality: 0.9, checkpoint: acme/chat-AWQ}\n"
        "      - {name: other, quality: 0.8, model: deepseek-r1}\n"
        "      - {name: stated, quality: 0.7, model: deepseek-r1, precision: {weights: bf16}}"
    )
    weights, warnings = read(tmp_path, "llama3.1-70b", variants)
    assert weights == ["bf16", "bf16", "int4", "fp8", "bf16"]
    assert [each.partition(":")[0] for each in warnings] == [
        "services.chat.variants.narrow.precision",
        "services.chat.variants.other.precision",
    ]
