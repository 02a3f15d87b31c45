"""Published closed loops: facts of their launches, and a constant fitted without the rows that judge it."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from benchmarks.queueing_launches import admission
from benchmarks.queueing_measured import FRONT_END_MS, MeasuredRow, fitted_front_end_ms, left_out

LLAMA = {
    "model": "meta-llama/Llama-3.1-70B",
    "model_class": "dense",
    "hardware": "H200-SXM",
    "framework": "trtllm",
    "source": "inferencex",
    "weights": "fp8",
    "tp": 4,
    "dp": 1,
    "load": 64,
    "nominal_input_tokens": 1024,
    "output_tokens": 922,
}
DEEPSEEK = LLAMA | {
    "model": "deepseek-ai/DeepSeek-R1",
    "model_class": "DeepSeek",
    "tp": 8,
    "hardware": "B200-SXM",
}
QWEN = DEEPSEEK | {"model": "Qwen/Qwen3.5-397B-A17B", "model_class": "other MoE", "framework": "sglang"}


@pytest.mark.parametrize(
    ("launched", "gathering"),
    [
        (LLAMA, 20),
        (LLAMA | {"tp": 8}, 0),
        (LLAMA | {"output_tokens": 7373}, 0),
        (LLAMA | {"nominal_input_tokens": 8192}, 0),
        (LLAMA | {"source": "gap_analysis"}, 0),
        (LLAMA | {"framework": "vllm"}, 0),
        (DEEPSEEK, 40),
        (DEEPSEEK | {"load": 32}, 0),
        (DEEPSEEK | {"weights": "fp4"}, 0),
        (DEEPSEEK | {"hardware": "H200-SXM"}, 0),
    ],
)
def test_trtllm_gathers_prompts_where_its_scripts_say_so(
    launched: dict[str, object], gathering: float
) -> None:
    rules = admission(pd.Series(launched), prompts_apart=False)
    assert rules.gathering_iterations == gathering
    assert (rules.polled_iterations, rules.iterations_ahead) == (1, 1)


@pytest.mark.parametrize(
    ("launched", "polled"),
    [
        (DEEPSEEK | {"framework": "sglang"}, 30),
        (DEEPSEEK | {"framework": "sglang", "load": 8}, 10),
        (DEEPSEEK | {"framework": "sglang", "tp": 4}, 10),
        (DEEPSEEK | {"framework": "sglang", "tp": 4, "weights": "fp4"}, 30),
        (DEEPSEEK | {"framework": "sglang", "dp": 8}, 1),
        (DEEPSEEK | {"framework": "sglang", "hardware": "H200-SXM"}, 1),
        (QWEN, 30),
        (QWEN | {"load": 8}, 10),
        (QWEN | {"load": 8, "weights": "fp4"}, 30),
        (QWEN | {"hardware": "B300-SXM"}, 10),
        (QWEN | {"model": "zhipuai/GLM-5"}, 1),
    ],
)
def test_sglang_looks_for_requests_as_seldom_as_its_scripts_say(
    launched: dict[str, object], polled: float
) -> None:
    rules = admission(pd.Series(launched), prompts_apart=True)
    assert rules.polled_iterations == polled
    assert (rules.gathering_iterations, rules.prompts_apart) == (0, True)


def rows(family: str, front_end_ms: float, framework: str = "vllm") -> list[MeasuredRow]:
    inside = (20.0, 60.0, 200.0)
    return [MeasuredRow(each + front_end_ms, each, np.nan, framework, family, False) for each in inside]


def test_time_outside_the_engine_is_that_of_the_other_models() -> None:
    some, others, elsewhere = rows("a", 100), rows("b", 40), rows("c", 300, "sglang")
    found = left_out([*some, *others, *elsewhere])
    inside = np.array([20.0, 60.0, 200.0])
    assert found[:3].tolist() == (inside + 40).tolist()
    assert found[3:6].tolist() == (inside + 100).tolist()
    # No other model under that framework: the figure for one request at a time.
    assert found[6:].tolist() == (inside + FRONT_END_MS).tolist()
    # What a model measures has no part in its own prediction.
    changed = [replace(row, measured_ms=5 * row.measured_ms) for row in some]
    assert left_out([*changed, *others])[:3].tolist() == (inside + 40).tolist()


def test_time_outside_the_engine_is_fitted_to_a_millisecond() -> None:
    inside = np.array([10.0, 100.0, 1000.0])
    assert fitted_front_end_ms(inside + 37.0, inside) == 37.0
