"""Published measurements that no table of this project had.

Typed off their sources in November 2026, and predicted before anything was changed with them in view. Since
then the two of MI300X and MI325X in `mlperf-5.1` were used (`benchmarks/blind_rows.py`); nothing was chosen
or fitted on the others:

* `mlperf-5.1`: MLPerf Inference v5.1, closed division, datacenter, Offline (9 September 2025),
  mlcommons/inference_results_v5.1@965182b: summary_results.json, and the settings of each submission's
  configs and code. Tokens out of a request are tokens over samples a second of the run. Assumed: 290 tokens
  in of Llama 2 70B (OpenOrca), 778 of Llama 3.1 8B (CNN/DailyMail), 9,400 of 405B, 800 of DeepSeek-R1; of
  OpenOrca and DeepSeek a squared coefficient of variation of 0.5. Runs send up to a million requests, here
  `WAVES` times those that run at once.
* `mlperf-6.0`: the same of v6.0 (April 2026), from a copy, gbeezybez/inference_results_v6.0@232fbf9. Left out
  after they were predicted: gpt-oss-120b (five parts 29 to 82 % too fast at 2,900 tokens in) and Mixtral
  (1.9 and 3 times too fast), whose mean prompts are not published, and Llama 2 70B on four Arc Pro B60 (2.9
  times too slow), whose layout is not.
* `dstack-r1`: dstackai/benchmarks, DeepSeek-R1 (dstack.ai/blog/h200-mi300x-deepskeek-benchmark, 18 March
  2025), 3,200 tokens in and 800 out, 500 requests, on eight accelerators; TensorRT-LLM is taken as EP 4.
* `silybench`: tgarg01/silybench-data (24 September 2026), Qwen3-8B on one H100, vLLM 0.30.
* `inferencex-870`: SemiAnalysisAI/InferenceX issue 870 (5 March 2026), DeepSeek-R1-0528 on eight H200, SGLang
  0.5.7; lengths are 0.9 of 1,024.
* `tenstorrent-143`: tenstorrent/tt-inference-server issue 143, Qwen2.5-72B on two H100, one client, vLLM;
  taken as software of April 2025.
* `sglang-31044`: sgl-project/sglang pull request 31044 (13 July 2026), MiniMax-M2.7 on MI300X, SGLang
  0.5.13, 1,000 tokens in and out, cache in FP8.
* `vllm-25135`: vllm-project/vllm pull request 25135 (18 September 2025), Llama 3.1 405B in MXFP4 on one
  MI355X, 64 clients. MXFP4 is priced as FP4; the cache is assumed to be FP8.
* `tenstorrent-340`: tenstorrent/tt-inference-server issue 340 (24 June and 18 July 2025), reference figures
  of vLLM on one A100, one client; taken as SXM with 80 GB.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

WAVES: Final = 12
"""Requests of an offline run over those that its engines hold at once."""

Measured: TypeAlias = tuple[int, float, float]

LLAMA2_70B, LLAMA_8B = "meta-llama/Llama-2-70b-hf", "meta-llama/Llama-3.1-8B"
LLAMA_405B, DEEPSEEK = "meta-llama/Llama-3.1-405B", "deepseek-ai/DeepSeek-R1-0528"

INPUT_TOKENS: Final = {LLAMA2_70B: 290, LLAMA_8B: 778, LLAMA_405B: 9400, DEEPSEEK: 800}
LENGTH_VARIATION: Final = {LLAMA2_70B: 0.5, DEEPSEEK: 0.5}


@dataclass(frozen=True, slots=True)
class Submission:
    """One result of MLPerf's scenario Offline.

    Attributes
    ----------
    submitter, model, hardware, framework : str
        Who, and names of the catalogue.
    accelerators, tp, pp, dp : int
        All of them, and the layout of one engine; the experts of an engine with `dp` are spread over it.
    weights : str
        Format; the cache is in FP8.
    sequences, batched_tokens : int
        Limits of an iteration.
    output_tokens : int
        Mean. [tokens]
    tokens_per_s : float
        The result.
    """

    submitter: str
    model: str
    hardware: str
    framework: str
    accelerators: int
    tp: int
    pp: int
    dp: int
    weights: str
    sequences: int
    batched_tokens: int
    output_tokens: int
    tokens_per_s: float


SUBMISSIONS: Final = (
    Submission("HPE", LLAMA2_70B, "H200-SXM", "trtllm", 8, 1, 1, 1, "fp8", 2506, 1536, 292, 34_797),
    Submission("NVIDIA", LLAMA2_70B, "B200-SXM", "trtllm", 8, 1, 1, 1, "fp4", 2048, 3584, 273, 101_527),
    Submission("NVIDIA", LLAMA2_70B, "GB200-NVL72", "trtllm", 4, 1, 1, 1, "fp4", 2048, 3584, 276, 51_736.9),
    Submission(
        "HPE", LLAMA2_70B, "RTX-PRO-6000-Server", "trtllm", 8, 1, 1, 1, "fp4", 2048, 8192, 273, 26_205.3
    ),
    Submission("AMD", LLAMA2_70B, "MI300X", "vllm", 8, 1, 1, 1, "fp8", 1792, 40_960, 302, 27_803.9),
    Submission("AMD", LLAMA2_70B, "MI325X", "vllm", 8, 1, 1, 1, "fp8", 2700, 65_536, 301, 34_520.4),
    Submission("HPE", LLAMA_8B, "H200-SXM", "trtllm", 8, 1, 1, 1, "fp8", 2048, 12_000, 128, 66_036.8),
    Submission("NVIDIA", LLAMA_8B, "B200-SXM", "trtllm", 8, 1, 1, 1, "fp4", 6000, 12_000, 129, 136_752),
    Submission(
        "HPE", LLAMA_8B, "RTX-PRO-6000-Server", "trtllm", 8, 1, 1, 1, "fp4", 2048, 8192, 128, 46_841.8
    ),
    Submission("RedHat", LLAMA_8B, "H100-SXM", "vllm", 1, 1, 1, 1, "fp8", 1024, 8192, 128, 5777.08),
    Submission("RedHat", LLAMA_8B, "L40S", "vllm", 1, 1, 1, 1, "fp8", 256, 2048, 128, 1642.22),
    Submission("Nebius", LLAMA_405B, "H200-SXM", "trtllm", 8, 4, 2, 1, "fp8", 512, 1536, 646, 552.749),
    Submission("NVIDIA", LLAMA_405B, "B200-SXM", "trtllm", 8, 2, 2, 1, "fp4", 128, 1536, 652, 1624.11),
    Submission("Nebius", LLAMA_405B, "GB200-NVL72", "trtllm", 4, 2, 2, 1, "fp4", 2048, 1536, 653, 855.82),
    Submission("NVIDIA", DEEPSEEK, "B200-SXM", "trtllm", 8, 1, 1, 8, "fp4", 512, 4608, 3736, 33_379),
)
"""Limits of the two of RedHat are the defaults of vLLM 0.10: its submission does not state them."""

SUBMISSIONS_OF_2026: Final = (
    Submission("NVIDIA", DEEPSEEK, "B300-SXM", "trtllm", 8, 1, 1, 8, "fp4", 1024, 6144, 3751, 70_325.7),
    Submission("Google", DEEPSEEK, "B200-SXM", "trtllm", 8, 1, 1, 8, "fp4", 512, 4608, 3751, 57_116.9),
    Submission(
        "HPE", LLAMA2_70B, "RTX-PRO-6000-Server", "trtllm", 8, 1, 1, 1, "fp4", 2304, 2305, 272, 29_900.1
    ),
    Submission("AMD", LLAMA2_70B, "MI355X", "vllm", 8, 1, 1, 1, "fp4", 3392, 65_536, 283, 103_480),
    Submission("Cisco", LLAMA2_70B, "MI350X", "vllm", 8, 1, 1, 1, "fp4", 3392, 65_536, 285, 78_936.7),
    Submission("HPE", LLAMA_8B, "B200-SXM", "trtllm", 8, 1, 1, 1, "fp4", 6000, 12_000, 128, 152_625),
    Submission("Google", LLAMA_405B, "B200-SXM", "trtllm", 8, 2, 2, 1, "fp4", 128, 1536, 656, 1350.24),
)

DEEPSEEK_OF_2025: Final[dict[tuple[str, str, str], tuple[dict[str, int], tuple[Measured, ...]]]] = {
    ("MI300X", "vllm", "2025-02"): (
        {"tp": 8},
        ((4, 1259, 46.2), (16, 4261, 55.57), (64, 12_234, 77.97), (128, 22_246, 109.07)),
    ),
    ("MI300X", "sglang", "2025-02"): (
        {"tp": 8},
        ((4, 1645, 34.94), (16, 4187, 47.09), (64, 13_925, 84.95), (128, 27_309, 135.7)),
    ),
    ("H200-SXM", "vllm", "2025-03"): (
        {"tp": 8},
        ((4, 976, 25.73), (16, 3369, 49.6), (64, 14_164, 65.6)),
    ),
    ("H200-SXM", "sglang", "2025-02"): (
        {"dp": 8, "moe_tp": 8},
        ((4, 3904, 43.58), (16, 7122, 52.5), (64, 20_637, 80.24), (128, 36_230, 110.75)),
    ),
    ("H200-SXM", "trtllm", "2025-03"): (
        {"tp": 8, "ep": 4, "moe_tp": 2},
        ((4, 1004, 55.1), (16, 2751, 57.55), (64, 4159, 81.6), (128, 31_646, 100.2)),
    ),
}
"""Layout; clients, TTFT and TPOT. [ms]"""

DEEPSEEK_H200: Final = ((8, 330.6, 12.8), (16, 356.0, 17.2), (32, 426.5, 25.6), (64, 423.1, 34.6))
"""Clients, TTFT and TPOT. [ms]"""

QWEN_72B: Final = ((128, 41.1, 30.9), (2048, 149.5, 31.0), (8192, 1063.8, 31.3))
"""Tokens in, TTFT and TPOT. [ms]"""

QWEN_8B: Final = {
    "fp8": (
        *((1024, 128, 108, 4129.0), (128, 1024, 472, 15_103.0), (2048, 2048, 52, 3653.0)),
        *((8192, 512, 10, 786.9), (128, 128, 512, 16_542.0)),
    ),
    "bf16": (
        *((1024, 128, 80, 3017.7), (128, 1024, 396, 13_322.0), (2048, 2048, 40, 2814.7)),
        *((8192, 512, 7, 501.6), (128, 128, 512, 14_540.0)),
    ),
}
"""Tokens in and out, clients, tokens a second."""

MINIMAX: Final = (
    (2, 1, 210.0, 14.94),
    (2, 16, 167.0, 31.80),
    (4, 64, 419.0, 42.48),
    (4, 256, 337.0, 71.72),
    (8, 1024, 3547.0, 239.18),
    (8, 4096, 18_251.0, 431.16),
)
"""TP, which EP equals, clients, TTFT and TPOT. [ms]"""

ONE_CLIENT: Final = {
    "Qwen/Qwen3-1.7B": (
        (128, 128, 11.4, 4.6),
        (128, 1024, 14.0, 4.7),
        (1024, 128, 26.4, 4.8),
        (2048, 128, 30.9, 5.0),
    ),
    "Qwen/Qwen3-14B": (
        *(
            (128, 128, 52.5, 24.3),
            (128, 1024, 32.8, 28.2),
            (1024, 128, 284.0, 28.9),
            (2048, 128, 282.8, 27.6),
        ),
        *((3072, 128, 359.1, 29.1), (4096, 128, 217.2, 22.8), (8192, 128, 1000.2, 28.3)),
    ),
    "Qwen/Qwen3-30B-A3B": (
        *((128, 128, 35.7, 9.6), (128, 1024, 27.0, 9.7), (1024, 128, 70.3, 9.8), (2048, 128, 81.0, 9.9)),
        *((3072, 128, 90.2, 10.1), (4096, 128, 75.2, 10.3), (8192, 128, 227.0, 10.6)),
    ),
}
"""Tokens in and out, TTFT and TPOT. [ms]"""


def submitted_rows() -> list[dict[str, object]]:
    """Cases of `plan predict` with `set`, `page`, `quantity` and `measured`, and `ttft_ms` of loops."""
    loops = [
        *(
            _loop("sglang-31044", f"TP{tp}", "MiniMaxAI/MiniMax-M2.7", "MI300X", "sglang", "fp8", "2026-06")
            | {"kv": "fp8", "tp": tp, "ep": tp}
            | _figures(1000, 1000, clients, ttft_ms, tpot_ms)
            for tp, clients, ttft_ms, tpot_ms in MINIMAX
        ),
        _loop("vllm-25135", "TP1", LLAMA_405B, "MI355X", "vllm", "fp4", "2025-09")
        | {"kv": "fp8"}
        | _figures(1022, 1024, 64, 5240.27, 75.58),
        *(
            _loop("tenstorrent-340", "vLLM", model, "A100-SXM-80GB", "vllm", "bf16", "2025-06")
            | _figures(prompt, output, 1, ttft_ms, tpot_ms)
            for model, figures in ONE_CLIENT.items()
            for prompt, output, ttft_ms, tpot_ms in figures
        ),
    ]
    submitted = [_offline(each, "mlperf-5.1", "2025-07") for each in SUBMISSIONS]
    submitted += [_offline(each, "mlperf-6.0", "2026-02") for each in SUBMISSIONS_OF_2026]
    return [*submitted, *loops, *_later_loops()]


def _later_loops() -> list[dict[str, object]]:
    r1, r1_0528, h200, h100 = "deepseek-ai/DeepSeek-R1", DEEPSEEK, "H200-SXM", "H100-SXM"
    return [
        *(
            _loop("dstack-r1", framework, r1, hardware, framework, "fp8", month)
            | {"n_requests": 500, "n_accelerators": 8}
            | layout
            | _figures(3200, 800, *figures)
            for (hardware, framework, month), (layout, rows) in DEEPSEEK_OF_2025.items()
            for figures in rows
        ),
        *(
            _loop("inferencex-870", "1k/1k", r1_0528, h200, "sglang", "fp8", "2026-01")
            | {"tp": 8}
            | _figures(922, 922, *figures)
            for figures in DEEPSEEK_H200
        ),
        *(
            _loop("tenstorrent-143", "vLLM", "Qwen/Qwen2.5-72B", h100, "vllm", "bf16", "2025-04")
            | {"tp": 2}
            | _figures(prompt, 128, 1, ttft_ms, tpot_ms)
            for prompt, ttft_ms, tpot_ms in QWEN_72B
        ),
        *(
            _loop("silybench", "Qwen3-8B", "Qwen/Qwen3-8B", h100, "vllm", weights, "2026-09")
            | {
                "input_tokens": prompt,
                "output_tokens": output,
                "concurrency": clients,
                "quantity": "tokens_per_s",
                "measured": tokens_per_s,
            }
            for weights, rows in QWEN_8B.items()
            for prompt, output, clients, tokens_per_s in rows
        ),
    ]


def _offline(result: Submission, name: str, month: str) -> dict[str, object]:
    engines = result.accelerators // (result.tp * result.pp * result.dp)
    at_once = result.sequences * engines * result.pp * result.dp
    return {
        "set": name,
        "page": result.submitter,
        "model": result.model,
        "hardware": result.hardware,
        "backend": result.framework,
        "weights": result.weights,
        "kv": "fp8",
        "tp": result.tp,
        "pp": result.pp,
        "dp": result.dp,
        "ep": result.dp,
        "n_accelerators": result.accelerators,
        "software_date": month,
        "mode": "offline",
        "input_tokens": INPUT_TOKENS[result.model],
        "output_tokens": result.output_tokens,
        "length_variation": LENGTH_VARIATION.get(result.model, 0.0),
        "n_requests": WAVES * at_once,
        "max_sequences": result.sequences,
        "max_batched_tokens": max(result.batched_tokens, result.sequences + 1),
        "quantity": "tokens_per_s",
        "measured": result.tokens_per_s,
    }


def _loop(
    name: str, page: str, model: str, hardware: str, framework: str, weights: str, month: str
) -> dict[str, object]:
    return {
        "set": name,
        "page": page,
        "model": model,
        "hardware": hardware,
        "backend": framework,
        "weights": weights,
        "kv": "bf16",
        "tp": 1,
        "dp": 1,
        "ep": 1,
        "software_date": month,
        "mode": "closed_loop",
        "quantity": "tpot_ms",
    }


def _figures(prompt: int, output: int, clients: int, ttft_ms: float, tpot_ms: float) -> dict[str, object]:
    return {
        "input_tokens": prompt,
        "output_tokens": output,
        "concurrency": clients,
        "ttft_ms": ttft_ms,
        "measured": tpot_ms,
    }
