"""Published measurements from issues, pull requests and a report, predicted before the model was changed.

Typed off in November 2026; all of them together were 41 / 218 % off then. The rows of Lambda were used for
the waits of `perfmodel/steps/host_gaps.py` since, and nothing was chosen or fitted on the others:

* `lambda-0.5.4`, `lambda-0.6.0`: LambdaLabsML/vllm-benchmark@0e8fc5d, benchmark_v0.md: ShareGPT, 320 prompts
  at once under vLLM 0.5.4 and 5,000 (405B: 1,280) under 0.6.0, a batch of 256. Assumed: 215 tokens in and 198
  out, as in the same tool's runs of GPUStack. FP8 on A100 runs on 16-bit units, and is left out.
* `tt-356`: tenstorrent/tt-inference-server issue 356 (July 2025), DeepSeek-R1-0528 on two hosts of eight H100
  over InfiniBand, taken as TP16.
* `sglang-3656`: sgl-project/sglang issue 3656 (February 2025), tokens a second of one stream of DeepSeek-R1
  on two hosts of eight H100, TP16. Assumed: 500 tokens in and out.
* `vllm-41306`: vllm-project/vllm issue 41306 (April 2026), vLLM 0.19, one client on eight H200. DeepSeek-V2
  is not in the catalogue.
* `vllm-30326`: issue 30326 (December 2025), gpt-oss-120b on eight H200, before the change that it reports.
* `vllm-44220`: pull request 44220 (June 2026), `vllm bench throughput`, its 1,000 prompts of 1,024 tokens.
* `trtllm-13957`: NVIDIA/TensorRT-LLM issue 13957 (May 2026), Llama-3.1-8B on one B200.
* `vllm-50040`: pull request 50040 (July 2026), Nemotron-3-Nano on one H200.
* `vllm-33490`: pull request 33490 (January 2026), DeepSeek-R1-0528 on eight H200, experts by Triton.
* `inferencex-828`: SemiAnalysisAI/InferenceX issue 828, gpt-oss-120b on eight H100; lengths are 0.9 of 1,024.
* `sglang-3237`: sgl-project/sglang pull request 3237 (February 2025), DeepSeek-V3 on eight MI300X, a batch of
  4 after 2,048 tokens.
* `vllm-6913`: issue 6913 (July 2024), Llama-3-70B in FP8 on four H100. Assumed: 256 tokens out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

H100, H200, A100 = "H100-SXM", "H200-SXM", "A100-SXM-80GB"
R1, R1_FIRST = "deepseek-ai/DeepSeek-R1-0528", "deepseek-ai/DeepSeek-R1"
LLAMA_8B, LLAMA_70B, LLAMA_405B = (f"meta-llama/Llama-3.1-{size}" for size in ("8B", "70B", "405B"))
MISTRAL: Final = "mistralai/Mistral-7B-Instruct-v0.3"
SMALL, LARGE = "mistralai/Mixtral-8x7B-v0.1", "mistralai/Mixtral-8x22B-v0.1"
LLAMA_3: Final = "meta-llama/Meta-Llama-3-70B"
GPT_OSS: Final = "openai/gpt-oss-120b"
NANO: Final = "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-FP8"

LAMBDA_SETS: Final = ("lambda-0.5.4", "lambda-0.6.0")

AT_ONCE: Final[dict[tuple[str, str, str], dict[int, float]]] = {
    (A100, MISTRAL, "bf16"): {1: 1591.4, 2: 1861.61, 4: 2228.35, 8: 2381.43},
    (A100, SMALL, "bf16"): {2: 1017.34, 4: 1098.11, 8: 1289.26},
    (A100, LARGE, "bf16"): {4: 715.37, 8: 946.22},
    (H100, MISTRAL, "bf16"): {1: 3281.19, 2: 3758.54, 4: 4133.32, 8: 4397.11},
    (H100, SMALL, "bf16"): {2: 1430.42, 4: 2102.86, 8: 2073.9},
    (H100, LARGE, "bf16"): {4: 1190.38, 8: 1558.66},
    (H100, LLAMA_8B, "fp8"): {1: 3400.4, 2: 3688.64, 4: 3475.27, 8: 3931.83},
    (H100, LLAMA_70B, "fp8"): {1: 418.92, 2: 1727.69, 4: 2242.99, 8: 2572.8},
    (H100, LLAMA_405B, "fp8"): {8: 1230.74},
}
"""Part, model, weights; tokens a second by TP, under vLLM 0.5.4."""

BATCH_OF_256: Final = (
    (LLAMA_8B, "bf16", 1, 5000, 3958.4),
    (LLAMA_70B, "bf16", 4, 5000, 2291.0),
    (LLAMA_405B, "fp8", 8, 1280, 1331.25),
)
"""Model, weights, TP, prompts, tokens a second, under vLLM 0.6.0."""


@dataclass(frozen=True, slots=True)
class ThreadServer:
    """What a thread measured: a model under a framework of some month, on accelerators of one group.

    Attributes
    ----------
    name : str
        Set of rows.
    model, hardware, framework : str
        Names of the catalogue.
    weights, month : str
        Format, and year and month of the software.
    tp : int
        Tensor parallelism.
    """

    name: str
    model: str
    hardware: str
    framework: str
    weights: str
    month: str
    tp: int = 1

    @property
    def case(self) -> dict[str, Any]:
        """Columns of `plan predict`, and the set."""
        return {
            "set": self.name,
            "page": self.framework,
            "model": self.model,
            "hardware": self.hardware,
            "backend": self.framework,
            "weights": self.weights,
            "tp": self.tp,
            "dp": 1,
            "ep": 1,
            "software_date": self.month,
        }


Thread = tuple[int, int, int, float]
"""Tokens in and out, clients, and what was measured."""

TPOTS: Final[dict[ThreadServer, tuple[Thread, ...]]] = {
    ThreadServer("tt-356", R1, H100, "sglang", "fp8", "2025-06", 16): (
        *((128, 128, 1, 23.1), (1024, 128, 1, 23.2), (2048, 128, 1, 23.3), (3072, 128, 1, 23.6)),
        *((4096, 128, 1, 23.7), (8192, 128, 1, 24.0), (128, 128, 32, 32.5)),
    ),
    ThreadServer("tt-356", R1, H100, "vllm", "fp8", "2025-07", 16): (
        (128, 128, 1, 25.9),
        (128, 128, 32, 44.7),
    ),
    ThreadServer("tt-356", R1, H100, "trtllm", "fp8", "2025-06", 16): (
        *((128, 128, 1, 31.2), (128, 1024, 1, 31.3), (1024, 128, 1, 31.2), (2048, 128, 1, 31.2)),
    ),
    ThreadServer("sglang-3656", R1_FIRST, H100, "sglang", "fp8", "2025-02", 16): ((500, 500, 1, 1e3 / 19),),
    ThreadServer("sglang-3656", R1_FIRST, H100, "vllm", "fp8", "2025-02", 16): ((500, 500, 1, 1e3 / 30),),
    ThreadServer("vllm-41306", LLAMA_8B, H200, "vllm", "bf16", "2026-04", 8): ((4096, 512, 1, 2.85),),
    ThreadServer("vllm-41306", LLAMA_70B, H200, "vllm", "bf16", "2026-04", 8): ((4096, 512, 1, 7.56),),
    ThreadServer("vllm-41306", SMALL, H200, "vllm", "bf16", "2026-04", 8): ((4096, 512, 1, 2.66),),
    ThreadServer("inferencex-828", GPT_OSS, H100, "vllm", "mxfp4", "2026-02", 8): (
        *((922, 922, 4, 3.72), (922, 922, 8, 4.05), (922, 922, 16, 4.83)),
        *((922, 922, 32, 5.82), (922, 922, 64, 7.36)),
    ),
    ThreadServer("vllm-6913", LLAMA_3, H100, "vllm", "fp8", "2024-07", 4): (
        (128, 256, 1, 19.0),
        (128, 256, 32, 25.0),
    ),
}
"""[ms]"""

RATES: Final[dict[ThreadServer, tuple[Thread, ...]]] = {
    ThreadServer("vllm-30326", GPT_OSS, H200, "vllm", "mxfp4", "2025-12", 8): (
        (1024, 1024, 8, 1947.66),
        (1024, 1024, 128, 12_781.05),
    ),
    ThreadServer("trtllm-13957", LLAMA_8B, "B200-SXM", "vllm", "fp8", "2026-05"): ((1000, 1000, 64, 15_638),),
    ThreadServer("trtllm-13957", LLAMA_8B, "B200-SXM", "trtllm", "fp8", "2026-05"): (
        (1000, 1000, 64, 13_806),
    ),
    ThreadServer("vllm-33490", R1, H200, "vllm", "fp8", "2026-01", 8): ((228, 300, 16, 727.6),),
    ThreadServer("vllm-50040", NANO, H200, "vllm", "fp8", "2026-07"): ((270, 300, 1, 351.23),),
}
"""Tokens a second."""

STATED: Final[dict[str, dict[str, object]]] = {
    "vllm-30326": {"iterations_ahead": 1},
    "vllm-50040": {"kv": "fp8"},
}
"""Settings that a command states, by set."""


def thread_rows() -> list[dict[str, Any]]:
    """Cases of `plan predict` with `set`, `page`, `quantity` and `measured`."""
    found = [
        server.case | STATED.get(server.name, {}) | _loop(run, quantity)
        for quantity, servers in (("tpot_ms", TPOTS), ("tokens_per_s", RATES))
        for server, runs in servers.items()
        for run in runs
    ]
    sharegpt = {"length_variation": 1.0}
    found += [
        ThreadServer("lambda-0.5.4", model, hardware, "vllm", weights, "2024-08", tp).case
        | sharegpt
        | offline_case(320, 215, 198, rate)
        for (hardware, model, weights), rates in AT_ONCE.items()
        for tp, rate in rates.items()
    ]
    found += [
        ThreadServer("lambda-0.6.0", model, H100, "vllm", weights, "2024-09", tp).case
        | sharegpt
        | {"max_sequences": 256}
        | offline_case(count, 215, 198, rate)
        for model, weights, tp, count, rate in BATCH_OF_256
    ]
    qwen = ThreadServer("vllm-44220", "Qwen/Qwen3-30B-A3B", H200, "vllm", "bf16", "2026-05", 2).case
    in_process = {"front_end_ms": 0.0, "front_end_token_us": 0.0}
    found.append(qwen | in_process | offline_case(1000, 1024, 128, 6424.66))
    amd = ThreadServer("sglang-3237", "deepseek-ai/DeepSeek-V3", "MI300X", "sglang", "fp8", "2025-02", 8).case
    step = {"mode": "decode", "input_tokens": 2176, "output_tokens": 0, "batch": 4}
    found.append(amd | step | {"quantity": "tpot_ms", "measured": 38.5})
    return found


def _loop(run: Thread, quantity: str) -> dict[str, Any]:
    prompt, output, clients, measured = run
    return {
        "mode": "closed_loop",
        "input_tokens": prompt,
        "output_tokens": output,
        "concurrency": clients,
        "quantity": quantity,
        "measured": measured,
    }


def offline_case(count: int, prompt: int, output: int, rate: float) -> dict[str, Any]:
    """Columns of `plan predict` for requests that are all there at once, and their tokens a second."""
    return {
        "mode": "offline",
        "input_tokens": prompt,
        "output_tokens": output,
        "n_requests": count,
        "quantity": "tokens_per_s",
        "measured": rate,
    }
