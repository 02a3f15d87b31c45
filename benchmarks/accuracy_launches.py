"""How the servers of published rows were launched, where the rows do not say so, or say it wrongly."""

from __future__ import annotations

from typing import Final

import numpy as np
import pandas as pd

HOST_ACCELERATORS: Final = 8
"""Accelerators of a host of all systems but the racks."""

FP8_CACHE: Final = (
    ("trtllm", "", ""),
    ("vllm", "B200-SXM", ""),
    ("sglang", "B200-SXM", "deepseek-ai/"),
    ("sglang", "B300-SXM", "deepseek-ai/"),
)
"""Framework, hardware and model (how it begins; empty is any) of InferenceX rows with an FP8 cache.

Source: the launch scripts in its repository (benchmarks/70b_fp8_b200_docker.sh, gptoss_fp4_b200.sh,
dsr1_fp8_b200.sh and their like). Those of vLLM on H100 and H200 ask for an FP8 cache as well; but before pull
request 96 to vLLM's flash-attention (September 2025, head size 128) decoding over it took as long as over a
BF16 one, so these rows are priced as BF16."""

DRAWN_MODELS: Final = ("Qwen/Qwen3", "meta-llama/Llama-3.1-8B-Instruct", "nvidia/Llama-3.1-8B-Instruct")
"""How the names of models begin whose published generation_config.json names a top-p. Source: those files.

A client that asks for no temperature gets it (documentation of vLLM, `--generation-config`; of SGLang,
`--sampling-defaults`), as NVIDIA's comparisons seem to have: nothing says so, but their TPOT grows by a
constant for each sequence, whatever the tensor parallelism. InferenceX asks for temperature 0, as vLLM's
benchmark did until January 2026 (vLLM pull request 32723)."""

RELEASE_MONTHS: Final = {
    "v0.5": "2023-10",
    "v0.6.1": "2023-12",
    "v0.8.0": "2024-02",
    "v0.9.0": "2024-04",
    "0.12.0": "2025-12",
}
"""When the versions of TensorRT-LLM came out whose documentation has tables of static batches, and that of
vLLM in NVIDIA's comparisons.

Source: dates of their releases on GitHub."""

ARGONNE_MONTHS: Final = {"vllm": "2024-09", "trtllm": "2024-07"}
"""Framework and month of the software of Argonne's static batches.

Source: argonne-lcf/LLM-Inference-Bench. Scripts of vLLM, the requirements of A100 (torch 2.4, vllm-flash-attn
2.6.1) and results are of 20 September 2024; the requirements of TensorRT-LLM name 0.11.0 of July."""

SPLITWISE_MONTH: Final = "2023-11"
"""Month of the software of Splitwise's profile.

Source: the month of its paper (arXiv 2311.18677), which names no version of vLLM."""

MADE_AT_LOAD: Final = ("Qwen/Qwen3-32B",)
"""Checkpoints in BF16 that rows of NVIDIA's comparisons under TensorRT-LLM name with weights in FP8.

These are made while they are loaded, and then nobody knows the scales of the activations beforehand. Other
rows of the same comparisons name checkpoints in FP8 (nvidia/Llama-3.1-8B-Instruct-FP8,
Qwen/Qwen3-235B-A22B-FP8). That the name is meant literally is inferred: no file says so. Llama-3.1-70B of
InferenceX is nvidia/Llama-3.3-70B-Instruct-FP8 by its launch scripts, which has static scales."""


STREAMED_TOKENS: Final = (
    ("sglang", "B200-SXM", 30),
    ("sglang", "", 50),
    ("vllm", "", 32),
    ("trtllm", "", 20),
)
"""Framework, hardware (empty is any) and tokens that the servers of disaggregated rows send at a time.

A client sees the first of them together. Source: the recipes that launched them, `stream-interval` of
SGLang in ishandhanani/srt-slurm (b200-fp8/8k1k.yaml; gb200-fp4/1k1k/max-tpt.yaml and
gb200-fp8/1k1k/mid-curve.yaml), of vLLM in NVIDIA/srt-slurm-recipes (MiniMax-M2.5 on GB200),
`stream_interval` of TensorRT-LLM in trtllm/b200-fp8/1k1k/stp (its recipes for H200 say 100, which the TTFT
of those rows contradicts)."""

REQUESTS_PER_CLIENT: Final = 10
"""Requests of each client of InferenceX. Source: its benchmark scripts (`--num-prompts $(( CONC * 10 ))`),
and sa-bench of srt-slurm for disaggregated rows."""


UNRECORDED_DAY: Final = "2025-11-02"
"""Day of runs of InferenceX whose rows say that experts are not split into groups, though they were."""

UNRECORDED_GROUPS: Final = (("DeepSeek", ""), ("gpt-oss", "H200-SXM"))
"""Class of models and hardware (empty is any) of those runs under TensorRT-LLM: as many groups as ranks.

Source: its launch scripts of that time (dsr1_fp4_b200_trt_slurm.sh: EP_SIZE is TP from 16, 32 or no clients
on, by lengths, and all these rows have as many), and InferenceX's own aggregate of 13 November 2025, which
states ep = tp for the same loads: 16 are in both, with a TPOT that differs by 0.8 % (median), 4 % at most.
Seventeen later runs of DeepSeek that state ep = tp differ from them by 1 % (median)."""


def unrecorded_groups(rows: pd.DataFrame, days: pd.Series[str]) -> pd.Series[bool]:
    """Tell which rows ran with an expert group for each rank, though they name one group.

    Parameters
    ----------
    rows : pandas.DataFrame
        With their source, framework, class of model, hardware and degrees.
    days : pandas.Series
        When they were measured (YYYY-MM-DD).
    """
    one_group = (rows["ep"] == 1) & (rows["dp"] == 1) & (rows["framework"] == "trtllm")
    of_that_day = (rows["source"] == "inferencex") & (days == UNRECORDED_DAY)
    named = pd.Series(data=False, index=rows.index)
    for model_class, hardware in UNRECORDED_GROUPS:
        named |= (rows["model_class"] == model_class) & rows["hardware"].str.startswith(hardware)
    return one_group & of_that_day & named


def release_months(rows: pd.DataFrame) -> pd.Series[str]:
    """Month of the software: what the row says, or when the version came out that it names."""
    unsaid = (rows["source"] == "trtllm_docs") | (rows["month"] == "")
    named = rows["version"].str.removeprefix("vllm ").map(RELEASE_MONTHS)
    named = named.where(rows["source"] != "argonne", rows["framework"].map(ARGONNE_MONTHS))
    named = named.where(rows["source"] != "splitwise", SPLITWISE_MONTH)
    return rows["month"].where(~unsaid, named).fillna("")


def activation_scales(rows: pd.DataFrame) -> pd.Series[str]:
    """How activations were quantised where the weights are in FP8: dynamic, or '' for static or unknown."""
    compared = (rows["source"] == "gap_analysis") & (rows["framework"] == "trtllm")
    found = compared & (rows["weights"] == "fp8") & rows["model"].isin(MADE_AT_LOAD)
    return pd.Series(np.where(found, "dynamic", ""), index=rows.index)


def cache_dtypes(rows: pd.DataFrame) -> pd.Series[str]:
    """Data type of the cache; '' where the framework's default holds."""
    found = pd.Series("", index=rows.index)
    published = rows["source"] == "inferencex"
    for framework, hardware, model in FP8_CACHE:
        same = (rows["framework"] == framework) & rows["hardware"].str.startswith(hardware)
        found[published & same & rows["model"].str.startswith(model)] = "fp8"
    return found


def cache_dtype(framework: str, weights: str, kv: str) -> str:
    """Data type of the cache of a row, the framework's default where `kv` is empty.

    The default is that of `fleetplan.perfmodel.predict.cases.parse_cases`.
    """
    narrow = framework == "trtllm" and weights in ("fp8", "fp4")
    return kv or ("fp8" if narrow else "bf16")


def samplings(rows: pd.DataFrame) -> pd.Series[str]:
    """How tokens were chosen: greedy, or top-p."""
    drawn = (rows["source"] == "gap_analysis") & rows["model"].str.startswith(DRAWN_MODELS)
    # What TensorRT-LLM does by default is the likeliest token.
    taken = np.where(drawn & (rows["framework"] != "trtllm"), "top-p", "greedy")
    return pd.Series(taken, index=rows.index)


def streamed_tokens(framework: str, hardware: str) -> int:
    """Tokens that a server sends at a time."""
    return next(
        tokens for name, part, tokens in STREAMED_TOKENS if name == framework and part in ("", hardware)
    )


def on_one_host(degrees: dict[str, pd.Series[int]], is_rack: pd.Series[bool]) -> dict[str, pd.Series[int]]:
    """Undo that `silicon_sample.csv` multiplies the tensor or data parallelism of some rows by their `ep`.

    Tensor parallelism of 16 with 4 expert groups, and of 64 with 8, on hosts of eight, and the split of an
    expert by the same factor: 124 such rows stand with equal TTFT and TPOT, as 4 with 4 and 8 with 8, in
    InferenceX's own tables.

    Parameters
    ----------
    degrees : dict[str, pandas.Series]
        tp, pp, dp, ep and moe_tp, of which 0 is not stated.
    is_rack : pandas.Series
        Rows of systems without hosts of eight.
    """
    tp, dp, ep, split = (degrees[name] for name in ("tp", "dp", "ep", "moe_tp"))
    multiplied = ~is_rack & (tp * dp > HOST_ACCELERATORS)
    undone = dict(degrees)
    for name, other in (("tp", dp), ("dp", tp)):
        taken = multiplied & (other == 1) & (degrees[name] % ep == 0)
        undone[name] = degrees[name].where(~taken, degrees[name] // ep)
        stated = taken & (split > 0)
        undone["moe_tp"] = undone["moe_tp"].where(~stated, (split // ep).clip(lower=1))
    return undone
