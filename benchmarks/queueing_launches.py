"""How the servers of published closed loops let requests in, by their launch scripts.

Facts of InferenceX (github.com/SemiAnalysisAI/InferenceX, benchmarks/single_node/):

* vLLM ran with `--async-scheduling`; the schedulers of SGLang and TensorRT-LLM overlap by default. All make
  up one iteration before the last has ended.
* SGLang on B200 and B300 looks for requests every 10 decode iterations, and every 30 where there are many
  clients: dsr1_fp4_b200.sh, dsr1_fp8_b200.sh, dsr1_fp8_b300.sh, qwen3.5_bf16_b200.sh, qwen3.5_fp8_b200.sh
  (30 from 16 clients on), qwen3.5_fp4_b200.sh (30 from 5 clients on), qwen3.5_fp8_b300.sh (always 10). With
  attention-DP it looks before each. The scripts of H200 and AMD parts, and those of GLM-5, say nothing.
* TensorRT-LLM gathers prompts with 1,024 tokens in and out: of Llama-70B on fewer than eight accelerators for
  20 iterations (70b_fp8_h200_trt_slurm.sh), of DeepSeek in FP8 on B200 from 64 clients on for 40
  (dsr1_fp8_b200_trt.sh).

* The scripts of Qwen3.5 switch the prefix cache off (`--disable-radix-cache`).

NVIDIA's comparisons with Qwen3.5 repeat figures of InferenceX, so its scripts hold for them; of the other
clients there nothing is known beyond the defaults.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from benchmarks.accuracy_rows import MEAN_LENGTH_RATIO

from fleetplan.perfmodel.serving import Admission

ROUNDS: Final = 10
"""Prompts a client of InferenceX: its scripts ask for ten times the concurrency."""

AHEAD: Final = 1.0
"""Iterations that are made up before the running one has ended, in all three frameworks."""

SELDOM, OFTEN = 30.0, 10.0
"""Decode iterations between two looks for new requests of SGLang. Source: the scripts above."""

MANY_CLIENTS: Final = {"fp4": 5, "fp8": 16, "bf16": 16}
"""From how many clients on Qwen3.5's scripts look seldom, by weights; DeepSeek's do from 16 on."""

SHORT_TOKENS: Final = 1024
"""Nominal prompt and output of the runs whose prompts TensorRT-LLM gathers. [tokens]"""

LLAMA_70B: Final = "meta-llama/Llama-3.1-70B"

FEWER_THAN_HOST: Final = 8
"""Accelerators from which on the script of Llama-70B gathers no prompts."""

LLAMA_GATHERING, DEEPSEEK_GATHERING = 20.0, 40.0
"""`batch_wait_timeout_iters` of the scripts. [iterations]"""

DEEPSEEK_GATHERS_FROM: Final = 64
"""Clients from which on DeepSeek's script gathers prompts."""


ADMISSION_COLUMNS: Final = (
    "model", "model_class", "hardware", "framework", "weights", "source", "tp", "dp", "load",
    "nominal_input_tokens", "output_tokens",
)  # fmt: skip
"""What of a row says how its server let requests in."""

WITHOUT_PREFIXES: Final = ("Qwen/Qwen3.5-397B-A17B",)
"""Models with recurrent states, whose servers kept no prefixes."""


def admission(row: Mapping[str, Any]) -> Admission:
    """How the server of a row, of `benchmarks.accuracy_rows.published_rows`, let requests in.

    Of its columns, those of `ADMISSION_COLUMNS` decide.
    """
    return Admission(AHEAD, _polled(row), _gathering(row), prompts_apart=row["framework"] == "sglang")


def _polled(row: Mapping[str, Any]) -> float:
    if row["framework"] != "sglang" or row["hardware"] not in ("B200-SXM", "B300-SXM") or row["dp"] > 1:
        return 1.0
    clients, weights = row["load"], row["weights"]
    if row["model_class"] == "DeepSeek":
        four_in_fp8 = weights == "fp8" and row["tp"] < FEWER_THAN_HOST
        return OFTEN if four_in_fp8 or clients < MANY_CLIENTS["fp8"] else SELDOM
    if "Qwen3.5" in row["model"]:
        seldom = row["hardware"] == "B200-SXM" and clients >= MANY_CLIENTS[weights]
        return SELDOM if seldom else OFTEN
    return 1.0


def _gathering(row: Mapping[str, Any]) -> float:
    output_tokens = round(float(row["output_tokens"]) / MEAN_LENGTH_RATIO)
    as_long = row["nominal_input_tokens"] == SHORT_TOKENS and output_tokens == SHORT_TOKENS
    if row["framework"] != "trtllm" or row["source"] != "inferencex" or not as_long:
        return 0.0
    if row["model"] == LLAMA_70B:
        return LLAMA_GATHERING if row["tp"] < FEWER_THAN_HOST else 0.0
    in_fp8 = row["model_class"] == "DeepSeek" and row["weights"] == "fp8" and row["hardware"] == "B200-SXM"
    return DEEPSEEK_GATHERING if in_fp8 and row["load"] >= DEEPSEEK_GATHERS_FROM else 0.0
