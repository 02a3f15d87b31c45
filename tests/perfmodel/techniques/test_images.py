"""Prompts with images: the encoder's weights and work by hand, and refusals by name."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tests.perfmodel.fakes import WorkSource, accelerator, configurations, dense_model

from fleetplan.fleet.inventory import Precision, Techniques
from fleetplan.perfmodel.architecture import VisionEncoder, architecture_from_config, load_architecture
from fleetplan.perfmodel.evaluator import Evaluator
from fleetplan.perfmodel.operators import Operator
from fleetplan.perfmodel.predict import predict
from fleetplan.perfmodel.steps import decode_shape, prefill_shape
from fleetplan.perfmodel.techniques import technique_problem
from fleetplan.perfmodel.techniques.images import image_operators

BF16 = Precision("bf16", "bf16")
ENCODER = VisionEncoder(2, 64, 256, 4, 4, 100, ((256, 512),))
SEES = replace(dense_model(), vision=ENCODER)
HALF = Techniques(image_token_ratio=0.5)


def added(label: str, batch: int, tokens: int, techniques: Techniques = HALF) -> dict[str, Operator]:
    shape = prefill_shape(configurations((label,), (batch,), input_tokens=tokens))
    return {each.name: each for each in image_operators(SEES, shape, techniques)}


def dims(operator: Operator) -> dict[str, int]:
    return {name: int(values[0]) for name, values in operator.dims.items()}


def test_the_work_of_images_by_hand() -> None:
    found = added("TP2", 2, 100)
    # Half of 200 prompt tokens are images, of four patches each.
    assert dims(found["image_qkv"]) == {"m": 400, "n": 3 * 2 * 16, "k": 64}
    assert dims(found["image_output"]) == {"m": 400, "n": 64, "k": 2 * 16}
    assert dims(found["image_ffn_up"]) == {"m": 400, "n": 128, "k": 64}
    assert dims(found["image_projection_0"]) == {"m": 100, "n": 256, "k": 256}
    attention = dims(found["image_attention"])
    assert (attention["batch"], attention["new_tokens"], attention["heads"]) == (4, 100, 2)
    # Each of two layers sees all pairs of patches, twice those of causal attention.
    assert found["image_attention"].count[0] == 4
    assert found["image_qkv"].count[0] == 2


def test_the_weights_of_an_encoder_by_hand() -> None:
    assert ENCODER.weights == 2 * (4 * 64**2 + 2 * 64 * 256) + 256 * 512
    asked = configurations(("TP1", "TP4"), (1, 1))
    blind, sees = (
        Evaluator(model, accelerator(), WorkSource(), BF16).decode_memory(asked).weights_gib
        for model in (dense_model(), SEES)
    )
    assert (sees - blind) * 2**30 == pytest.approx([2 * ENCODER.weights, 2 * ENCODER.weights / 4])


def test_images_cost_prompts_alone_and_more_images_never_cost_less() -> None:
    times = []
    asked = configurations(("TP1", "TP2"), (4, 4), input_tokens=2000)
    for ratio in (0.0, 0.001, 0.5, 1.0):
        own = Evaluator(
            SEES, accelerator(), WorkSource(), BF16, techniques=Techniques(image_token_ratio=ratio)
        )
        times.append(own.prefill(asked).ttft_ms)
        assert own.step(decode_shape(asked)).latency_ms == pytest.approx(
            Evaluator(SEES, accelerator(), WorkSource(), BF16).step(decode_shape(asked)).latency_ms
        )
    assert (np.diff(np.stack(times), axis=0) > 0).all()


def test_chunks_pay_for_their_own_images() -> None:
    asked = configurations(("TP1",), (1,), input_tokens=65_536)
    work = []
    for chunk in (None, 16_384):
        plain, images = (
            Evaluator(
                SEES,
                accelerator(),
                WorkSource(),
                BF16,
                techniques=Techniques(chunk_tokens=chunk, image_token_ratio=ratio),
            ).prefill(asked)
            for ratio in (0.0, 0.5)
        )
        work.append(images.ttft_ms[0] - plain.ttft_ms[0])
    # Weights of the encoder are read once a chunk; the products are the same.
    assert work[0] < work[1] < 1.5 * work[0]


def test_encoders_are_read_from_configs() -> None:
    known = load_architecture("Qwen/Qwen3-VL-32B-Instruct", Path()).vision
    assert known is not None
    assert (known.layers, known.patches_per_token) == (27, 4)
    # 0.41 billion of the transformer, and four mergers.
    assert known.weights == pytest.approx(0.41e9 + 4 * 4608 * (4608 + 5120), rel=0.01)
    text = {
        "model_type": "gemma3_text",
        "hidden_size": 64,
        "vocab_size": 100,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 16,
        "intermediate_size": 128,
    }
    siglip = {
        "model_type": "siglip_vision_model",
        "hidden_size": 1152,
        "intermediate_size": 4304,
        "num_hidden_layers": 27,
        "num_attention_heads": 16,
        "image_size": 896,
        "patch_size": 14,
    }
    whole = {"model_type": "gemma3", "text_config": text, "vision_config": siglip, "mm_tokens_per_image": 256}
    found = architecture_from_config(whole, "gemma")
    assert found.vision is not None
    assert (found.vision.patches_per_token, found.vision.patches_per_image) == (16, 4096)
    # Google calls it a 400M parameter encoder.
    assert found.vision.weights == pytest.approx(411e6, rel=0.01)


def test_images_that_cannot_be_priced_are_refused_by_name() -> None:
    blind = load_architecture("llama3-8b", Path())
    unknown = load_architecture("llama4-scout", Path())
    assert "accepts no images" in technique_problem(blind, "vllm", HALF)
    assert "the shapes of the vision tower of" in technique_problem(unknown, "vllm", HALF)
    assert technique_problem(SEES, "vllm", HALF) == ""
    row = {
        "case_id": "a",
        "model": "llama4-scout",
        "hardware": "MI300X",
        "weights": "fp8",
        "mode": "prefill",
        "tp": 8,
        "input_tokens": 1000,
        "batch": 1,
        "image_token_ratio": 0.5,
    }
    found = predict(pd.DataFrame([row, {**row, "model": "qwen3-vl-32b"}]), Path())
    assert found["status"].tolist() == ["rejected", "ok"]
    assert "image_token_ratio" in found["reason"][0]
