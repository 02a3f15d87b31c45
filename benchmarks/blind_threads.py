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

Typed off on 28 November 2026 and not in view since; none was left out after its error was seen. ShareGPT's
1,000 prompts at once have the mean lengths that the tool printed:

* `vllm-17788`: issue 17788 (May 2025), vLLM 0.8.5, Qwen3-32B on one H100 NVL, at most 32 sequences.
* `vllm-29217`: pull request 29217 (November 2025), Qwen3-VL-32B in FP8 on one L40S, text alone, before the
  change; taken as Qwen3-32B, whose decoder has the same shapes.
* `vllm-23369`: pull request 23369 (August 2025), gpt-oss-20b on two Hopper parts, taken as H100.
* `vllm-23696`: pull request 23696 (August 2025), gpt-oss-120b on eight B200, before the change.
* `achatbot-183`: ai-bot-pro/achatbot pull request 183 (August 2025), gpt-oss-20b on one H100 of Modal. A
  request waits 2.7 to 3.7 s for its first token, so the tool's server was not warm.
* `sglang-31216`: sgl-project/sglang pull request 31216 (July 2026), Gemma-4-31B on one MI300X, SGLang 0.5.13.
* `recipes-443`: vllm-project/recipes pull request 443 (May 2026), Ministral-3-8B-Reasoning on MI300X. TP is
  not stated and taken as 1, as in the same author's pull request 476.
* `inferencex-870-b200`: SemiAnalysisAI/InferenceX issue 870 (6 March 2026), DeepSeek-R1-0528 in FP4 on eight
  B200, SGLang 0.5.6; lengths are 0.9 of 1,024. The page marks 64 clients as disturbed: left out unpredicted.
* `trtllm-6294`: NVIDIA/TensorRT-LLM issue 6294 (July 2025), 30,000 prompts of 128 tokens to Llama-3.1-8B in
  FP8 on one H100, which end after 28 tokens on average; the reporter holds the rate to be too low.
* `qwen-speed`: Qwen3's page of speeds (SGLang 0.4.6, H20) as vllm-project/vllm-ascend issue 4656 (December
  2025) and sgl-project/sglang issue 12614 (November 2025) quote it: one sequence, 2,048 tokens out, tokens in
  and out over the time.
* `ml-energy`: ml-energy/leaderboard@0ea52b6, lm-arena-chat.json, its first 17 configurations: output tokens a
  second at a limit of the batch that is always full, and attention split over the same parts where the
  experts are spread. ml-energy/benchmark@c1d6557 says the rest: vLLM 0.11.1 with `--async-scheduling`,
  temperature 0.8 and top-p 0.95, prompts of every turn of a conversation with those before it. Assumed: 500
  tokens in, with which the sequences of the three runs that fill their cache do so. These rows were 57 % off
  with 100 tokens, a greedy sampler and FP8 without blocks; the padding of experts was found with them in
  view: they are "used".
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

MINISTRAL: Final = "mistralai/Ministral-3-8B-Instruct-2512"
QWEN_32B, QWEN_30B, QWEN_4B = "Qwen/Qwen3-32B", "Qwen/Qwen3-30B-A3B", "Qwen/Qwen3-4B"
QWEN_235B: Final = "Qwen/Qwen3-235B-A22B-FP8"

SETS_IN_VIEW: Final = ("lambda-0.5.4", "lambda-0.6.0", "ml-energy")
"""Sets that were in view when the model was changed."""

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
    tp, ep : int
        Tensor and expert parallelism.
    """

    name: str
    model: str
    hardware: str
    framework: str
    weights: str
    month: str
    tp: int = 1
    ep: int = 1

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
            "ep": self.ep,
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
    ThreadServer("sglang-31216", "google/gemma-4-31B-it", "MI300X", "sglang", "bf16", "2026-07"): (
        *(
            (1000, 1000, 1, 21.49),
            (1000, 1000, 16, 31.45),
            (1000, 1000, 64, 62.93),
            (1000, 1000, 256, 192.91),
        ),
    ),
    ThreadServer("recipes-443", MINISTRAL, "MI300X", "vllm", "bf16", "2026-05"): ((1024, 1024, 32, 11.88),),
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
    ThreadServer("achatbot-183", "openai/gpt-oss-20b", H100, "sglang", "mxfp4", "2025-08"): (
        (512, 1024, 4, 481.95),
        (512, 1024, 32, 2765.4),
    ),
    ThreadServer("inferencex-870-b200", R1, "B200-SXM", "sglang", "nvfp4", "2025-12", 8, 8): (
        *((922, 922, 4, 477.6), (922, 922, 8, 838.4), (922, 922, 16, 1354.4), (922, 922, 32, 2259.2)),
    ),
    ThreadServer("ml-energy", "Qwen/Qwen3-14B", H100, "vllm", "bf16", "2025-11"): (
        *((500, 620, 8, 627.4), (500, 622, 16, 1168.2), (500, 611, 32, 2023.2), (500, 617, 64, 3140.3)),
        *((500, 623, 96, 3774.8), (500, 614, 128, 4474.4), (500, 613, 192, 5309.1), (500, 625, 256, 5760.3)),
    ),
    ThreadServer("ml-energy", QWEN_235B, H100, "vllm", "fp8", "2025-11", 4, 4): (
        *((500, 855, 8, 223.8), (500, 871, 16, 420.7), (500, 889, 32, 731.6), (500, 863, 64, 1262.3)),
        *((500, 863, 96, 1752.5), (500, 863, 128, 2294.9), (500, 864, 192, 3015.6)),
    ),
    ThreadServer("ml-energy", QWEN_235B, H100, "vllm", "fp8", "2025-11", 8, 8): (
        (500, 873, 16, 577.8),
        (500, 879, 128, 2840.0),
    ),
}
"""Tokens a second."""

BURSTS: Final[dict[ThreadServer, tuple[int, int, int, float]]] = {
    ThreadServer("vllm-17788", QWEN_32B, "H100-NVL", "vllm", "bf16", "2025-05"): (1000, 217, 201, 653.61),
    ThreadServer("vllm-29217", QWEN_32B, "L40S", "vllm", "fp8", "2025-11"): (1000, 217, 190, 621.91),
    ThreadServer("vllm-23369", "openai/gpt-oss-20b", H100, "vllm", "mxfp4", "2025-08", 2): (
        *(1000, 215, 198, 5831.0),
    ),
    ThreadServer("vllm-23696", GPT_OSS, "B200-SXM", "vllm", "mxfp4", "2025-08", 8): (1000, 215, 197, 7404.72),
    ThreadServer("trtllm-6294", LLAMA_8B, H100, "trtllm", "fp8", "2025-07"): (30_000, 128, 28, 6957.3),
}
"""Requests that are all there at once, tokens in and out, and tokens a second."""

ONE_SEQUENCE: Final = (
    (QWEN_32B, 1, 20.72),
    (QWEN_30B, 1, 137.18),
    (QWEN_4B, 1, 133.13),
    (QWEN_30B, 6144, 490.1),
)
"""Model, tokens in, and tokens in and out a second, on one H20."""

SHAREGPT: Final = {"length_variation": 1.0}

STATED: Final[dict[str, dict[str, object]]] = {
    "ml-energy": {"iterations_ahead": 1, "sampling": "top-p"},
    "vllm-30326": {"iterations_ahead": 1},
    "vllm-50040": {"kv": "fp8"},
    "vllm-17788": SHAREGPT | {"max_sequences": 32},
    "vllm-29217": SHAREGPT,
    "vllm-23369": SHAREGPT,
    "vllm-23696": SHAREGPT,
}
"""Settings that a command states, by set."""


def thread_rows() -> list[dict[str, Any]]:
    """Cases of `plan predict` with `set`, `page`, `quantity` and `measured`."""
    found = [
        server.case | STATED.get(server.name, {}) | loop_case(run, quantity)
        for quantity, servers in (("tpot_ms", TPOTS), ("tokens_per_s", RATES))
        for server, runs in servers.items()
        for run in runs
    ]
    found += [
        ThreadServer("lambda-0.5.4", model, hardware, "vllm", weights, "2024-08", tp).case
        | SHAREGPT
        | offline_case(320, 215, 198, rate)
        for (hardware, model, weights), rates in AT_ONCE.items()
        for tp, rate in rates.items()
    ]
    found += [
        ThreadServer("lambda-0.6.0", model, H100, "vllm", weights, "2024-09", tp).case
        | SHAREGPT
        | {"max_sequences": 256}
        | offline_case(count, 215, 198, rate)
        for model, weights, tp, count, rate in BATCH_OF_256
    ]
    found += [
        server.case | STATED.get(server.name, {}) | offline_case(*burst) for server, burst in BURSTS.items()
    ]
    found += [
        ThreadServer("qwen-speed", model, "H20-SXM", "sglang", "bf16", "2025-05").case
        | loop_case((prompt, 2048, 1, 1e3 * (prompt + 2048) / rate), "latency_ms")
        for model, prompt, rate in ONE_SEQUENCE
    ]
    qwen = ThreadServer("vllm-44220", "Qwen/Qwen3-30B-A3B", H200, "vllm", "bf16", "2026-05", 2).case
    in_process = {"front_end_ms": 0.0, "front_end_token_us": 0.0}
    found.append(qwen | in_process | offline_case(1000, 1024, 128, 6424.66))
    amd = ThreadServer("sglang-3237", "deepseek-ai/DeepSeek-V3", "MI300X", "sglang", "fp8", "2025-02", 8).case
    step = {"mode": "decode", "input_tokens": 2176, "output_tokens": 0, "batch": 4}
    found.append(amd | step | {"quantity": "tpot_ms", "measured": 38.5})
    return found


def loop_case(run: Thread, quantity: str) -> dict[str, Any]:
    """Columns of `plan predict` for a closed loop, and what was measured of it."""
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
