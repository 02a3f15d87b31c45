"""Published closed loops of DeepSeek-V4, MiniMax-M3 and Kimi-K3, which no table of measurements holds.

Typed off their sources in November 2026. Only what was served without drafted tokens: how many of those were
accepted is published with none. Rates are tokens a second and accelerator, prompts included.

* `v4-cookbook`: sgl-project/sglang@0858700, docs_new/src/snippets/configs/deepseek-ai/
  deepseek-v4-benchmarks.jsx and deepseek-v4.jsx, SGLang 0.5.15 (July 2026), four or eight accelerators; and
  pull request 33109 (31 July 2026, 0.5.16). The command states no `--random-range-ratio`, so lengths are
  uniform up to 8,192 and 1,024: means of half, with which alone the published TTFT of 1,024 and 4,096
  clients fits the published rates. Without `--max-running-requests` DeepSeek-V4 has 256 (arg_groups), and
  attention-DP ranks share both that number and `--chunked-prefill-size` out among themselves
  (server_args.py): 8,192 tokens below 160 GiB, 16,384 above. DeepEP or MegaMoE make the experts of DP
  layouts expert-parallel.
* `m3-inferencex`: SemiAnalysisAI/InferenceX-app, content/blog/minimax-m3-vllm-fp8-h200-vs-b200-low-
  concurrency.mdx (13 June 2026), vLLM's image of the first day, eight accelerators, TP8. InferenceX sends
  lengths of 0.8 to 1 of the nominal ones.
* `m3-cookbook`: sgl-project/sglang, minimax-m3-benchmarks.jsx at 09af86c (15 June 2026), and pull request
  33781 (6 August 2026, SGLang 0.5.16), lengths as stated. B300 and GB300 at the first date are left out: they
  were measured before the repair of decoding that made B200 2.5 times faster.
* `k3-cookbook`: sgl-project/sglang pull request 37878 (3 September 2026, SGLang 0.5.18), and issue 32548 (27
  July 2026) of MI355X; lengths as stated.
* `v4-inferencex`: SemiAnalysisAI/InferenceX-app, content/blog/mi355x-deepseek-v4-pro-sglang-110x-in-26-
  days.mdx, 21 May 2026, TP8. From 64 clients on the layout is not stated; left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd

FLASH, PRO = "deepseek-ai/DeepSeek-V4-Flash", "deepseek-ai/DeepSeek-V4-Pro"
M3, K3 = "MiniMaxAI/MiniMax-M3", "moonshotai/Kimi-K3"

HALF: Final = (4096, 512)
WHOLE: Final = (8192, 1024)
INFERENCEX_LENGTH_RATIO: Final = 0.9
"""Mean length over the nominal one."""


@dataclass(frozen=True, slots=True)
class MeasuredServer:
    """A deployment that was measured.

    Attributes
    ----------
    set, model, hardware, framework, weights, kv, month : str
        Source, names of the catalogue, formats and year and month of the software.
    tp, dp : int
        Of attention; with `dp` above one the experts are spread over all accelerators.
    sequences, batched_tokens : int or None
        Limits of one attention-DP rank; None is the default of the framework.
    aligned : bool
        Whether ranks wait with their prompts for one another (`--enable-prefill-delayer`).
    """

    set: str
    model: str
    hardware: str
    framework: str
    weights: str
    kv: str
    month: str
    tp: int
    dp: int = 1
    sequences: int | None = None
    batched_tokens: int | None = None
    aligned: bool = False


Run = tuple[tuple[int, int], int, float | None, float | None]
"""Tokens in and out, clients, TPOT [ms] and tokens a second and accelerator."""


ALIKE_SET: Final = "k3-cookbook"
"""Set whose requests are all alike: `--random-range-ratio 1.0` of kimi-k3.jsx@0722c4c."""

MOST_REQUESTS: Final = 256
"""Running requests of DeepSeek-V4 under SGLang where nothing is set."""


def _v4(model: str, hardware: str, weights: str, layout: tuple[int, int], chunk: int) -> MeasuredServer:
    """Return a deployment of the cookbook; `layout` is TP and DP, `chunk` the tokens of all ranks."""
    tp, dp = layout
    aligned = chunk > 16_384
    limits = (MOST_REQUESTS // dp, chunk // dp)
    return MeasuredServer(
        "v4-cookbook", model, hardware, "sglang", weights, "fp8", "2026-07", tp, dp, *limits, aligned
    )


RUNS: Final[dict[MeasuredServer, tuple[Run, ...]]] = {
    _v4(FLASH, "H200-SXM", "fp8", (1, 4), 8192): (
        (HALF, 1024, 147.51, 3958.0),
        (HALF, 4096, 147.07, 3940.0),
    ),
    _v4(FLASH, "H200-SXM", "mxfp4", (4, 1), 8192): (
        (HALF, 1024, 126.81, 4473.0),
        (HALF, 4096, 124.37, 4550.0),
        (HALF, 1024, 123.81, 4573.0),
    ),
    _v4(PRO, "H200-SXM", "mxfp4", (8, 1), 8192): (
        (HALF, 1024, 69.39, 572.0),
        (HALF, 4096, 68.99, 570.0),
    ),
    _v4(FLASH, "H100-SXM", "mxfp4", (8, 1), 8192): (
        (HALF, 1024, 67.32, 2203.0),
        (HALF, 4096, 66.23, 2260.0),
    ),
    _v4(FLASH, "B200-SXM", "mxfp4", (1, 4), 16_384): (
        (HALF, 1024, 71.27, 7997.0),
        (HALF, 4096, 71.44, 8117.0),
    ),
    _v4(PRO, "B200-SXM", "mxfp4", (1, 8), 65_536): (
        (HALF, 1024, 45.49, 3956.0),
        (HALF, 4096, 43.05, 4148.0),
    ),
    _v4(FLASH, "B300-SXM", "mxfp4", (1, 4), 16_384): (
        (HALF, 1024, 61.18, 9274.0),
        (HALF, 4096, 60.31, 10_379.0),
    ),
    _v4(PRO, "B300-SXM", "mxfp4", (1, 8), 65_536): (
        (HALF, 1024, 43.71, 4011.0),
        (HALF, 4096, 42.66, 4435.0),
    ),
    _v4(FLASH, "GB300-NVL72", "mxfp4", (1, 4), 16_384): (
        (HALF, 1024, 91.93, 6434.0),
        (HALF, 4096, 76.04, 7160.0),
    ),
    _v4(PRO, "GB300-NVL72", "mxfp4", (1, 4), 16_384): (
        (HALF, 1024, 184.15, 2810.0),
        (HALF, 4096, 190.21, 2777.0),
    ),
    MeasuredServer("v4-inferencex", PRO, "MI355X", "sglang", "mxfp4", "fp8", "2026-05", 8): (
        (WHOLE, 1, 17.52, 59.2),
        (WHOLE, 4, 20.96, 198.5),
        (WHOLE, 8, 23.94, 348.2),
        (WHOLE, 16, 29.97, 561.3),
        (WHOLE, 32, 41.68, 811.7),
    ),
    MeasuredServer("m3-inferencex", M3, "B200-SXM", "vllm", "fp8", "bf16", "2026-06", 8): (
        ((1024, 1024), 4, 16.2, 59.0),
        ((1024, 1024), 8, 17.36, 111.0),
        ((1024, 1024), 16, 19.79, 196.9),
        ((1024, 1024), 32, 25.56, 302.8),
        ((1024, 1024), 64, 36.0, 436.7),
        (WHOLE, 4, 15.88, 271.8),
        (WHOLE, 8, 17.61, 486.8),
        (WHOLE, 16, 19.97, 860.3),
        (WHOLE, 32, 24.75, 1385.2),
        (WHOLE, 64, 35.0, 2006.7),
    ),
    MeasuredServer("m3-inferencex", M3, "H200-SXM", "vllm", "fp8", "bf16", "2026-06", 8): (
        ((1024, 1024), 4, 8.4, 113.0),
        ((1024, 1024), 8, 10.33, 186.5),
        ((1024, 1024), 16, 13.73, 282.7),
        ((1024, 1024), 32, 17.5, 445.8),
        ((1024, 1024), 64, 26.99, 580.9),
        (WHOLE, 4, 9.43, 443.9),
        (WHOLE, 8, 12.6, 660.6),
        (WHOLE, 16, 18.26, 933.3),
        (WHOLE, 32, 27.87, 1230.0),
        (WHOLE, 64, 46.91, 1500.6),
    ),
    MeasuredServer("m3-cookbook", M3, "B200-SXM", "sglang", "fp8", "bf16", "2026-06", 8): (
        ((2048, 256), 64, 24.1, None),
    ),
    MeasuredServer("m3-cookbook", M3, "H200-SXM", "sglang", "bf16", "bf16", "2026-06", 8): (
        ((2048, 256), 64, 70.8, None),
        (WHOLE, 64, None, 550.0),
        (WHOLE, 256, None, 552.0),
    ),
    MeasuredServer("m3-cookbook", M3, "B300-SXM", "sglang", "fp8", "bf16", "2026-08", 4): (
        (WHOLE, 64, None, 4140.0),
        (WHOLE, 256, None, 6043.0),
    ),
    MeasuredServer("m3-cookbook", M3, "GB300-NVL72", "sglang", "fp8", "bf16", "2026-08", 4): (
        (WHOLE, 64, None, 4020.0),
        (WHOLE, 256, None, 6203.0),
    ),
    MeasuredServer("k3-cookbook", K3, "B300-SXM", "sglang", "mxfp4", "bf16", "2026-09", 8): (
        (WHOLE, 1, 8.51, 127.0),
        (WHOLE, 16, 19.47, 785.0),
        (WHOLE, 64, 40.19, 1395.0),
    ),
    MeasuredServer("k3-cookbook", K3, "B300-SXM", "sglang", "fp4", "bf16", "2026-09", 8): (
        (WHOLE, 1, 10.12, 107.0),
        (WHOLE, 16, 20.94, 742.0),
        (WHOLE, 64, 41.55, 1373.0),
    ),
    MeasuredServer("k3-cookbook", K3, "MI355X", "sglang", "mxfp4", "bf16", "2026-07", 8): (
        (WHOLE, 2, 20.86, 102.5),
        (WHOLE, 4, 22.62, 184.34),
    ),
}
"""Everything that was found, by deployment."""


def newest_rows() -> pd.DataFrame:
    """Cases of `plan predict`, with `set`, and `measured_tpot_ms` and `measured_tokens_per_s` where known."""
    found = []
    for served, runs in RUNS.items():
        ratio = INFERENCEX_LENGTH_RATIO if served.set.endswith("inferencex") else 1.0
        for (prompt, output), clients, tpot_ms, rate in runs:
            found.append(
                {
                    "set": served.set,
                    "model": served.model,
                    "hardware": served.hardware,
                    "backend": served.framework,
                    "weights": served.weights,
                    "kv": served.kv,
                    "tp": served.tp,
                    "dp": served.dp,
                    "ep": served.dp if served.dp > 1 else 1,
                    "software_date": served.month,
                    "max_sequences": served.sequences,
                    "max_batched_tokens": served.batched_tokens,
                    "prompts_aligned": 1 if served.aligned else None,
                    "length_variation": 0.0 if served.set == ALIKE_SET else None,
                    "mode": "closed_loop",
                    "input_tokens": round(ratio * prompt),
                    "output_tokens": round(ratio * output),
                    "concurrency": clients,
                    "measured_tpot_ms": np.nan if tpot_ms is None else tpot_ms,
                    "measured_tokens_per_s": np.nan if rate is None else rate,
                }
            )
    rows = pd.DataFrame(found)
    return rows.assign(case_id=[f"newest-{row}" for row in range(len(rows))])
