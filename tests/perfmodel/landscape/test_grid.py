"""A cross product says the same as its configurations one by one: every model family, every technique."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from fleetplan.fleet.catalog import accelerators
from fleetplan.fleet.inventory import (
    ExpertRouting,
    KvTier,
    KvTransfer,
    Offload,
    PersistentKv,
    Precision,
    SpeculativeDecoding,
    Techniques,
)
from fleetplan.perfmodel.evaluator import Evaluator, build_evaluator
from fleetplan.perfmodel.landscape import RequestShape, SearchSpace, configurations_of, search_layouts
from fleetplan.perfmodel.landscape.grid import full_grid

BATCHES = (1, 5, 64, 1000)
REQUESTS = (
    RequestShape(100, 10),
    RequestShape(3000, 300),
    RequestShape(3000, 30, 5000),
    RequestShape(500, 2000, 700),
)

TECHNIQUES = {
    "chunks": Techniques(chunk_tokens=512),
    "samples": Techniques(samples_per_prompt=4, shared_prefix_tokens=50),
    "speculative": Techniques(speculative=SpeculativeDecoding(3, 0.7, 0.1)),
    "sessions": Techniques(
        persistent_kv=PersistentKv(0.5, 10.0, (KvTier("hbm", 1.0, None), KvTier("dram", 100.0, 50.0)))
    ),
    "offload": Techniques(offload=Offload(0.1, 0.2, 50.0)),
    "transfer": Techniques(kv_transfer=KvTransfer(overlap=True)),
}


def agree(evaluator: Evaluator) -> None:
    layouts = search_layouts(evaluator.architecture, evaluator.accelerator, SearchSpace(max_accelerators=16))
    shape = (len(layouts), len(BATCHES), len(REQUESTS))
    crossed = full_grid(layouts, BATCHES, REQUESTS)
    places = [axis.ravel().tolist() for axis in np.indices(shape)]
    flat = configurations_of(
        [layouts[position] for position in places[0]],
        np.array(BATCHES, dtype=np.int64)[places[1]],
        REQUESTS,
        np.array(places[2], dtype=np.int64),
    )
    for phase in ("prefill", "decode", "aggregated"):
        together, apart = getattr(evaluator, phase)(crossed), getattr(evaluator, phase)(flat)
        for name in ("latency_ms", "ttft_ms", "tpot_ms", "requests_per_s"):
            values = np.broadcast_to(getattr(together, name), shape).ravel()
            np.testing.assert_allclose(values, getattr(apart, name), rtol=1e-9, err_msg=f"{phase} {name}")
        for name in ("total_gib", "without_kv_gib", "weights_gib"):
            values = np.broadcast_to(getattr(together.memory, name), shape).ravel()
            np.testing.assert_allclose(values, getattr(apart.memory, name), rtol=1e-9)
        if phase == "prefill":
            sent = evaluator.kv_transfer_ms(crossed, together.latency_ms)
            expected = evaluator.kv_transfer_ms(flat, apart.latency_ms)
            np.testing.assert_allclose(np.broadcast_to(sent, shape).ravel(), expected, rtol=1e-9)


@pytest.mark.parametrize(
    ("hardware", "model", "weights"),
    [
        ("H200-SXM", "llama3-70b", "fp8"),
        ("GPU-A", "llama3-405b", "fp8-ffn"),
        ("H200-SXM", "llama4-maverick", "fp8"),
        pytest.param("GB200-NVL72", "llama4-maverick", "fp8", marks=pytest.mark.more),
        ("H200-SXM", "deepseek-ai/DeepSeek-V3", "fp8"),
        ("H200-SXM", "openai/gpt-oss-120b", "mxfp4"),
        ("MI300X", "google/gemma-3-27b-it", "bf16"),
        ("H100-SXM", "nvidia/Nemotron-H-56B-Base-8K", "bf16"),
    ],
)
def test_every_family(hardware: str, model: str, weights: str) -> None:
    agree(build_evaluator(model, accelerators()[hardware], "vllm", Precision(weights, "bf16"), Path()))


@pytest.mark.parametrize("name", TECHNIQUES)
def test_every_technique(name: str) -> None:
    part = accelerators()["MI300X"]
    plain = build_evaluator("llama3-70b", part, "vllm", Precision("fp8", "bf16"), Path())
    agree(replace(plain, techniques=TECHNIQUES[name]))


@pytest.mark.parametrize("placement", ["mixed", "sorted"])
def test_skewed_experts(placement: str) -> None:
    routing = ExpertRouting(busiest_expert_ratio=0.07, placement=placement)  # type: ignore[arg-type]
    part = accelerators()["MI300X"]
    plain = build_evaluator("Qwen/Qwen3-235B-A22B", part, "vllm", Precision("fp8", "bf16"), Path())
    agree(replace(plain, techniques=Techniques(experts=routing)))


def test_images() -> None:
    part = accelerators()["MI300X"]
    plain = build_evaluator("qwen3-vl-32b", part, "vllm", Precision("fp8", "bf16"), Path())
    agree(replace(plain, techniques=Techniques(image_token_ratio=0.3)))
