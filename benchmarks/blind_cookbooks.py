"""Figures of SGLang's and vLLM's guides, and of pull requests of InferenceX and of those that tune a kernel.

Typed off on 28 November 2026 before any of them was predicted; none was left out after its error was seen.
Not one is in the tables of measurements: InferenceX's of DeepSeek-R1 on H200 and B300 of May 2026 are, and
were left out for it.

* `qwen36-cookbook`: sgl-project/sglang@4b7077b, docs_new/src/snippets/configs/qwen/qwen3.6-benchmarks.jsx and
  qwen3.6.jsx, one accelerator, 1,024 clients, 8,192 tokens in and 1,024 out, SGLang 0.5.15 (B200, July 2026)
  and 0.5.16 (August). Its cells without drafted tokens ("high-throughput"); 4,096 clients give the same. They
  were 2 to 194 % too fast before recurrent states had slots (`perfmodel/steps/state_slots.py`), and their
  command's `--mem-fraction-static 0.8` (BF16 and FP8) was read then, so that they are "used"; sizes of slots
  are SGLang's own, none is fitted.
* `inferencex-1544`: SemiAnalysisAI/InferenceX pull request 1544 (May 2026), Qwen3.5-397B-A17B in FP8 on eight
  H100, SGLang, medians; cache in FP8 and 256 sequences at most (benchmarks/single_node/fixed_seq_len).
* `inferencex-1544-polled`: its runs of June. Experts are spread from 16 clients on (pull request 2968 names
  the layouts). They were up to 64 % too slow before `POLLED` was put in: the script that starts the servers
  sets `--scheduler-recv-interval`, which was noticed when their errors were seen, so that they are "used".
* `inferencex-2965`: pull request 2965, the same model on eight H200, SGLang 0.5.14 (July 2026) and 0.5.19
  (September), medians.
* `inferencex-3311`: pull request 3311, the same model in FP4 on MI355X, SGLang 0.5.19 (September 2026).
* `inferencex-3318`: pull request 3318, DeepSeek-R1-0528 on eight MI325X, SGLang 0.5.19 (September 2026).
* `inferencex-832`: pull request 832 (March 2026), MiniMax-M2.5 on H100, vLLM 0.16.
* `inferencex-828-wide`: issue 828, gpt-oss-120b on H100 in the layouts and lengths that `inferencex-828` of
  `benchmarks/blind_threads.py` does not have.
* `recipes-nano`: vllm-project/recipes@8959cf6, NVIDIA/Nemotron-3-Nano-30B-A3B.md (January 2026), one H200.
* `recipes-476`: pull request 476 (May 2026), Ministral-3-Instruct in FP8 on one MI300X.
* `vllm-17530`, `vllm-17535`: vllm-project/vllm pull requests 17530 and 17535 (May 2025), Qwen3-30B-A3B and
  Qwen3-235B-A22B in FP8 on one and four MI300X, 200 prompts at once, experts by Triton, with the change.
* `sglang-7631`: sgl-project/sglang pull request 7631 (June 2025), DeepSeek-V3-0324 on eight H20, with it.

InferenceX's lengths are 0.9 of the nominal ones.
"""

from __future__ import annotations

from typing import Any, Final

from benchmarks.blind_threads import (
    GPT_OSS,
    H100,
    H200,
    QWEN_30B,
    QWEN_235B,
    Thread,
    ThreadServer,
    loop_case,
    offline_case,
)
from benchmarks.blind_users import H20, QWEN_397B, V3

DENSE_36, MIXTURE_36 = "Qwen/Qwen3.6-27B", "Qwen/Qwen3.6-35B-A3B"
LONG: Final = (8192, 1024)

TOTAL_RATES: Final[dict[tuple[str, str], tuple[tuple[str, str, float], ...]]] = {
    ("H200-SXM", "2026-08"): (
        *((MIXTURE_36, "bf16", 18_708), (MIXTURE_36, "fp8", 30_201)),
        *((DENSE_36, "bf16", 6322), (DENSE_36, "fp8", 9810)),
    ),
    ("B200-SXM", "2026-07"): (
        *((MIXTURE_36, "bf16", 38_134), (MIXTURE_36, "fp8", 46_963), (MIXTURE_36, "fp4", 47_846)),
        *((DENSE_36, "bf16", 12_154), (DENSE_36, "fp8", 16_229), (DENSE_36, "fp4", 7048)),
    ),
    ("B300-SXM", "2026-08"): (
        *((MIXTURE_36, "bf16", 49_190), (MIXTURE_36, "fp8", 54_080), (MIXTURE_36, "fp4", 51_550)),
        *((DENSE_36, "bf16", 14_272), (DENSE_36, "fp8", 18_327), (DENSE_36, "fp4", 7666)),
    ),
}
"""Model, weights and tokens in and out a second, by part and month of `qwen36-cookbook`."""


def nominal(prompt: int, output: int, *runs: tuple[int, float]) -> tuple[Thread, ...]:
    """Loops of InferenceX: clients and TPOT."""
    return tuple((round(0.9 * prompt), round(0.9 * output), clients, tpot) for clients, tpot in runs)


def users(prompt: int, output: int, *runs: tuple[int, float]) -> tuple[Thread, ...]:
    """Loops of InferenceX: clients and tokens a second and user."""
    return nominal(prompt, output, *((clients, 1e3 / rate) for clients, rate in runs))


TPOTS: Final[dict[ThreadServer, tuple[Thread, ...]]] = {
    ThreadServer("inferencex-1544", QWEN_397B, H100, "sglang", "fp8", "2026-05", 8, 8): users(
        1024, 1024, (4, 106.3), (8, 83.0), (16, 62.7), (32, 44.9)
    ),
    ThreadServer("inferencex-1544-polled", QWEN_397B, H100, "sglang", "fp8", "2026-06", 8): users(
        1024, 1024, (1, 165.7), (2, 144.7), (4, 119.9), (8, 108.1)
    ),
    ThreadServer("inferencex-1544-polled", QWEN_397B, H100, "sglang", "fp8", "2026-06", 8, 8): users(
        1024, 1024, (16, 66.5), (32, 64.6), (64, 52.2), (128, 39.2), (256, 28.3)
    ),
    ThreadServer("inferencex-2965", QWEN_397B, H200, "sglang", "fp8", "2026-07", 8, 8): nominal(
        8192, 1024, (4, 8.68)
    ),
    ThreadServer("inferencex-2965", QWEN_397B, H200, "sglang", "fp8", "2026-09", 8, 8): nominal(
        8192, 1024, (4, 7.87)
    ),
    ThreadServer("inferencex-3311", QWEN_397B, "MI355X", "sglang", "fp4", "2026-09", 2): nominal(
        8192, 1024, (4, 8.42), (8, 10.38), (16, 14.57), (32, 22.38), (64, 33.16), (128, 54.06)
    ),
    ThreadServer("inferencex-3311", QWEN_397B, "MI355X", "sglang", "fp4", "2026-09", 4): nominal(
        8192, 1024, (4, 7.86), (8, 9.11), (16, 11.43)
    ),
    ThreadServer(
        "inferencex-3318", "deepseek-ai/DeepSeek-R1-0528", "MI325X", "sglang", "fp8", "2026-09", 8
    ): nominal(8192, 1024, (4, 18.53), (8, 21.56), (16, 26.75), (32, 39.45), (64, 66.55)),
    ThreadServer("inferencex-832", "MiniMaxAI/MiniMax-M2.5", H100, "vllm", "fp8", "2026-03", 8, 8): nominal(
        1024, 1024, (4, 8.96)
    ),
    ThreadServer("inferencex-832", "MiniMaxAI/MiniMax-M2.5", H100, "vllm", "fp8", "2026-03", 4, 4): nominal(
        1024, 1024, (4, 13.34)
    ),
    ThreadServer("inferencex-828-wide", GPT_OSS, H100, "vllm", "mxfp4", "2026-02", 8): nominal(
        1024, 8192, (4, 3.68), (8, 4.0)
    ),
    ThreadServer("inferencex-828-wide", GPT_OSS, H100, "vllm", "mxfp4", "2026-02", 4): nominal(
        1024, 1024, (64, 9.89)
    ),
    ThreadServer("inferencex-828-wide", GPT_OSS, H100, "vllm", "mxfp4", "2026-02", 2): nominal(
        1024, 1024, (64, 15.21)
    ),
    **{
        ThreadServer(
            "recipes-476", f"mistralai/Ministral-3-{size}-Instruct-2512", "MI300X", "vllm", "fp8", "2026-05"
        ): ((1024, 1024, 32, tpot),)
        for size, tpot in (("3B", 6.42), ("8B", 9.48), ("14B", 12.22))
    },
}
"""[ms]"""

RATES: Final[dict[ThreadServer, tuple[Thread, ...]]] = {
    ThreadServer(
        "recipes-nano", "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-FP8", H200, "vllm", "fp8", "2026-01"
    ): ((1024, 1024, 1024, 15_828.3),),
    ThreadServer("sglang-7631", V3, H20, "sglang", "fp8", "2025-06", 8): ((515, 268, 8, 328.08),),
    **{
        ThreadServer("qwen36-cookbook", model, part, "sglang", weights, month): (
            (*LONG, 1024, total * LONG[1] / sum(LONG)),
        )
        for (part, month), figures in TOTAL_RATES.items()
        for model, weights, total in figures
    },
}
"""Tokens a second."""

AT_ONCE: Final[dict[ThreadServer, tuple[tuple[int, int, float], ...]]] = {
    ThreadServer("vllm-17530", QWEN_30B, "MI300X", "vllm", "fp8", "2025-05"): (
        *((5000, 1000, 1924.98), (1000, 2000, 4336.96), (10_000, 500, 678.94)),
    ),
    ThreadServer("vllm-17535", QWEN_235B, "MI300X", "vllm", "fp8", "2025-05", 4): (
        *((5000, 1000, 1032.81), (1000, 2000, 2358.5)),
    ),
}
"""Tokens in and out of 200 requests, and tokens a second."""

_IN_PROCESS: Final = {"front_end_ms": 0.0, "front_end_token_us": 0.0, "kv": "fp8"}

WITHOUT_PREFIXES: Final[dict[str, object]] = {"prefix_cache": 0, "memory_ratio": 0.8}
"""`--disable-radix-cache --mem-fraction-static 0.8` of InferenceX's scripts of Qwen3.5 (qwen3.5_fp8_h100.sh,
qwen3.5_fp8_h200.sh, qwen3.5_fp4_mi355x.sh)."""

STATED: Final[dict[str, dict[str, object]]] = {
    "inferencex-1544": {"kv": "fp8", "max_sequences": 256, **WITHOUT_PREFIXES},
    "inferencex-1544-polled": {"kv": "fp8", "max_sequences": 256, **WITHOUT_PREFIXES},
    "inferencex-2965": {"kv": "fp8", **WITHOUT_PREFIXES},
    "inferencex-3311": {"max_sequences": 512, **WITHOUT_PREFIXES},
    "inferencex-3318": {"kv": "fp8"},
    "recipes-nano": {"kv": "fp8", "iterations_ahead": 1},
    "vllm-17530": _IN_PROCESS,
    "vllm-17535": _IN_PROCESS,
}
"""Settings that a command, or the tool it calls, states, by set."""


SETS_CORRECTED: Final = ("inferencex-1544-polled", "qwen36-cookbook")
"""Sets that were in view when their inputs were corrected."""

POLLED_SET: Final = SETS_CORRECTED[0]

POLLED: Final = {1: 2, 2: 2, 4: 2, 8: 60, 16: 30, 32: 200, 64: 600, 128: 920, 256: 920}
"""Iterations from one look at new requests to the next, by clients, of `POLLED_SET`. Source:
benchmarks/single_node/fixed_seq_len/qwen3.5_fp8_h100.sh of InferenceX; intervals above 1,000 less the 1,000
that SGLang's SchedulerRecvSkipper counts for an iteration of prompts."""


def cookbook_rows() -> list[dict[str, Any]]:
    """Cases of `plan predict` with `set`, `page`, `quantity` and `measured`."""
    found = [
        server.case | STATED.get(server.name, {}) | loop_case(run, quantity) | _flags(server, run)
        for quantity, servers in (("tpot_ms", TPOTS), ("tokens_per_s", RATES))
        for server, runs in servers.items()
        for run in runs
    ]
    found += [
        server.case | STATED[server.name] | offline_case(200, *run)
        for server, runs in AT_ONCE.items()
        for run in runs
    ]
    return found


def _flags(server: ThreadServer, run: Thread) -> dict[str, object]:
    """Options that differ between the runs of a set."""
    if server.name == POLLED_SET:
        return {"polled_iterations": POLLED[run[2]]}
    if server.name == "qwen36-cookbook" and server.weights != "fp4":
        return {"memory_ratio": 0.8}
    return {}
