"""Published figures that are in no table of measurements: TensorRT-LLM 1.0 and 1.2, and Gaudi3.

Typed off the pages that are named; every figure of the layouts that a page states in full. TensorRT-LLM's
are of all requests queued at once in the process of the engine, as in its older tables; Intel's of static
batches. Left out of TensorRT-LLM 1.0: mixtures on four and eight accelerators, whose expert parallelism the
page does not state, and RTX PRO 6000.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import pandas as pd


@dataclass(frozen=True, slots=True)
class Layout:
    """A model on some accelerators.

    Attributes
    ----------
    model, hardware : str
        Names of the catalogue.
    tp, dp, ep : int
        Tensor, attention-data and expert parallelism; `DEP4` of the pages is four ranks of both.
    weights, kv : str
        Formats. The caches are what TensorRT-LLM's own tests expect of these checkpoints
        (tests/integration/defs/accuracy/references/gsm8k.yaml), and the page says of gpt-oss and DeepSeek.
    """

    model: str
    hardware: str
    tp: int
    dp: int
    ep: int
    weights: str
    kv: str


LLAMA_8B, LLAMA_70B = "meta-llama/Llama-3.1-8B", "meta-llama/Llama-3.1-70B"
LLAMA_405B = "meta-llama/Llama-3.1-405B"
SCOUT, MAVERICK = "meta-llama/Llama-4-Scout-17B-16E", "meta-llama/Llama-4-Maverick-17B-128E"
QWEN_30B, QWEN_235B = "Qwen/Qwen3-30B-A3B", "Qwen/Qwen3-235B-A22B"
DEEPSEEK, OSS_20B, OSS_120B = "deepseek-ai/DeepSeek-R1-0528", "openai/gpt-oss-20b", "openai/gpt-oss-120b"
H100, H200, B200, GB200 = "H100-SXM", "H200-SXM", "B200-SXM", "GB200-NVL72"

REQUESTS: Final = {
    (128, 128): 30_000,
    (128, 2048): 3_000,
    (128, 4096): 1_500,
    (1000, 2000): 1_500,
    (2048, 128): 3_000,
    (2048, 2048): 1_500,
    (5000, 500): 1_500,
    (1000, 1000): 3_000,
    (500, 2000): 3_000,
    (20000, 2000): 1_000,
    (1024, 1024): 3_000,
    (8192, 1024): 1_500,
    (1024, 8192): 1_500,
    (32768, 1024): 1_000,
    (1024, 32768): 1_000,
}
"""Requests of a run, by tokens in and out. Source: the pages; of 1,000 in and out as of 1,024."""

TENSORRT_1_0_LENGTHS: Final = (
    (128, 128),
    (128, 2048),
    (128, 4096),
    (1000, 2000),
    (2048, 128),
    (2048, 2048),
    (5000, 500),
    (1000, 1000),
    (500, 2000),
    (20000, 2000),
)
TENSORRT_1_0: Final[dict[Layout, tuple[float | None, ...]]] = {
    Layout(LLAMA_70B, B200, 1, 1, 1, "fp4", "fp8"): (
        11_147,
        9922,
        6831,
        6271,
        1339,
        4783,
        1459,
        7007,
        7762,
        665,
    ),
    Layout(LLAMA_70B, GB200, 1, 1, 1, "fp4", "fp8"): (
        12_189,
        11_309,
        7849,
        6513,
        1450,
        5646,
        1602,
        7326,
        9028,
        755,
    ),
    Layout(LLAMA_70B, H200, 1, 1, 1, "fp8", "fp8"): (3803, 4336, 2872, 2994, 442, 2003, 566, 2909, 3666, 283),
    Layout(LLAMA_70B, H100, 2, 1, 1, "fp8", "fp8"): (6378, 6651, 4199, 4146, 762, 3082, 898, 4205, 5222, 437),
    Layout(LLAMA_405B, B200, 4, 1, 1, "fp4", "fp8"): (
        6281,
        8020,
        6345,
        4933,
        749,
        4212,
        1048,
        5209,
        6244,
        672,
    ),
    Layout(LLAMA_405B, GB200, 4, 1, 1, "fp4", "fp8"): (
        6740,
        8151,
        6608,
        5135,
        797,
        4407,
        1112,
        5389,
        6540,
        739,
    ),
    Layout(LLAMA_405B, H200, 8, 1, 1, "fp8", "fp8"): (
        3814,
        5348,
        4741,
        3722,
        456,
        2948,
        650,
        3330,
        4724,
        505,
    ),
    Layout(LLAMA_405B, H100, 8, 1, 1, "fp8", "fp8"): (
        3627,
        4340,
        3116,
        2895,
        453,
        2296,
        610,
        2919,
        3994,
        345,
    ),
    Layout(LLAMA_8B, H200, 1, 1, 1, "fp8", "fp8"): (
        27_911,
        26_221,
        18_027,
        16_828,
        3538,
        12_194,
        3902,
        17_744,
        20_770,
        1804,
    ),
    Layout(LLAMA_8B, H100, 1, 1, 1, "fp8", "fp8"): (
        28_312,
        22_714,
        14_325,
        13_899,
        3450,
        9305,
        3459,
        15_220,
        17_660,
        1351,
    ),
    Layout(SCOUT, B200, 1, 1, 1, "fp4", "fp8"): (
        25_342,
        14_699,
        8932,
        9356,
        3137,
        7152,
        2937,
        10_591,
        11_977,
        1644,
    ),
    Layout(SCOUT, GB200, 1, 1, 1, "fp4", "fp8"): (
        19_954,
        15_238,
        9556,
        8581,
        3295,
        7464,
        3107,
        7738,
        11_795,
        1767,
    ),
    Layout(QWEN_30B, B200, 1, 1, 1, "fp4", "fp8"): (
        39_827,
        37_844,
        24_953,
        22_051,
        6251,
        17_554,
        6142,
        25_828,
        27_817,
        2944,
    ),
    Layout(QWEN_30B, GB200, 1, 1, 1, "fp4", "fp8"): (
        24_107,
        31_311,
        26_337,
        17_177,
        6595,
        14_719,
        5908,
        17_481,
        20_604,
        3203,
    ),
}
"""Output tokens a second of all accelerators, in the order of the lengths. Source: NVIDIA/TensorRT-LLM,
docs/source/performance/perf-overview.md, commit 00f37686, September 2025."""


TENSORRT_1_2_LENGTHS: Final = (
    (1000, 1000),
    (1024, 1024),
    (8192, 1024),
    (1024, 8192),
    (32768, 1024),
    (1024, 32768),
)
TENSORRT_1_2: Final[dict[Layout, tuple[float | None, ...]]] = {
    Layout(DEEPSEEK, B200, 1, 4, 4, "fp4", "fp8"): (6463, 6430, 1168, 3862, None, 1451),
    Layout(DEEPSEEK, GB200, 1, 4, 4, "fp4", "fp8"): (6939, 6924, 1192, 4379, None, 1465),
    Layout(DEEPSEEK, H200, 1, 8, 8, "fp8", "fp8"): (1627, 1620, None, 1218, None, 438),
    Layout(OSS_120B, B200, 1, 2, 2, "mxfp4", "fp8"): (25_943, 25_870, 6111, 17_289, 1392, 6279),
    Layout(OSS_120B, GB200, 1, 1, 1, "mxfp4", "fp8"): (27_198, 26_609, 6835, 14_800, 1645, 5556),
    Layout(OSS_120B, H200, 1, 1, 1, "mxfp4", "bf16"): (6868, 6798, 1828, 3543, 519, None),
    Layout(OSS_120B, H100, 1, 4, 4, "mxfp4", "bf16"): (4685, 4715, 1169, None, 333, 1177),
    Layout(OSS_20B, B200, 1, 1, 1, "mxfp4", "fp8"): (53_812, 53_491, 11_904, 34_702, 2645, 14_589),
    Layout(OSS_20B, GB200, 1, 1, 1, "mxfp4", "fp8"): (55_823, 56_528, 12_941, 38_100, 2905, 16_463),
    Layout(OSS_20B, H200, 1, 1, 1, "mxfp4", "bf16"): (13_858, 13_890, 4015, 12_743, 915, None),
    Layout(OSS_20B, H100, 1, 1, 1, "mxfp4", "bf16"): (11_557, 11_403, 3366, 8617, 785, None),
    Layout(LLAMA_70B, B200, 1, 1, 1, "fp4", "fp8"): (6920, 6842, 1362, 3242, 274, None),
    Layout(LLAMA_70B, GB200, 1, 1, 1, "fp4", "fp8"): (7769, 7751, 1491, 3805, 302, None),
    Layout(LLAMA_70B, H200, 2, 1, 1, "fp8", "fp8"): (2587, 2582, 537, 2009, 120, None),
    Layout(LLAMA_70B, H100, 2, 1, 1, "fp8", "fp8"): (2209, None, 398, None, None, None),
    Layout(MAVERICK, B200, 1, 4, 4, "fp4", "fp8"): (11_337, 11_227, 3279, 5174, 859, 2204),
    Layout(MAVERICK, GB200, 1, 4, 4, "fp4", "fp8"): (11_828, 11_905, 3444, 5508, 963, 2300),
    Layout(MAVERICK, H200, 1, 8, 8, "fp8", "fp8"): (4146, 4180, 1276, 1157, None, 679),
    Layout(QWEN_235B, B200, 1, 4, 4, "fp4", "fp8"): (5764, 5756, 1410, 3389, 319, 1255),
    Layout(QWEN_235B, GB200, 1, 4, 4, "fp4", "fp8"): (6172, 5862, 1464, 3423, 333, None),
    Layout(QWEN_235B, H200, 1, 4, 4, "fp8", "fp8"): (3288, 3268, 627, 1417, 134, None),
    Layout(QWEN_235B, H100, 1, 8, 8, "fp8", "fp8"): (1932, 1935, None, 873, None, None),
    Layout(QWEN_30B, B200, 1, 1, 1, "fp4", "fp8"): (26_971, 26_611, 5735, 13_497, 1265, 4494),
    Layout(QWEN_30B, GB200, 1, 1, 1, "fp4", "fp8"): (22_856, 22_201, 6201, 14_272, 1380, 4925),
}
"""Output tokens a second of one accelerator, in the order of the lengths. Source: NVIDIA/TensorRT-LLM,
docs/source/developer-guide/perf-overview.md, commit 03e27c7d, December 2025."""

GAUDI3_LENGTHS: Final = ((128, 128), (128, 2048), (2048, 128), (2048, 2048))
GAUDI3: Final[dict[tuple[str, int], tuple[tuple[int, float], ...]]] = {
    ("meta-llama/Llama-2-7b-hf", 1): ((1536, 19_810), (217, 6763), (153, 2029), (75, 2734)),
    ("meta-llama/Llama-2-70b-hf", 2): ((1750, 4433), (512, 6026), (231, 498), (240, 2641)),
    (LLAMA_8B, 1): ((1536, 24_310), (768, 18_830), (256, 2652), (364, 7405)),
    (LLAMA_70B, 2): ((3516, 3711), (450, 5776), (223, 497), (175, 2588)),
    (LLAMA_70B, 8): ((4000, 15_008), (600, 15_711), (400, 1600), (600, 8946)),
    ("mistralai/Mistral-7B-v0.1", 1): ((896, 24_433), (120, 13_726), (120, 2085), (44, 4970)),
}
"""Batch, and output tokens a second of all accelerators, by model and accelerators; weights in FP8. Source:
intel.com, Model Performance Data for Intel Gaudi 3 AI Accelerators, software 1.18 (late 2024)."""


def elsewhere_rows() -> pd.DataFrame:
    """Cases of `plan predict`, with `set` and `measured`, the output tokens a second of all accelerators.

    A static batch has as many of them as its tokens over its time from the first prompt to the last token.
    """
    rows = [
        *_tensorrt("trtllm-1.0", "2025-09", TENSORRT_1_0_LENGTHS, TENSORRT_1_0, each=False),
        *_tensorrt("trtllm-1.2", "2025-12", TENSORRT_1_2_LENGTHS, TENSORRT_1_2, each=True),
        *_gaudi3(),
    ]
    found = pd.DataFrame(rows)
    return found.assign(case_id=[f"elsewhere-{row}" for row in range(len(found))])


def _tensorrt(
    name: str,
    month: str,
    lengths: tuple[tuple[int, int], ...],
    table: dict[Layout, tuple[float | None, ...]],
    each: bool,
) -> list[dict[str, object]]:
    return [
        {
            "set": name,
            "model": layout.model,
            "hardware": layout.hardware,
            "backend": "trtllm",
            "weights": layout.weights,
            "kv": layout.kv,
            "mode": "offline",
            "tp": layout.tp,
            "dp": layout.dp,
            "ep": layout.ep,
            "input_tokens": prompt,
            "output_tokens": output,
            "n_requests": REQUESTS[prompt, output],
            "front_end_ms": 0.0,
            "front_end_token_us": 0.0,
            "software_date": month,
            "measured": figure * (layout.tp * layout.dp if each else 1),
        }
        for layout, figures in table.items()
        for (prompt, output), figure in zip(lengths, figures, strict=True)
        if figure is not None
    ]


def _gaudi3() -> list[dict[str, object]]:
    return [
        {
            "set": "gaudi3",
            "model": model,
            "hardware": "Gaudi3",
            "backend": "vllm",
            "weights": "fp8",
            "kv": "fp8",
            "mode": "static",
            "tp": tp,
            "dp": 1,
            "ep": 1,
            "input_tokens": prompt,
            "output_tokens": output,
            "batch": batch,
            "software_date": "",
            "measured": figure,
        }
        for (model, tp), figures in GAUDI3.items()
        for (prompt, output), (batch, figure) in zip(GAUDI3_LENGTHS, figures, strict=True)
    ]
