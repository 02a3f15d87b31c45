"""Figures of InferenceX's articles, of vendors' guides and of pull requests, of software since July 2025.

Typed off on 29 November 2026, all of them before any was predicted, and none left out after its error was
seen: 15 / 45 % (124 figures). Since then what ranks exchange for the norms of MiniMax-M2 is priced, with
these and other rows of it in view: they are "used" (`benchmarks/blind_used.py`). None is in the tables of
measurements, which end for these models in April 2026. Runs with drafted tokens are left out, because pages
do not state how many were accepted, and so are pages whose hardware, layout or lengths are not stated; what
was assumed stands here.

InferenceX (SemiAnalysisAI/InferenceX-app, packages/app/content/blog; 8,192 tokens in and 1,024 out):

* `inferencex-m2.5`: b200-minimax-m2-5-vllm-nvfp4-vs-h100-fp8-perf-per-dollar.mdx, runs of 22 May 2026, the
  cache in FP8 on B200 ("the KV cache stays FP8"). Assumed: experts in groups on H100, where 1,536 columns of
  an expert do not split into eight blocks of 128, in one group elsewhere.
* `inferencex-k2.5`: b200-nvfp4-vs-h200-int4-kimi-k2-vllm-perf-per-dollar.mdx, 19 May 2026, vLLM 0.21.
* `inferencex-k2.5-amd`: zh/mi355x-kimi-k2-5-vllm-aiter-7x-speedup.mdx, 26 March 2026, vLLM 0.18. The runs of
  1 March, whose defect the article is about, are left out unpredicted.
* `inferencex-qwen3.5-amd`: mi355x-qwen3-5-sglang-v0-5-12-up-to-17x.mdx, 20 February to 19 May 2026. Assumed:
  no prefix cache, and 0.8 of the memory, as the script of the same model in FP4 has it. The kernels of norms
  that its text names are priced since (`perfmodel/steps/software_versions.py`), so that it is "used".
* `inferencex-glm5`: mi355x-glm5-fp8-sglang-40-cheaper-than-b200.mdx, 20 May 2026, cache in FP8.

Guides and pages, random prompts of the stated lengths:

* `lambda-2026`: lambda.ai/inference-models, minimaxai/minimax-m2.5 and qwen/qwen3.5-397b-a17b, SGLang,
  February 2026, 32 clients. Assumed: TP over all accelerators; "Blackwell GPU" is B200. Its GLM-5, GLM-5.1
  and Kimi-K2.6 get more tokens a second than their time between tokens allows one by one: they draft.
* `vultr-peaks`: docs.vultr.com/inference-cookbook/cuda/benchmarks/results-overview (11 March 2026), eight
  B200, vLLM 0.16, of MiniMax-M2.5 0.12: the highest rates of a sweep, at the clients where it saturates.
* `recipes-k2`: vllm-project/recipes@8959cf6, moonshotai/Kimi-K2.md (July 2025), TP8 and PP2, one sequence at
  a time on sixteen H800. Assumed: the same layout on sixteen H200, 16 prompts at once.
* `recipes-k2-thinking`: models/moonshotai/Kimi-K2-Thinking.yaml (November 2025), 1,000 prompts; 389 tokens
  out follow from its rates.
* `recipes-qwen2.5-vl`: Qwen/Qwen2.5-VL.md (August 2025), 128 prompts without images on four A100; 7B as four
  engines of 32 prompts each.
* `recipes-431`: pull request 431 (April 2026), Qwen3Guard-8B, which has the decoder of Qwen3-8B.
* `glm5.2-cookbook`: sgl-project/sglang, docs_new/src/snippets/configs/zai-org/glm-5.2-benchmarks.jsx@00081a0
  and glm-5.2.jsx@0415ca3 (0.5.13, June 2026), attention-DP and DeepEP, 1,024 clients. Its requests are all
  alike (`--random-range-ratio 1.0`), and the cache is in BF16 on Hopper alone, which was read when their
  errors were seen (1.7 to 2.4 times too slow): "used" since loops of such requests are priced.
* `k2.6-cookbook`: moonshotai/kimi-k2.6-benchmarks.jsx@0297fc6 (0.5.9, April 2026), four MI350X, cache in FP8.
* `millstone`: millstoneai.com/inference-benchmark, gpt-oss-120b (30 January 2026) and Qwen3-Coder-Next (9
  February 2026), which has the decoder of Qwen3-Next, vLLM, 1,024 tokens out. Assumed of gpt-oss: the highest
  rate is that of most clients with 1,024 tokens in, as the other page states.
* `gb300-vllm`: blog.vllm.ai/2026/02/13/gb300-deepseek.html, vLLM 0.14.1, prompts alone on two GB300.

Pull requests:

* `sglang-9770`: sgl-project/sglang pull request 9770 (August 2025), GLM-4.5-Air in FP8 on four B200, requests
  in flight by its rate and times.
* `vllm-23695`: vllm-project/vllm pull request 23695 (August 2025), the same on two B200.
* `vllm-28992`: pull request 28992 (November 2025), DeepSeek-V3.1 on eight H200, experts by Triton, before it.
* `vllm-27323`: pull request 27323 (October 2025), GLM-4.6 in BF16 on eight MI300X, with the change.
* `aiter-4629`: ROCm/aiter pull request 4629 (August 2026), GLM-5.2 in MXFP4 on four MI355X under vLLM.
"""

from __future__ import annotations

from typing import Any, Final

from benchmarks.blind_cookbooks import LONG, WITHOUT_PREFIXES, nominal, users
from benchmarks.blind_threads import (
    GPT_OSS,
    H100,
    H200,
    NANO,
    Thread,
    ThreadServer,
    loop_case,
    offline_case,
)
from benchmarks.blind_users import NEXT, QWEN_397B, RTX_PRO, V3

B200: Final = "B200-SXM"
M25, K25, GLM5, GLM52 = "MiniMaxAI/MiniMax-M2.5", "moonshotai/Kimi-K2.5", "zai-org/GLM-5", "zai-org/GLM-5.2"
GLM_AIR: Final = "zai-org/GLM-4.5-Air"
K2_THINKING: Final = "moonshotai/Kimi-K2-Thinking"


def _m25(hardware: str, weights: str, tp: int, ep: int = 1) -> ThreadServer:
    return ThreadServer("inferencex-m2.5", M25, hardware, "vllm", weights, "2026-05", tp, ep)


def _k25(hardware: str, weights: str, tp: int) -> ThreadServer:
    return ThreadServer("inferencex-k2.5", K25, hardware, "vllm", weights, "2026-05", tp)


def _k25_amd(tp: int) -> ThreadServer:
    return ThreadServer("inferencex-k2.5-amd", K25, "MI355X", "vllm", "fp4", "2026-03", tp)


def _qwen_amd(month: str, tp: int) -> ThreadServer:
    return ThreadServer("inferencex-qwen3.5-amd", QWEN_397B, "MI355X", "sglang", "fp8", month, tp)


def _glm5(hardware: str, tp: int) -> ThreadServer:
    return ThreadServer("inferencex-glm5", GLM5, hardware, "sglang", "fp8", "2026-05", tp)


TPOTS: Final[dict[ThreadServer, tuple[Thread, ...]]] = {
    _m25(H100, "fp8", 8, 8): nominal(
        *LONG, (4, 9.01), (8, 11.15), (16, 14.47), (32, 20.12), (64, 30.31), (128, 47.19)
    ),
    _m25(B200, "fp8", 2): nominal(
        *LONG,
        *(
            (4, 8.9),
            (8, 10.84),
            (16, 14.7),
            (32, 21.1),
            (64, 30.91),
            (128, 41.82),
            (256, 41.81),
            (512, 41.93),
        ),
    ),
    _m25(B200, "fp8", 4): nominal(*LONG, (256, 50.85), (512, 78.68)),
    _m25(B200, "fp4", 2): nominal(*LONG, (128, 34.7), (256, 48.51), (512, 48.47)),
    _m25(B200, "fp4", 1): nominal(*LONG, (4, 7.62), (8, 10.22), (16, 14.54), (32, 22.65), (256, 22.58)),
    _m25(B200, "fp4", 4): nominal(*LONG, (4, 6.03), (8, 6.9)),
    _m25(B200, "fp4", 8): nominal(*LONG, (4, 5.55)),
    _k25(H200, "int4", 8): nominal(*LONG, (4, 10.97), (8, 14.23), (16, 21.44), (32, 34.65), (64, 59.98)),
    _k25(B200, "int4", 8): nominal(*LONG, (4, 9.58), (8, 12.33), (16, 16.89), (32, 24.7), (64, 38.45)),
    _k25(B200, "fp4", 8): nominal(*LONG, (4, 7.97)),
    _k25(B200, "fp4", 4): nominal(*LONG, (4, 9.0), (8, 11.03), (16, 14.84), (32, 21.35), (64, 31.07)),
    _k25_amd(8): users(*LONG, (4, 78.9), (8, 60.8), (16, 50.5), (32, 36.4), (64, 23.3)),
    _k25_amd(4): users(*LONG, (4, 76.2), (64, 19.0)),
    _qwen_amd("2026-02", 8): nominal(*LONG, (4, 24.47), (8, 26.55), (16, 28.19), (32, 35.11), (64, 52.03)),
    _qwen_amd("2026-04", 2): nominal(*LONG, (4, 15.65), (8, 19.61), (16, 26.51), (32, 38.15)),
    _qwen_amd("2026-04", 4): nominal(*LONG, (32, 25.94), (64, 40.25), (128, 65.01), (256, 108.64)),
    _qwen_amd("2026-05", 2): nominal(*LONG, (4, 13.29), (8, 16.76), (16, 21.4), (32, 31.34)),
    _qwen_amd("2026-05", 4): nominal(*LONG, (32, 21.36), (64, 33.53), (128, 55.27), (256, 86.53)),
    _glm5(B200, 8): nominal(
        *LONG, (4, 18.43), (8, 21.71), (16, 27.28), (32, 36.4), (64, 54.28), (128, 84.23), (256, 93.27)
    ),
    _glm5("MI355X", 4): nominal(
        *LONG, (4, 23.79), (8, 28.83), (16, 38.67), (32, 53.86), (64, 84.56), (128, 136.36), (256, 149.45)
    ),
    ThreadServer("recipes-431", "Qwen/Qwen3-8B", "MI300X", "vllm", "bf16", "2026-04"): (
        (1024, 1024, 32, 9.42),
    ),
    ThreadServer("k2.6-cookbook", K25, "MI350X", "sglang", "int4", "2026-04", 4): (
        (1000, 1000, 1, 35.61),
        (1000, 1000, 16, 191.04),
    ),
    ThreadServer("millstone", NEXT, H200, "vllm", "fp8", "2026-02"): ((1024, 1024, 1, 1e3 / 210.8),),
    ThreadServer("recipes-k2", "moonshotai/Kimi-K2-Instruct", "H800-SXM", "vllm", "fp8", "2025-07", 8): (
        (1000, 512, 1, 30.78),
    ),
    ThreadServer("sglang-9770", GLM_AIR, B200, "sglang", "fp8", "2025-08", 4): ((3500, 1500, 206, 34.1),),
    ThreadServer("vllm-23695", GLM_AIR, B200, "vllm", "fp8", "2025-08", 2): ((3500, 1500, 169, 54.54),),
}
"""[ms]"""

RATES: Final[dict[ThreadServer, tuple[Thread, ...]]] = {
    ThreadServer("lambda-2026", M25, H100, "sglang", "fp8", "2026-02", 4): ((*LONG, 32, 849),),
    ThreadServer("lambda-2026", M25, B200, "sglang", "fp8", "2026-02", 2): ((*LONG, 32, 896),),
    ThreadServer("lambda-2026", QWEN_397B, B200, "sglang", "bf16", "2026-02", 8): ((*LONG, 32, 1232),),
    ThreadServer("vultr-peaks", M25, B200, "vllm", "fp8", "2025-12", 4): ((2048, 512, 512, 8838),),
    ThreadServer("vultr-peaks", V3, B200, "vllm", "fp8", "2026-02", 8): ((2048, 512, 512, 4370),),
    ThreadServer("vultr-peaks", GLM5, B200, "vllm", "fp8", "2026-02", 8): ((2048, 512, 128, 2132),),
    ThreadServer("vultr-peaks", NANO, B200, "vllm", "fp8", "2026-02", 2): ((2048, 512, 512, 18_829),),
    ThreadServer("vultr-peaks", NANO, B200, "vllm", "fp4", "2026-02"): ((2048, 512, 512, 15_575),),
    ThreadServer("millstone", GPT_OSS, H100, "vllm", "mxfp4", "2026-01"): ((1024, 1024, 4, 511),),
    ThreadServer("millstone", GPT_OSS, H200, "vllm", "mxfp4", "2026-01"): ((1024, 1024, 10, 849),),
    ThreadServer("millstone", GPT_OSS, RTX_PRO, "vllm", "mxfp4", "2026-01"): ((1024, 1024, 4, 361),),
    ThreadServer("millstone", GPT_OSS, RTX_PRO, "vllm", "mxfp4", "2026-01", 2): ((1024, 1024, 6, 664),),
    ThreadServer("millstone", NEXT, H200, "vllm", "fp8", "2026-02"): ((1024, 1024, 10, 852.6),),
    ThreadServer("vllm-28992", V3, H200, "vllm", "fp8", "2025-10", 8): ((1, 100, 16, 16_000 / 23.38),),
    ThreadServer("vllm-27323", "zai-org/GLM-4.6", "MI300X", "vllm", "bf16", "2025-10", 8): (
        (1024, 128, 64, 936.9),
    ),
    ThreadServer("aiter-4629", GLM52, "MI355X", "vllm", "fp4", "2026-08", 4): (
        *((1024, 1024, 4, 347.0), (1024, 1024, 8, 608.5), (1024, 1024, 16, 961.2), (1024, 1024, 32, 1501.8)),
        *((1024, 1024, 64, 2292.5), (1024, 1024, 128, 3430.9), (1024, 1024, 256, 4940.7)),
        (8192, 1024, 4, 316.2),
    ),
}
"""Tokens a second."""

AT_ONCE: Final = (
    (
        ThreadServer("recipes-k2", "moonshotai/Kimi-K2-Instruct", H200, "vllm", "fp8", "2025-07", 8),
        (16, 8000, 1000, 254.99),
    ),
    (
        ThreadServer("recipes-k2-thinking", K2_THINKING, H200, "vllm", "int4", "2025-11", 8),
        (1000, 8000, 389, 485.78),
    ),
    (
        ThreadServer("recipes-qwen2.5-vl", "Qwen/Qwen2.5-7B", "A100-SXM-80GB", "vllm", "bf16", "2025-08"),
        (32, 7997, 913, 2581.01 / 4),
    ),
    (
        ThreadServer("recipes-qwen2.5-vl", "Qwen/Qwen2.5-72B", "A100-SXM-80GB", "vllm", "bf16", "2025-08", 4),
        (128, 7997, 893, 146.84),
    ),
    (
        ThreadServer("gb300-vllm", "deepseek-ai/DeepSeek-V3.2", "GB300-NVL72", "vllm", "fp4", "2026-01", 2),
        (256, 2048, 1, 2 * 7360 / 2048),
    ),
    (
        ThreadServer(
            "gb300-vllm", "deepseek-ai/DeepSeek-R1-0528", "GB300-NVL72", "vllm", "fp4", "2026-01", 2, 2
        ),
        (256, 2048, 1, 2 * 22_476 / 2048),
    ),
)
"""Requests that are all there at once, tokens in and out, and tokens a second."""

SATURATED: Final = (
    (H200, 8, "2026-06", 8 * 184),
    (B200, 8, "2026-06", 8 * 449),
    ("GB300-NVL72", 4, "2026-06", 4 * 641),
)
"""Hardware, accelerators, month and tokens out a second of `glm5.2-cookbook`."""

SETS_EXPLAINED: Final = ("inferencex-qwen3.5-amd", "glm5.2-cookbook")
"""Sets that were in view when what their pages say of older kernels, and of requests that are all alike, was
priced."""

_FP8_CACHE: Final[dict[str, object]] = {"kv": "fp8"}

STATED: Final[dict[str, dict[str, object]]] = {
    "inferencex-qwen3.5-amd": WITHOUT_PREFIXES,
    "inferencex-glm5": _FP8_CACHE,
    "k2.6-cookbook": _FP8_CACHE,
    "recipes-k2": {"pp": 2},
}
"""Settings that a command or page states, by set."""

RUNNING_REQUESTS: Final = 256
"""`--max-running-requests` of `glm5.2-cookbook`, which its ranks share; that of GB300 sets none."""


def article_rows() -> list[dict[str, Any]]:
    """Cases of `plan predict` with `set`, `page`, `quantity` and `measured`."""
    found = [
        server.case | STATED.get(server.name, {}) | loop_case(run, quantity) | _flags(server)
        for quantity, servers in (("tpot_ms", TPOTS), ("tokens_per_s", RATES))
        for server, runs in servers.items()
        for run in runs
    ]
    found += [server.case | STATED.get(server.name, {}) | offline_case(*burst) for server, burst in AT_ONCE]
    for hardware, ranks, month, rate in SATURATED:
        case = ThreadServer("glm5.2-cookbook", GLM52, hardware, "sglang", "fp8", month, 1, ranks).case
        limits = {} if hardware.startswith("GB300") else {"max_sequences": RUNNING_REQUESTS // ranks}
        found.append(
            case
            | {"dp": ranks, "memory_ratio": 0.85, "length_variation": 0.0}
            | ({} if hardware == H200 else _FP8_CACHE)
            | limits
            | loop_case((*LONG, 1024, rate), "tokens_per_s")
        )
    return found


def _flags(server: ThreadServer) -> dict[str, object]:
    """Settings that differ within a set."""
    narrow = server.hardware == B200 and server.weights == "fp4"
    if server.name in ("inferencex-m2.5", "inferencex-k2.5") and server.hardware == B200:
        return _FP8_CACHE if narrow or server.model == M25 else {}
    return {}
