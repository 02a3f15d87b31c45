"""Steps over a cross product in full detail are those of their configurations, one by one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from fleetplan.fleet.catalog import accelerators
from fleetplan.fleet.inventory import Precision, SpeculativeDecoding, Techniques
from fleetplan.perfmodel.evaluator import build_evaluator, step
from fleetplan.perfmodel.operators import IntArray
from fleetplan.perfmodel.parallelism import Layouts, Parallelism
from fleetplan.perfmodel.steps import StepShape
from fleetplan.perfmodel.steps.shared_lookups import SharedLookups
from fleetplan.perfmodel.steps.times import breakdown_of

LAYOUTS = [
    Parallelism(1, 2, 1, 2, 1),
    Parallelism(2, 1, 1, 1, 1),
    Parallelism(1, 1, 4, 1, 4),
    Parallelism(1, 4, 1, 4, 1),
]


def shapes() -> list[StepShape]:
    """Prompts of some lengths, and more numbers of sequences that generate."""
    layouts = Layouts.of(LAYOUTS).reshaped((-1, 1, 1))

    def points(*values: int) -> IntArray:
        return np.array(values, dtype=np.int64).reshape(1, -1, 1)

    none, nobody = points(0, 0, 0), points(0, 0, 0, 0)
    return [
        StepShape(layouts, points(1, 1, 1), points(1, 700, 4096), none, none, none),
        StepShape(layouts, nobody, nobody, nobody, points(1, 8, 8, 256), points(900, 900, 5000, 900)),
    ]


@pytest.mark.parametrize(
    "techniques",
    [
        Techniques(),
        Techniques(speculative=SpeculativeDecoding(2, 0.7, 0.05), samples_per_prompt=2),
        Techniques(expert_overlap="single-batch"),
        Techniques(expert_overlap="two-batch"),
    ],
    ids=["none", "draft", "single-batch", "two-batch"],
)
@pytest.mark.parametrize(
    ("hardware", "model", "framework"),
    [("H100-SXM", "Qwen/Qwen3-30B-A3B", "vllm"), ("MI300X", "deepseek-ai/DeepSeek-V3", "sglang")],
)
@pytest.mark.parametrize("at_once", [step.CHUNK_CONFIGURATIONS, 14], ids=["whole", "in parts"])
def test_crossed_steps_are_those_of_their_configurations(
    hardware: str,
    model: str,
    framework: str,
    techniques: Techniques,
    at_once: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(step, "CHUNK_CONFIGURATIONS", at_once)
    part = accelerators()[hardware]
    evaluator = build_evaluator(model, part, framework, Precision("fp8", "bf16"), Path(), techniques)
    crossed = evaluator.asked_steps(shapes(), SharedLookups())()
    alone = evaluator.steps([shape.flattened() for shape in shapes()])
    for found, expected in zip(crossed, alone, strict=True):
        assert (found.latency_ms == expected.latency_ms).all()
        assert (found.by_provenance_ms == expected.by_provenance_ms).all()
        assert set(found.names) == set(expected.names)
        assert (breakdown_of(found, expected.names) == expected.breakdown_ms).all()
