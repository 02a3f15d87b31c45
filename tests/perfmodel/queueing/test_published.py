"""Published closed loops: how their servers were launched."""

import pandas as pd
import pytest
from benchmarks.queueing_launches import admission

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
    rules = admission(pd.Series(launched))
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
    rules = admission(pd.Series(launched))
    assert rules.polled_iterations == polled
    assert (rules.gathering_iterations, rules.prompts_apart) == (0, True)
