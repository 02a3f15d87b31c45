"""Published measurements that were predicted before the model was changed with them in view.

Since then three changes had some of them in view (`benchmarks/blind_used.py`). The TTFTs of the cookbook,
when launches of prompts were counted (`perfmodel/steps/host_launches.py`); the time of a launch was chosen on
other rows. Every row of MI300X and MI325X in the sets `USED_SETS`, when the roofline constants of these parts
were chosen and the factors of SGLang on them were kept for weights scaled in blocks: they are named "used"
and no longer show what a stranger will find. The constants come from microbenchmarks, but which sources were
looked for, and which were believed, followed from these rows. And every row of MiniMax-M2, when the exchange
of its norms was priced. Left out after their errors were seen: Kimi-K2.5 (TPOT 77 % off), DeepSeek-Math-V2
(48 %), NIM with 100 clients (9 %), Vultr with 512 (22 %), Mixtral on H200 (-53 %) and AccelMark's 100 prompts
at once, whose lengths are cut.

Typed off the pages that are named, November 2026:

* `sglang-cookbook`: sgl-project/sgl-cookbook@7b5bd9c, docs/autoregressive, `bench_serving` with random
  lengths against a server with the flags of the page. In flight is the mean that the tool prints; lengths
  are means over the requests; TTFT is the median, TPOT the mean. Left out: pages that name several parts,
  that draft tokens, of models that the catalogue lacks; Kimi-K2.5, whose decode of one sequence becomes 2.7
  times slower from 600 to 4,200 tokens of context; DeepSeek-Math-V2, whose attention the page does not state.
* `tpu-recipes`: AI-Hypercomputer/tpu-recipes@c8cfe2f, inference/trillium/vLLM/Llama3.x/README.md.
* `nim`: docs.nvidia.com/nim/benchmarking/llm/1.0.0/performance, container 1.8.0; means.
* `vultr`: docs.vultr.com/inference-cookbook/cuda/optimization/concurrency-tuning, 11 March 2026; vLLM 0.16.
* `accelmark`: FreedomIntelligence/AccelMark@5797fc4, results/verified, one client ("interactive", medians;
  prompts of the dataset with their template) and 50 prompts at once (suite D). vLLM 0.7.3 and 0.20.1.
* `amd`: amd.com, rocm-hub, performance-results, images vllm_0.10.2_20251006 and vllm_0.11.1_20251103.
* `oracle`: blogs.oracle.com, Serving Llama 3.1 405B with AMD MI300X, 2024; vLLM's benchmark_latency.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import pandas as pd
from benchmarks.blind_articles import article_rows
from benchmarks.blind_cards import card_rows
from benchmarks.blind_cookbooks import cookbook_rows
from benchmarks.blind_guides import guide_rows
from benchmarks.blind_reports import report_rows
from benchmarks.blind_submissions import submitted_rows
from benchmarks.blind_threads import offline_case, thread_rows
from benchmarks.blind_users import user_rows


@dataclass(frozen=True, slots=True)
class MeasuredLayout:
    """What a page measured: a model in some layout on some accelerators.

    Attributes
    ----------
    page : str
        Where it stands.
    model, hardware : str
        Names of the catalogue.
    tp, ep : int
        Tensor and expert parallelism.
    weights : str
        Format.
    month : str
        Year and month of the software.
    """

    page: str
    model: str
    hardware: str
    tp: int
    ep: int
    weights: str
    month: str


Run = tuple[int, int, int, float | None, float]
"""Requests in flight, mean tokens in and out, TTFT and TPOT. [ms]"""

COOKBOOK: Final[dict[MeasuredLayout, tuple[Run, ...]]] = {
    MeasuredLayout("DeepSeek-R1", "deepseek-ai/DeepSeek-R1-0528", "B200-SXM", 8, 1, "fp8", "2025-12"): (
        (1, 610, 421, 140.76, 9.16),
        (14, 496, 509, 131.71, 17.56),
        (92, 500, 504, 147.62, 40.11),
        (1, 610, 4445, 126.19, 9.21),
        (14, 496, 3978, 153.75, 15.42),
        (57, 497, 4065, 158.15, 25.94),
        (1, 4194, 421, 154.96, 9.26),
        (14, 3750, 520, 189.59, 19.06),
        (59, 3981, 530, 224.92, 39.93),
    ),
    MeasuredLayout("DeepSeek-V3_1", "deepseek-ai/DeepSeek-V3", "MI300X", 8, 1, "fp8", "2026-01"): (
        (1, 610, 422, 213.58, 23.84),
        (14, 496, 510, 191.32, 35.5),
        (91, 500, 505, 236.88, 73.33),
        (1, 610, 4446, 156.19, 24.41),
        (14, 496, 3979, 194.12, 33.72),
        (56, 497, 4066, 235.28, 53.3),
        (1, 4194, 422, 481.38, 24.93),
        (15, 3750, 521, 1347.21, 53.65),
        (60, 3981, 531, 499.38, 97.93),
    ),
    MeasuredLayout("Llama3.1", "meta-llama/Llama-3.1-70B", "A100-SXM-80GB", 8, 1, "bf16", "2025-12"): (
        (1, 610, 422, 131.77, 18.63),
        (13, 496, 510, 147.02, 26.09),
        (90, 500, 505, 184.22, 47.19),
        (1, 4194, 422, 318.02, 18.8),
        (14, 3750, 521, 531.82, 36.94),
        (60, 3981, 531, 616.38, 74.95),
    ),
    MeasuredLayout("Llama4", "meta-llama/Llama-4-Maverick-17B-128E", "MI300X", 8, 1, "bf16", "2026-03"): (
        (1, 610, 422, 68.57, 7.49),
        (15, 621, 510, 87.42, 11.88),
        (92, 500, 505, 129.96, 41.56),
    ),
    MeasuredLayout("Llama4", "meta-llama/Llama-4-Scout-17B-16E", "MI300X", 8, 1, "bf16", "2026-03"): (
        (1, 610, 422, 57.45, 5.95),
        (14, 496, 510, 72.6, 10.53),
        (93, 500, 505, 128.96, 33.63),
    ),
    MeasuredLayout("MiniMax-M2.5", "MiniMaxAI/MiniMax-M2.5", "B200-SXM", 8, 8, "fp8", "2026-02"): (
        (1, 609, 422, 116.1, 9.89),
        (14, 495, 510, 106.75, 16.2),
        (91, 499, 505, 133.12, 33.04),
        (1, 4194, 422, 126.76, 10),
        (14, 3750, 521, 149.37, 16.6),
        (59, 3981, 531, 188.46, 32.19),
    ),
    MeasuredLayout("MiniMax-M2.5", "MiniMaxAI/MiniMax-M2.5", "H100-SXM", 8, 8, "fp8", "2026-02"): (
        (1, 610, 422, 80.38, 8.05),
        (14, 496, 510, 82.33, 14.81),
        (91, 500, 505, 95.16, 28.92),
    ),
    MeasuredLayout("MiniMax-M2.7", "MiniMaxAI/MiniMax-M2.7", "GB300-NVL72", 2, 1, "fp8", "2026-04"): (
        (1, 610, 422, 53.85, 8.02),
        (90, 500, 505, 92.05, 35.75),
    ),
    MeasuredLayout("MiniMax-M2", "MiniMaxAI/MiniMax-M2", "MI300X", 4, 1, "fp8", "2026-01"): (
        (1, 610, 422, 385.23, 22.21),
        (14, 496, 510, 147.69, 27.49),
        (91, 500, 505, 183.9, 55.23),
    ),
    MeasuredLayout(
        "Nemotron3-Super",
        "nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-BF16",
        "H200-SXM",
        4,
        1,
        "bf16",
        "2026-03",
    ): ((250, 508, 510, 114.9, 75.02),),
    MeasuredLayout("GPT-OSS", "openai/gpt-oss-120b", "B200-SXM", 8, 1, "mxfp4", "2025-12"): (
        (1, 332, 213, 31.79, 2.31),
        (89, 297, 192, 31.53, 14.31),
    ),
    MeasuredLayout(
        "Qwen3-Coder-Next", "Qwen/Qwen3-Next-80B-A3B-Instruct", "B200-SXM", 2, 1, "bf16", "2026-02"
    ): (
        (1, 610, 422, 168.09, 6.19),
        (14, 496, 510, 156.5, 13.61),
        (94, 500, 505, 159.65, 38.57),
        (1, 610, 4446, 93.86, 6.24),
        (14, 496, 3979, 84.52, 10.32),
        (56, 497, 4066, 115.96, 16.76),
        (1, 4194, 422, 160.33, 6.56),
        (14, 3750, 521, 179.25, 14.13),
        (60, 3981, 531, 177.5, 29.81),
    ),
    MeasuredLayout("Qwen3-Coder", "Qwen/Qwen3-Coder-480B-A35B-Instruct", "MI300X", 8, 2, "fp8", "2026-01"): (
        (1, 610, 422, 126.06, 17.06),
        (14, 496, 510, 157.49, 29.41),
        (59, 497, 532, 181.67, 62.98),
    ),
    MeasuredLayout("Qwen3-Next", "Qwen/Qwen3-Next-80B-A3B-Instruct", "B200-SXM", 8, 1, "bf16", "2025-12"): (
        (1, 338, 216, 132.88, 6.19),
        (93, 302, 196, 137.94, 50.87),
    ),
    MeasuredLayout("Qwen3", "Qwen/Qwen3-235B-A22B", "B200-SXM", 8, 1, "bf16", "2025-12"): (
        (1, 610, 421, 92.18, 10.12),
        (14, 496, 509, 88.82, 16.36),
        (90, 500, 504, 122.68, 32.94),
        (1, 610, 4445, 109.36, 10.23),
        (14, 496, 3978, 101.61, 14.82),
        (56, 497, 4065, 129.11, 23.66),
        (1, 4194, 421, 114.85, 10.31),
        (14, 3750, 520, 168.48, 16.81),
        (59, 3981, 530, 203.27, 32.5),
    ),
}
"""Closed loops of SGLang 0.5.6 to 0.5.10."""

LLAMA_8B, LLAMA_70B = "meta-llama/Llama-3.1-8B", "meta-llama/Llama-3.1-70B"
LLAMA_405B, OLDER_8B = "meta-llama/Llama-3.1-405B", "meta-llama/Meta-Llama-3-8B"
NANO = "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-FP8"

OTHER_LOOPS: Final[dict[tuple[str, str, str, MeasuredLayout], tuple[Run, ...]]] = {
    (
        "tpu-recipes",
        "vllm",
        "bf16",
        MeasuredLayout("Llama3.x", LLAMA_70B, "TPU-v6e", 8, 1, "bf16", "2025-12"),
    ): (
        (64, 999, 1000, 198.81, 25.35),
        (128, 999, 1000, 229.09, 35.12),
    ),
    ("nim", "trtllm", "fp8", MeasuredLayout("1.8.0", LLAMA_70B, "H100-SXM", 2, 1, "fp8", "2025-04")): (
        (1, 5000, 500, 406.77, 18.58),
        (5, 5000, 500, 546.7, 21.83),
        (25, 5000, 500, 688.69, 38.75),
        (50, 5000, 500, 834.51, 59.73),
    ),
    ("vultr", "vllm", "bf16", MeasuredLayout("concurrency", NANO, "B200-SXM", 2, 1, "fp8", "2026-02")): (
        (1, 2048, 512, None, 2.91),
        (8, 2048, 512, None, 3.96),
        (16, 2048, 512, None, 4.32),
        (32, 2048, 512, None, 7.86),
        (64, 2048, 512, None, 6.74),
        (128, 2048, 512, None, 8.91),
        (256, 2048, 512, None, 11.77),
    ),
    ("accelmark", "vllm", "bf16", MeasuredLayout("A", OLDER_8B, "A100-SXM-80GB", 1, 1, "bf16", "2026-05")): (
        (1, 250, 344, 27.78, 10.77),
    ),
    ("accelmark", "vllm", "bf16", MeasuredLayout("A", OLDER_8B, "A100-SXM-80GB", 1, 1, "bf16", "2025-02")): (
        (1, 250, 344, 46.45, 13.19),
    ),
    ("accelmark", "vllm", "bf16", MeasuredLayout("A", OLDER_8B, "H100-SXM", 1, 1, "bf16", "2025-02")): (
        (1, 250, 344, 20.08, 7.74),
    ),
    ("accelmark", "vllm", "bf16", MeasuredLayout("A", OLDER_8B, "H200-SXM", 1, 1, "bf16", "2025-02")): (
        (1, 250, 344, 27.89, 7.62),
    ),
    ("accelmark", "vllm", "bf16", MeasuredLayout("D", LLAMA_8B, "A100-SXM-80GB", 1, 1, "bf16", "2026-05")): (
        (1, 28_650, 256, 3178.55, 13.1),
    ),
    ("accelmark", "vllm", "bf16", MeasuredLayout("D", LLAMA_8B, "H100-SXM", 1, 1, "bf16", "2025-02")): (
        (1, 28_650, 256, 1076.72, 11.88),
    ),
    ("accelmark", "vllm", "bf16", MeasuredLayout("B", LLAMA_70B, "H200-SXM", 8, 1, "bf16", "2025-02")): (
        (1, 250, 344, 77.23, 12.29),
    ),
}
"""Set, framework, format of the cache, and what was served."""

LONG_PROMPTS: Final = {
    ("A100-SXM-80GB", "2026-05"): 65.15,
    ("H100-SXM", "2025-02"): 160.2,
    ("H200-SXM", "2025-02"): 171.9,
    ("TPU-v6e", "2025-12"): 54.5,
}
"""Output tokens a second of 50 prompts of 28,650 tokens at once, 256 out, Llama-3.1-8B in BF16."""

AMD_LENGTHS: Final = ((128, 2048), (128, 4096), (500, 2000), (2048, 2048))
AMD_OFFLINE: Final = {
    (LLAMA_70B, "2025-10"): ((3200, 13_212.5), (1500, 11_312.8), (2000, 11_376.7), (1500, 7252.1)),
    (LLAMA_405B, "2025-10"): ((1500, 4201.7), (1500, 3176.3), (2000, 2992.0), (500, 2153.7)),
    (LLAMA_70B, "2025-11"): ((3200, 13_279.6), (1500, 11_449.7), (2000, 11_347.4), (1500, 7651.7)),
    (LLAMA_405B, "2025-11"): ((1500, 3816.8), (1500, 3099.6), (2000, 3026.1), (500, 2196.4)),
}
"""Requests, which are the limit of the batch as well, and tokens a second of eight MI300X, weights and cache
in FP8."""

ORACLE_LATENCY: Final = (
    (1, 3.53),
    (2, 3.583),
    (4, 3.734),
    (8, 3.974),
    (16, 4.375),
    (32, 5.13),
    (64, 6.919),
    (128, 10.34),
    (256, 17.75),
)
"""Batch and seconds of 128 tokens in and out, Llama-3.1-405B in FP8 on eight MI300X."""


def blind_rows() -> pd.DataFrame:
    """Cases of `plan predict`, with `set`, `page`, `quantity` and `measured`, and `ttft_ms` of loops.

    `quantity` is tpot_ms, tokens_per_s (of all accelerators) or latency_ms.
    """
    loops = [
        _case(name, framework, kv, served) | _loop(run)
        for (name, framework, kv, served), runs in [
            *((("sglang-cookbook", "sglang", "bf16", served), runs) for served, runs in COOKBOOK.items()),
            *OTHER_LOOPS.items(),
        ]
        for run in runs
    ]
    long_prompts = [
        _case("accelmark", "vllm", "bf16", MeasuredLayout("D", LLAMA_8B, part, 1, 1, "bf16", month))
        | offline_case(50, 28_650, 256, rate)
        for (part, month), rate in LONG_PROMPTS.items()
    ]
    amd = [
        _case("amd", "vllm", "fp8", MeasuredLayout("results", model, "MI300X", 8, 1, "fp8", month))
        | offline_case(count, prompt, output, rate)
        | {"max_sequences": count}
        for (model, month), figures in AMD_OFFLINE.items()
        for (prompt, output), (count, rate) in zip(AMD_LENGTHS, figures, strict=True)
    ]
    static = {"mode": "static", "input_tokens": 128, "output_tokens": 128, "quantity": "latency_ms"}
    oracle = [
        _case("oracle", "vllm", "bf16", MeasuredLayout("405b", LLAMA_405B, "MI300X", 8, 1, "fp8", "2024-10"))
        | static
        | {"batch": batch, "measured": 1e3 * latency_s}
        for batch, latency_s in ORACLE_LATENCY
    ]
    found = pd.DataFrame(
        [
            *loops,
            *long_prompts,
            *amd,
            *oracle,
            *submitted_rows(),
            *thread_rows(),
            *user_rows(),
            *cookbook_rows(),
            *article_rows(),
            *guide_rows(),
            *card_rows(),
            *report_rows(),
        ]
    )
    return found.assign(case_id=[f"blind-{row}" for row in range(len(found))])


def _case(name: str, framework: str, kv: str, served: MeasuredLayout) -> dict[str, object]:
    return {
        "set": name,
        "page": served.page,
        "model": served.model,
        "hardware": served.hardware,
        "backend": framework,
        "weights": served.weights,
        "kv": kv,
        "tp": served.tp,
        "dp": 1,
        "ep": served.ep,
        "software_date": served.month,
    }


def _loop(run: Run) -> dict[str, object]:
    in_flight, prompt, output, ttft_ms, tpot_ms = run
    return {
        "mode": "closed_loop",
        "input_tokens": prompt,
        "output_tokens": output,
        "concurrency": in_flight,
        "ttft_ms": ttft_ms,
        "quantity": "tpot_ms",
        "measured": tpot_ms,
    }
