"""Figures of SGLang's and vLLM's guides that nobody had typed off before, of software since July 2025.

Typed off on 29 November 2026, all of them before any was predicted, and none left out after its error was
seen. Left out unpredicted: pages that do not say on which part they measured (GLM-4.6, Devstral 2, vLLM's own
of DeepSeek-V3, GLM-4.5-Air, Qwen3-Coder and ERNIE), models that the catalogue lacks (Kimi-Linear,
GLM-4.7-Flash, Mistral-Medium-3.5, Gemma 4 E2B to 12B), runs with drafts whose acceptance is not stated, and
Kimi-K2.6 on H200, where a token of context takes 72 ns a layer and sequence, 16 GB/s: a defect of its
version.

sgl-project/sgl-cookbook@7b5bd9c, docs/autoregressive, random lengths, in flight what the tool prints:

* `cookbook-ernie`: ERNIE-4.5-21B-A3B on one MI300X, SGLang 0.5.7 (January 2026).
* `cookbook-gemma4`: Gemma-4-31B and 26B-A4B on H200 and MI300X, April 2026, text alone; where nothing is
  printed, in flight is what its rates and times give.
* `cookbook-ministral`: Ministral-3-14B, whose checkpoint is in FP8, on one MI300X, SGLang 0.5.7.
* `cookbook-k2`: Kimi-K2-Instruct on eight B200, SGLang 0.5.6, attention on four ranks of two; in the second
  the experts are in four groups.
* `cookbook-nano`: Nemotron-3-Nano on one B200 (December 2025), at most 1,024 requests.
* `cookbook-step`: Step-3.5-Flash on four H200, SGLang 0.5.8 (February 2026), experts in four groups; typed
  off with the others and first predicted when its family was understood, 15 / 22 % off with `recipes-step`.
  Since then the gates of its heads are priced, by its modeling code: both are "used".
* `cookbook-vl`: Qwen3-VL-235B on eight B200, SGLang 0.5.6, two images of 882 tokens in each prompt.

sgl-project/sglang, docs_new/src/snippets/configs:

* `glm5.2-main`: zai-org/glm-5.2-benchmarks.jsx@27132f7 and glm-5.2.jsx (main of July 2026). Its acceptance is
  simulated: 3.5 tokens a step of five drafts, or all of one. A draft takes what the preset of MTP takes. They
  were 17 to 459 % too slow before loops whose requests are all alike were priced (`--random-range-ratio
  1.0`; `perfmodel/serving/cohorts.py`), and are "used" since.
* `qwen3.5-4b`: qwen/qwen3.5-benchmarks.jsx@560c5f5, Qwen3.5-4B on one MI300X, SGLang 0.5.13, without drafts.

vllm-project/recipes@8959cf6:

* `recipes-step`: StepFun/Step-3.5-Flash.md (February 2026), the same part, TP4, 10 clients; the same holds.
* `recipes-v3.2`: DeepSeek/DeepSeek-V3_2.md (December 2025), 100 requests at ten a second on eight H20, TP8,
  taken as all at once.

Pull requests, typed off and first predicted on the same day, after norms of Gemma 4 were priced:

* `sglang-22664`: sgl-project/sglang pull request 22664 (April 2026), Qwen3-Coder-Next, which has the decoder
  of Qwen3-Next, on four H100, before it and with all-reduces joined with norms; lengths follow from its
  rates.
* `vllm-23151`: vllm-project/vllm pull request 23151 (August 2025), Qwen3-30B-A3B on one H100, before it.
* `vllm-44214`: pull request 44214 (July 2026), Qwen3.5-122B-A10B on eight B200, 500 requests at once.
"""

from __future__ import annotations

from typing import Any, Final

from benchmarks.blind_cookbooks import LONG
from benchmarks.blind_threads import H100, H200, NANO, QWEN_30B, Thread, ThreadServer, loop_case, offline_case
from benchmarks.blind_users import H20, NEXT

B200, MI300X, GB300 = "B200-SXM", "MI300X", "GB300-NVL72"
STEP: Final = "stepfun-ai/Step-3.5-Flash"
ERNIE, GLM52 = "baidu/ERNIE-4.5-21B-A3B-PT", "zai-org/GLM-5.2"
DENSE_GEMMA, MIXED_GEMMA = "google/gemma-4-31B-it", "google/gemma-4-26B-A4B"
NANO_BF16: Final = "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16"


def _page(name: str, model: str, hardware: str, weights: str, month: str, tp: int = 1) -> ThreadServer:
    return ThreadServer(name, model, hardware, "sglang", weights, month, tp)


TPOTS: Final[dict[ThreadServer, tuple[Thread, ...]]] = {
    _page("cookbook-ernie", ERNIE, MI300X, "bf16", "2026-01"): (
        *((610, 422, 1, 4.07), (496, 510, 14, 11.99), (500, 505, 90, 23.89)),
        *((610, 4446, 1, 4.13), (496, 3979, 14, 11.92), (497, 4066, 57, 18.81)),
        *((4194, 422, 1, 4.19), (3750, 521, 14, 14.04), (3981, 531, 59, 26.97)),
    ),
    _page("cookbook-gemma4", DENSE_GEMMA, H200, "bf16", "2026-04", 2): (
        *((610, 422, 1, 12.32), (513, 511, 96, 33.95)),
    ),
    _page("cookbook-gemma4", MIXED_GEMMA, H200, "bf16", "2026-04"): (
        *((610, 422, 1, 5.6), (513, 511, 96, 25.95)),
    ),
    _page("cookbook-gemma4", DENSE_GEMMA, MI300X, "bf16", "2026-04"): (
        *((610, 422, 1, 24.13), (513, 511, 96, 82.51)),
    ),
    _page("cookbook-gemma4", MIXED_GEMMA, MI300X, "bf16", "2026-04"): (
        *((610, 422, 1, 9.78), (513, 511, 96, 41.23)),
    ),
    _page("cookbook-ministral", "mistralai/Ministral-3-14B-Instruct-2512", MI300X, "fp8", "2026-01"): (
        *((610, 422, 1, 6.63), (496, 510, 14, 10.47), (500, 505, 93, 32.93)),
    ),
    _page("cookbook-nano", NANO, B200, "fp8", "2025-12"): ((508, 517, 251, 21.74),),
    _page("cookbook-nano", NANO_BF16, B200, "bf16", "2025-12"): ((508, 510, 250, 43.27),),
    ThreadServer("cookbook-step", STEP, H200, "sglang", "bf16", "2026-02", 4, 4): (
        *((609, 422, 1, 8.12), (495, 510, 14, 18.97), (499, 505, 92, 46.06)),
    ),
    _page("sglang-22664", NEXT, H100, "bf16", "2026-03", 4): ((1024, 127, 32, 50.41),),
    _page("sglang-22664", NEXT, H100, "bf16", "2026-04", 4): ((1024, 127, 32, 25.49),),
    ThreadServer("vllm-23151", QWEN_30B, H100, "vllm", "bf16", "2025-08"): ((2042, 1016, 10, 13.18),),
    ThreadServer("recipes-step", STEP, H200, "vllm", "bf16", "2026-02", 4): ((2047, 1024, 10, 11.91),),
    _page("cookbook-vl", "Qwen/Qwen3-VL-235B-A22B-Instruct", B200, "bf16", "2025-12", 8): (
        *((1835, 422, 1, 10.44), (1837, 524, 1, 10.46), (1839, 511, 98, 100.22)),
    ),
}
"""[ms]"""

RATES: Final[dict[ThreadServer, tuple[Thread, ...]]] = {
    _page("qwen3.5-4b", "Qwen/Qwen3.5-4B", MI300X, "bf16", "2026-06"): (
        *((1024, 1024, 1024, 2314), (1024, 1024, 4096, 2405)),
    ),
}
"""Tokens a second."""

STATED: Final[dict[str, dict[str, object]]] = {
    "cookbook-nano": {"max_sequences": 1024},
    "cookbook-vl": {"image_token_ratio": 1764 / 1837},
}
"""Settings that a command states, and the part of images, by set."""

SETS_SEEN: Final = ("glm5.2-main", "cookbook-step", "recipes-step")
"""Sets that were in view when loops of requests that are all alike were priced, and gates of Step's heads."""

GROUPED_EXPERTS: Final = ((1, 195, 276, 1, 18.4), (4, 297, 194, 90, 97.23))
"""Groups of experts of `cookbook-k2`, tokens in and out, clients and TPOT. [ms]"""

FIVE_DRAFTS: Final = {"draft_tokens": 5, "acceptance_ratio": 0.777, "draft_cost_ratio": 0.044}
ONE_DRAFT: Final = {"draft_tokens": 1, "acceptance_ratio": 1.0, "draft_cost_ratio": 0.044}
"""Acceptance with which a step yields 3.5 tokens, and 2; the cost of `fleet/inventory/techniques.py`."""

CHUNK: Final = 32_768
RUNNING_REQUESTS: Final = 256
"""`--chunked-prefill-size` and `--max-running-requests` of `glm5.2-main`, which its ranks share."""

GLM_RUNS: Final = (
    *((B200, 8, 1, 1, 3.22), (B200, 8, 1, 16, 9.12), (B200, 8, 8, 64, 17.65), (B200, 8, 8, 256, 32.61)),
    *((GB300, 4, 1, 1, 4.55), (GB300, 4, 1, 16, 11.5), (GB300, 4, 4, 64, 25.21), (GB300, 4, 4, 256, 48.43)),
)
"""Part, accelerators, ranks of attention, clients and TPOT. [ms]"""


def guide_rows() -> list[dict[str, Any]]:
    """Cases of `plan predict` with `set`, `page`, `quantity` and `measured`."""
    found = [
        server.case | STATED.get(server.name, {}) | loop_case(run, quantity)
        for quantity, servers in (("tpot_ms", TPOTS), ("tokens_per_s", RATES))
        for server, runs in servers.items()
        for run in runs
    ]
    two = {"tp": 2, "dp": 4}
    for groups, *run in GROUPED_EXPERTS:
        case = _page("cookbook-k2", "moonshotai/Kimi-K2-Instruct", B200, "fp8", "2025-12").case
        found.append(case | two | {"ep": groups} | loop_case((*run[:3], run[3]), "tpot_ms"))
    found += [_glm(*run) for run in GLM_RUNS]
    h20 = ThreadServer("recipes-v3.2", "deepseek-ai/DeepSeek-V3.2", H20, "vllm", "fp8", "2025-12", 8).case
    found.append(h20 | offline_case(100, 2048, 1024, 791.73))
    b200 = ThreadServer("vllm-44214", "Qwen/Qwen3.5-122B-A10B", B200, "vllm", "bf16", "2026-07", 8).case
    found.append(b200 | offline_case(500, 1024, 512, 14_995.29))
    return found


def _glm(hardware: str, accelerators: int, ranks: int, clients: int, tpot_ms: float) -> dict[str, Any]:
    """Return a run of `glm5.2-main`, whose cache is in FP8 on Blackwell by default.

    Source: SGLang 0.5.23, arg_groups/overrides.py, _dsa_kv_cache_dtype_default.
    """
    tp = accelerators // ranks
    case = ThreadServer("glm5.2-main", GLM52, hardware, "sglang", "fp8", "2026-07", tp, ranks).case
    case |= {"dp": ranks, "kv": "fp8", "length_variation": 0.0} | (FIVE_DRAFTS if ranks == 1 else ONE_DRAFT)
    if ranks > 1:
        limits = {"max_sequences": RUNNING_REQUESTS // ranks, "max_batched_tokens": CHUNK // ranks}
        case |= limits | {"memory_ratio": 0.85}
    return case | loop_case((*LONG, clients, tpot_ms), "tpot_ms")
