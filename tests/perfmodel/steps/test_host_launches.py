"""The host launches the kernels of prompts one by one under SGLang, and captures what generates."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fleetplan.fleet.catalog import accelerators
from fleetplan.fleet.inventory import Precision
from fleetplan.perfmodel.evaluator import Evaluator, build_evaluator
from fleetplan.perfmodel.operators import Operator, OperatorKind
from fleetplan.perfmodel.parallelism import Layouts, Parallelism
from fleetplan.perfmodel.predict import predict
from fleetplan.perfmodel.serving import Range, step_costs
from fleetplan.perfmodel.steps import StepShape
from fleetplan.perfmodel.steps.host_launches import HOST_NAME, LAUNCHES, US_PER_LAUNCH, launch_ms

LAYOUT = Parallelism(1, 8, 1, 8, 1)


def evaluator(framework: str, model: str = "Qwen/Qwen3-235B-A22B") -> Evaluator:
    part = accelerators()["H200-SXM"]
    return build_evaluator(model, part, framework, Precision("bf16", "bf16"), Path())


def shape(prompt_tokens: int, sequences: int) -> StepShape:
    def one(value: int) -> np.ndarray:
        return np.array([value])

    return StepShape(
        Layouts.of([LAYOUT]),
        one(int(prompt_tokens > 0)),
        one(prompt_tokens),
        one(0),
        one(sequences),
        one(999),
    )


def test_launches_of_an_operator_by_its_kind() -> None:
    def operator(kind: OperatorKind, count: float) -> Operator:
        dims = {name: np.ones(1, dtype=np.int64) for name in kind.record.dims}
        return Operator(kind.value, kind, "bf16", dims, np.array([count]))

    listed = [operator(OperatorKind.GEMM, 3.0), operator(OperatorKind.MOE, 2.0)]
    launches = 3 + 2 * LAUNCHES[OperatorKind.MOE]
    assert launch_ms(listed, "sglang") == pytest.approx(launches * US_PER_LAUNCH["sglang"] / 1e3)
    assert not launch_ms(listed, "vllm").any()


def test_a_short_prompt_takes_its_launches_and_a_long_one_its_kernels() -> None:
    sglang = evaluator("sglang")
    one, short, long = (sglang.step(shape(tokens, 0)) for tokens in (1, 200, 16_384))
    # 94 layers of ten operators, four of whose launches are attention and ten the experts: 22 a layer.
    assert one.latency_ms == pytest.approx(94 * 22 * 0.045, rel=0.01)
    assert short.latency_ms == pytest.approx(one.latency_ms)
    assert HOST_NAME in short.names
    assert HOST_NAME not in long.names
    assert long.breakdown_ms.sum(axis=0) == pytest.approx(long.latency_ms)
    assert short.breakdown_ms.sum(axis=0) == pytest.approx(short.latency_ms)
    assert short.by_provenance_ms.sum(axis=0) == pytest.approx(short.latency_ms)


def test_generation_and_other_frameworks_wait_for_nothing() -> None:
    assert HOST_NAME not in evaluator("sglang").step(shape(0, 4)).names
    assert HOST_NAME not in evaluator("vllm").step(shape(200, 0)).names


def test_tabled_iterations_have_the_same_floor() -> None:
    sglang = evaluator("sglang")
    costs = step_costs(sglang, LAYOUT, Range(64, 8192, 16_384))
    floor = float(sglang.step(shape(1, 0)).latency_ms[0])
    assert costs.prompt_floor_ms == pytest.approx(floor)
    assert costs.iteration_ms(200, 0, 0, 0) == pytest.approx(floor)
    assert costs.iteration_ms(8192, 0, 0, 0) > floor
    decode = float(sglang.step(shape(0, 16)).latency_ms[0])
    assert costs.iteration_ms(0, 0, 16, 16 * 999) == pytest.approx(decode, rel=0.05)


def test_prompts_that_wait_for_their_launches_hold_up_generation(tmp_path: Path) -> None:
    case = {
        "model": "Qwen/Qwen3-235B-A22B",
        "hardware": "H200-SXM",
        "weights": "bf16",
        "kv": "bf16",
        "mode": "closed_loop",
        "tp": 8,
        "dp": 1,
        "ep": 1,
        "input_tokens": 200,
        "concurrency": 64,
    }
    rows = [
        case | {"case_id": f"{framework}-{output}", "backend": framework, "output_tokens": output}
        for framework in ("sglang", "vllm")
        for output in (200, 4000)
    ]
    tpot = predict(pd.DataFrame(rows), tmp_path).set_index("case_id")["tpot_ms"]
    # A prompt every third iteration against one in sixty: each costs the host about 90 ms.
    assert tpot["sglang-200"] - tpot["sglang-4000"] > 20
    assert tpot["vllm-200"] - tpot["vllm-4000"] < 10
