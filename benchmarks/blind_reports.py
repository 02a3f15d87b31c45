"""Figures of issues, pull requests, forums and hosters' pages, on nine parts of four makers.

Typed off on 30 November 2026, all of them before any was predicted, and none left out after its error was
seen: 15 / 44 % (72 figures). Nothing was changed with them in view. Left out unpredicted: pages whose
hardware, layout or clients are not stated, models and parts that the catalogue lacks, runs without CUDA
graphs, and drafts. What was assumed stands here.

* `trtllm-5929`: NVIDIA/TensorRT-LLM issue 5929 (July 2025, 0.21), DeepSeek-R1 in FP8 on eight H200 and in FP4
  on eight B200, medians of LLMPerf; experts in one, four and eight groups. Assumed: caches in BF16.
* `trtllm-4043`: issue 4043 (May 2025, 0.20), Llama 3.1 405B in FP8 on eight B200, 3,000 requests at once; the
  reporter had 1.8 times as much of eight H200.
* `trtllm-4275`: issue 4275 (May 2025), Llama-3.1-8B in FP8 on one RTX 5090, 800 clients.
* `vllm-25915`: vllm-project/vllm issue 25915 (September 2025), Qwen3-8B on one H100 under vLLM 0.8.5 and
  0.10.2, `vllm bench throughput`. Assumed: its default of 1,000 prompts.
* `vllm-48983`: pull request 48983 (July 2026), Gemma-4-26B-A4B in NVFP4, before it. The part is that of the
  same author's pull request 48779, RTX PRO 6000. The projections of attention are in BF16 there, in FP4 here.
* `databasemart`: databasemart.com/blog/vllm-gpu-benchmark-rtx4090, 300 requests at once, 100 tokens in and
  600 out; models of the shapes of Qwen2.5 and Llama 3.1. Assumed: vLLM 0.7 (March 2025).
* `spark-79`: NVIDIA/dgx-spark-playbooks issue 79 (April 2026, vLLM 0.15.1), Llama 3.3 70B in NVFP4 on one
  GB10, one request. Assumed: 500 tokens in and out.
* `spark-forum`: forums.developer.nvidia.com/t/6x-spark-setup/354399, Qwen3-VL-32B in FP8 on four GB10, TP4,
  cache in FP8, one request. Assumed: vLLM of December 2025.
* `conselara`: conselara.dev/notes/dgx-spark-benchmarks (May 2026, vLLM 0.19), gpt-oss-120b on one GB10 and
  Qwen3-235B in INT4 on two, caches in FP8. Assumed: 500 tokens in, and 500 out of gpt-oss.
* `inferencex-1061`: SemiAnalysisAI/InferenceX pull request 1061 (April 2026, vLLM 0.17), gpt-oss-120b on one
  MI300X; the tables of measurements end at 64 clients. Lengths are 0.9 of 1,024.
* `aiter-1930`: ROCm/aiter pull request 1930 (January 2026), DeepSeek-R1 on eight MI300X under SGLang, medians
  with the change.
* `atom-409`: ROCm/ATOM pull request 409 (March 2026), DeepSeek-R1 in FP8 on eight accelerators, taken as
  MI355X, under vLLM with AMD's plugin; lengths are 0.9 of the stated ones, the tokens of an iteration those
  of pull request 739.
* `atom-750`: pull request 750 (May 2026), DeepSeek-V3.2 in FP8 on eight, with the change. Lengths are exact.
* `tpu-inference-3050`: vllm-project/tpu-inference pull request 3050 (June 2026), Qwen3.5-397B in FP8 on four
  chips of TPU7x, medians. Eight devices are four chips, and four or eight ranks of attention-DP four.
"""

from __future__ import annotations

from typing import Any, Final

from benchmarks.blind_cards import RTX_4090, RTX_5090, RTX_PRO, CardServer
from benchmarks.blind_threads import H100, H200, LLAMA_8B, LLAMA_70B, Thread, loop_case, offline_case
from benchmarks.blind_users import QWEN_397B

R1, GPT_OSS = "deepseek-ai/DeepSeek-R1", "openai/gpt-oss-120b"
B200, GB10 = "B200-SXM", "GB10"


def _r1(hardware: str, weights: str, ep: int) -> CardServer:
    return CardServer("trtllm-5929", R1, hardware, "trtllm", weights, "bf16", "2025-07", 8, ep=ep)


Timed = tuple[int, int, int, float | None, float]
"""Tokens in and out, clients, TTFT and TPOT. [ms]"""

TIMES: Final[dict[CardServer, tuple[Timed, ...]]] = {
    _r1(H200, "fp8", 1): (
        (1600, 600, 1, 164.63, 13.78),
        (8192, 600, 1, 515.83, 14.53),
        (1600, 600, 8, 694.81, 18.18),
    ),
    _r1(H200, "fp8", 4): (
        (1600, 600, 1, 134.36, 10.81),
        (8192, 600, 1, 370.07, 11.59),
        (1600, 600, 8, 495.38, 15.66),
    ),
    _r1(H200, "fp8", 8): (
        (1600, 600, 1, 124.11, 11.0),
        (8192, 600, 1, 352.81, 11.78),
        (1600, 600, 8, 477.33, 16.42),
    ),
    _r1(B200, "fp4", 1): ((1600, 600, 1, 161.04, 6.78), (8192, 600, 1, 394.11, 7.14)),
    _r1(B200, "fp4", 4): ((1600, 600, 1, 160.18, 6.61), (8192, 600, 1, 390.12, 6.97)),
    _r1(B200, "fp4", 8): ((1600, 600, 1, 172.65, 6.81), (8192, 600, 1, 448.09, 7.17)),
    CardServer("vllm-48983", "google/gemma-4-26B-A4B", RTX_PRO, "vllm", "fp4", "bf16", "2026-07"): (
        (1024, 1024, 16, None, 10.27),
        (1024, 1024, 32, 146.3, 12.73),
    ),
    CardServer("spark-79", LLAMA_70B, GB10, "vllm", "fp4", "bf16", "2026-02"): (
        (500, 500, 1, None, 1e3 / 4.1),
    ),
    CardServer("spark-forum", "Qwen/Qwen3-VL-32B-Instruct", GB10, "vllm", "fp8", "fp8", "2025-12", 4): (
        (1024, 128, 1, 83.91, 51.95),
    ),
    CardServer("conselara", GPT_OSS, GB10, "vllm", "mxfp4", "fp8", "2026-04"): (
        (500, 500, 1, None, 1e3 / 58.5),
    ),
    CardServer("conselara", "Qwen/Qwen3-235B-A22B", GB10, "vllm", "int4", "fp8", "2026-04", 2, ep=2): (
        (500, 256, 1, None, 1e3 / 17.0),
        (500, 256, 2, None, 1e3 / 12.1),
        (500, 256, 4, None, 1e3 / 9.1),
    ),
    CardServer("inferencex-1061", GPT_OSS, "MI300X", "vllm", "mxfp4", "bf16", "2026-03"): (
        (922, 922, 64, None, 31.4),
        (922, 922, 96, None, 36.6),
        (922, 922, 128, None, 41.3),
        (922, 922, 256, None, 58.3),
    ),
    CardServer("aiter-1930", R1, "MI300X", "sglang", "fp8", "bf16", "2026-01", 8): (
        (1024, 1024, 4, None, 22.05),
        (1024, 1024, 8, None, 25.56),
        (1024, 1024, 16, None, 30.83),
        (1024, 1024, 32, None, 34.3),
    ),
    CardServer("atom-409", R1, "MI355X", "vllm", "fp8", "bf16", "2026-03", 8): (
        (922, 922, 4, 132.53, 11.2),
        (922, 922, 8, 119.83, 11.98),
        (922, 922, 16, 126.96, 13.48),
        (922, 922, 32, 177.63, 17.8),
        (922, 922, 64, 211.02, 21.27),
        (922, 7373, 4, 134.96, 11.22),
        (922, 7373, 8, 121.8, 11.86),
        (922, 7373, 16, 147.79, 13.48),
        (922, 7373, 32, 172.41, 17.32),
        (922, 7373, 64, 286.28, 20.52),
        (7373, 922, 4, 318.88, 12.42),
    ),
    CardServer("atom-750", "deepseek-ai/DeepSeek-V3.2", "MI355X", "vllm", "fp8", "bf16", "2026-05", 8): (
        (1000, 100, 4, 191.81, 13.549),
        (1000, 100, 16, 548.83, 15.835),
        (1000, 100, 64, 1287.02, 31.677),
        (5000, 500, 4, 716.28, 14.293),
        (5000, 500, 16, 1794.51, 19.378),
        (5000, 500, 64, 2968.98, 42.946),
        (10_000, 1000, 4, 1300.6, 14.69),
        (10_000, 1000, 16, 3139.28, 20.531),
    ),
    CardServer("tpu-inference-3050", QWEN_397B, "TPU-7x", "vllm", "fp8", "bf16", "2026-06", 1, 1, 4, 4): (
        (8192, 1024, 4, None, 15.1),
        (8192, 1024, 8, None, 14.2),
        (8192, 1024, 16, None, 17.1),
        (8192, 1024, 32, None, 23.9),
        (8192, 1024, 64, None, 33.6),
        (8192, 1024, 128, None, 51.5),
        (8192, 1024, 256, None, 75.4),
        (1024, 1024, 4, None, 13.1),
        (1024, 1024, 8, None, 13.5),
        (1024, 1024, 16, None, 14.9),
    ),
}
"""Closed loops with their times."""

RATES: Final[dict[CardServer, tuple[Thread, ...]]] = {
    CardServer("trtllm-4275", LLAMA_8B, RTX_5090, "trtllm", "fp8", "bf16", "2025-05"): (
        (200, 200, 800, 7435.27),
    ),
}
"""Tokens a second of closed loops."""


def _mart(model: str) -> CardServer:
    return CardServer("databasemart", model, RTX_4090, "vllm", "bf16", "bf16", "2025-03")


def _qwen(weights: str, month: str) -> CardServer:
    return CardServer("vllm-25915", "Qwen/Qwen3-8B", H100, "vllm", weights, "bf16", month)


AT_ONCE: Final[tuple[tuple[CardServer, tuple[int, int, int, float]], ...]] = (
    (
        CardServer("trtllm-4043", "meta-llama/Llama-3.1-405B", B200, "trtllm", "fp8", "fp8", "2025-05", 8),
        (3000, 128, 2048, 3396.0),
    ),
    (_qwen("bf16", "2025-04"), (1000, 1024, 2048, 4481.69)),
    (_qwen("fp8", "2025-04"), (1000, 1024, 2048, 4868.31)),
    (_qwen("bf16", "2025-09"), (1000, 1024, 2048, 5408.88)),
    (_qwen("fp8", "2025-09"), (1000, 1024, 2048, 5304.03)),
    (_mart("Qwen/Qwen2.5-1.5B"), (300, 100, 600, 13.85 * 600)),
    (_mart("Qwen/Qwen2.5-3B"), (300, 100, 600, 10.31 * 600)),
    (_mart("Qwen/Qwen2.5-7B"), (300, 100, 600, 5.96 * 600)),
    (_mart("Qwen/Qwen2.5-7B"), (300, 100, 600, 5.79 * 600)),
    (_mart(LLAMA_8B), (300, 100, 600, 3.96 * 600)),
    (_mart("google/gemma-2-9b"), (300, 100, 600, 0.68 * 600)),
)
"""Requests, tokens in and out, and tokens a second."""

_IN_PROCESS: Final = {"front_end_ms": 0.0, "front_end_token_us": 0.0}

STATED: Final[dict[str, dict[str, object]]] = {
    "atom-409": {"max_batched_tokens": 16_384},
    "databasemart": _IN_PROCESS,
    "trtllm-4043": _IN_PROCESS,
    "vllm-25915": _IN_PROCESS,
}
"""Settings that a command, or the tool it calls, states, by set."""


def report_rows() -> list[dict[str, Any]]:
    """Cases of `plan predict` with `set`, `page`, `quantity` and `measured`, and `ttft_ms` where known."""
    found = [
        server.case | loop_case((prompt, output, clients, tpot_ms), "tpot_ms") | {"ttft_ms": ttft_ms}
        for server, runs in TIMES.items()
        for prompt, output, clients, ttft_ms, tpot_ms in runs
    ]
    found += [server.case | loop_case(run, "tokens_per_s") for server, runs in RATES.items() for run in runs]
    found += [server.case | offline_case(*burst) for server, burst in AT_ONCE]
    return [row | STATED.get(str(row["set"]), {}) for row in found]
