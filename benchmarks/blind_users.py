"""Figures of users and of developers of frameworks, predicted before the model was changed with them in view.

Typed off on 28 November 2026, before vLLM's DeepGEMM experts and the versions of its sampler were priced;
none was left out after its error was seen.

Users' own:

* `recipes-112`: vllm-project/recipes pull request 112 (November 2025), MiniMax-M2 under vLLM 0.11 as it is
  and with `VLLM_USE_DEEP_GEMM=0`, which is priced as the version before. Lengths follow from its rates; four
  H100 are those of the same author's pull request 120.
* `vllm-17852`: vllm-project/vllm issue 17852 (May 2025), Qwen3-32B on two H20. Assumed: one sequence.
* `sglang-6885`: sgl-project/sglang pull request 6885 (June 2025), DeepSeek-V3-0324 on eight H20, 200 requests
  of the mean lengths that the tool printed, before the change.
* `vllm-54742`: pull request 54742 (September 2026), Qwen3-30B-A3B on one H100 NVL, `vllm bench throughput`,
  experts by Triton.
* `treeru`: treeru.com, AWQ Quantization Speed Benchmark (26 February 2026), RTX PRO 6000, SGLang 0.5.8, one
  request. Assumed: 100 tokens in and 500 out. Models that the catalogue lacks are left out.
* `vllm-8244`: issue 8244 (September 2024), Llama-3.1-405B in FP8 on eight H100, 32 requests at once.
* `hf-397b`: huggingface.co, nvidia/Qwen3.5-397B-A17B-NVFP4, discussion 7 (March 2026), four RTX PRO 6000, one
  sequence, cache in FP8. Assumed: 100 tokens in and 1,000 out.
* `musgrave`: johnmusgrave.com, vLLM throughput-latency sweep on A100 (40 GB), vLLM 0.23, one client.
* `club-697`: noonghunna/club-3090 issue 697 (July 2026), Qwen3-4B in FP8 on one RTX 4090, one sequence.
  Assumed: 500 tokens in and out.

Developers', in pull requests that tune a kernel, with the change:

* `sglang-6939`: sgl-project/sglang pull request 6939 (June 2025), DeepSeek-V3-0324 on eight B200, before.
* `sglang-7687`: pull request 7687 (July 2025), DeepSeek-V3 on two hosts of eight H200.
* `sglang-10404`, `sglang-10467`: pull requests 10404 and 10467 (September 2025), Qwen3-Next-80B-A3B.
* `sglang-18195`: pull request 18195 (February 2026), Qwen3-Coder-Next-FP8, which has the decoder of
  Qwen3-Next, on two H100; median time between tokens.
* `sglang-28355`: pull request 28355 (June 2026), Qwen3.5-397B-A17B in FP8 on eight H100, experts by Triton;
  its tokens a second and user.
* `vllm-27578`: vllm-project/vllm pull request 27578 (October 2025), Qwen3-Next-80B-A3B on eight H20.
* `vllm-37340`: pull request 37340 (March 2026), Qwen3.5-35B-A3B-FP8 on one H200, 128 prompts of two tokens.
* `vllm-43232`: pull request 43232 (June 2026), Qwen3-235B-A22B in FP8 on four B200, cache in FP8.

`vllm bench serve` sends no temperature since January 2026 (vllm-project/vllm pull request 32723), so that the
server samples as the model's generation_config.json says; SGLang's bench_serving asks for temperature 0.
"""

from __future__ import annotations

from typing import Any, Final

from benchmarks.blind_threads import (
    H100,
    H200,
    LLAMA_8B,
    LLAMA_405B,
    QWEN_4B,
    QWEN_30B,
    QWEN_32B,
    Thread,
    ThreadServer,
    loop_case,
    offline_case,
)

H20, RTX_PRO = "H20-SXM", "RTX-PRO-6000-Server"
V3: Final = "deepseek-ai/DeepSeek-V3-0324"
NEXT: Final = "Qwen/Qwen3-Next-80B-A3B-Instruct"
QWEN_397B: Final = "Qwen/Qwen3.5-397B-A17B"
MINIMAX: Final = "MiniMaxAI/MiniMax-M2"

TPOTS: Final[dict[ThreadServer, tuple[Thread, ...]]] = {
    ThreadServer("recipes-112", MINIMAX, H100, "vllm", "fp8", "2025-11", 4): ((2048, 954, 10, 32.21),),
    ThreadServer("recipes-112", MINIMAX, H100, "vllm", "fp8", "2025-10", 4): ((2048, 945, 10, 16.39),),
    ThreadServer("vllm-17852", QWEN_32B, H20, "vllm", "bf16", "2025-05", 2): ((512, 512, 1, 32.0),),
    ThreadServer("vllm-17852", "Qwen/Qwen3-32B-FP8", H20, "vllm", "fp8", "2025-05", 2): (
        (512, 512, 1, 32.0),
    ),
    ThreadServer("vllm-17852", QWEN_32B, H20, "sglang", "bf16", "2025-05", 2): ((512, 512, 1, 30.0),),
    ThreadServer("vllm-17852", "Qwen/Qwen3-32B-FP8", H20, "sglang", "fp8", "2025-05", 2): (
        (512, 512, 1, 16.0),
    ),
    ThreadServer("musgrave", LLAMA_8B, "A100-SXM-40GB", "vllm", "bf16", "2026-06"): (
        (1024, 128, 1, 1e3 / 75),
    ),
    ThreadServer("club-697", QWEN_4B, "RTX-4090", "vllm", "fp8", "2026-07"): ((500, 500, 1, 1e3 / 138),),
    ThreadServer("hf-397b", QWEN_397B, RTX_PRO, "vllm", "fp4", "2026-03", 4): ((100, 1000, 1, 1e3 / 50.5),),
    **{
        ThreadServer("treeru", model, RTX_PRO, "sglang", weights, "2026-02"): ((100, 500, 1, 1e3 / rate),)
        for model, weights, rate in (
            (QWEN_4B, "int4", 391.2),
            (QWEN_4B, "bf16", 208.1),
            ("Qwen/Qwen3-8B", "int4", 208.0),
            ("Qwen/Qwen3-8B", "bf16", 90.8),
            ("Qwen/Qwen3-14B", "int4", 136.1),
            ("Qwen/Qwen3-14B", "bf16", 53.2),
            (QWEN_32B, "int4", 70.2),
            (QWEN_32B, "bf16", 23.9),
            ("Qwen/Qwen2.5-32B", "bf16", 24.0),
            (QWEN_30B, "bf16", 168.9),
        )
    },
    ThreadServer("sglang-18195", NEXT, H100, "sglang", "fp8", "2026-02", 2): ((506, 524, 8, 8.25),),
    ThreadServer("sglang-28355", QWEN_397B, H100, "sglang", "fp8", "2026-06", 8, 8): tuple(
        (8192, 1024, clients, 1e3 / rate)
        for clients, rate in ((16, 73.86), (32, 53.92), (64, 37.68), (128, 24.45))
    ),
}
"""[ms]"""

RATES: Final[dict[ThreadServer, tuple[Thread, ...]]] = {
    ThreadServer("sglang-6885", V3, H20, "sglang", "fp8", "2025-06", 8): ((515, 268, 8, 53_590 / 202.64),),
    ThreadServer("sglang-6939", V3, "B200-SXM", "sglang", "fp8", "2025-06", 8): ((1000, 1000, 16, 578.37),),
    ThreadServer("sglang-7687", V3, H200, "sglang", "fp8", "2025-07", 16): ((1024, 512, 8, 102_400 / 409.6),),
    ThreadServer("sglang-10404", NEXT, H200, "sglang", "bf16", "2025-09", 2): ((1000, 2000, 8, 937.94),),
    ThreadServer("sglang-10404", NEXT, H200, "sglang", "bf16", "2025-09", 4): ((1000, 2000, 8, 1137.94),),
    ThreadServer("sglang-10404", NEXT, H200, "sglang", "bf16", "2025-09", 8): ((1000, 2000, 8, 1239.43),),
    ThreadServer("sglang-10467", NEXT, H20, "sglang", "bf16", "2025-09", 4): ((1000, 2000, 32, 2233.44),),
    ThreadServer("sglang-10467", NEXT, H20, "sglang", "bf16", "2025-09", 8): ((1000, 2000, 32, 2704.56),),
    ThreadServer("vllm-43232", "Qwen/Qwen3-235B-A22B-FP8", "B200-SXM", "vllm", "fp8", "2026-06", 4): (
        *((30_000, 1000, 64, 847.07),),
    ),
}
"""Tokens a second."""

BURSTS: Final = (
    (ThreadServer("vllm-54742", QWEN_30B, "H100-NVL", "vllm", "bf16", "2026-09"), (256, 4096, 8, 9.16 * 8)),
    (
        ThreadServer("vllm-54742", QWEN_30B, "H100-NVL", "vllm", "bf16", "2026-09"),
        (256, 128, 1024, 6.35 * 1024),
    ),
    (
        ThreadServer("vllm-54742", QWEN_30B, "H100-NVL", "vllm", "bf16", "2026-09"),
        (64, 1024, 128, 15.14 * 128),
    ),
    (ThreadServer("vllm-8244", LLAMA_405B, H100, "vllm", "fp8", "2024-09", 8), (32, 128, 512, 335.0)),
    (ThreadServer("vllm-27578", NEXT, H20, "vllm", "bf16", "2025-10", 8, 8), (32, 2048, 972, 2234.03)),
    (
        ThreadServer("vllm-37340", "Qwen/Qwen3.5-35B-A3B-FP8", H200, "vllm", "fp8", "2026-03"),
        (128, 2, 512, 128 * 512 / 9.44),
    ),
)
"""Requests that are all there at once, tokens in and out, and tokens a second."""

_IN_PROCESS: Final = {"front_end_ms": 0.0, "front_end_token_us": 0.0}

STATED: Final[dict[str, dict[str, object]]] = {
    "vllm-54742": _IN_PROCESS,
    "vllm-8244": _IN_PROCESS,
    "vllm-37340": {"sampling": "top-p"},
    "vllm-43232": {"kv": "fp8", "sampling": "top-p"},
    "hf-397b": {"kv": "fp8"},
}
"""Settings that a command, or the tool it calls, states, by set."""


def user_rows() -> list[dict[str, Any]]:
    """Cases of `plan predict` with `set`, `page`, `quantity` and `measured`."""
    found = [
        server.case | STATED.get(server.name, {}) | loop_case(run, quantity)
        for quantity, servers in (("tpot_ms", TPOTS), ("tokens_per_s", RATES))
        for server, runs in servers.items()
        for run in runs
    ]
    found += [server.case | STATED.get(server.name, {}) | offline_case(*burst) for server, burst in BURSTS]
    return found
