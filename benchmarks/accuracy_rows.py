"""Published measurements as rows of one shape, whichever file they come from.

Two files are understood: `silicon_sample.csv`, which the package aiconfigurator-core carries, and tables of
the fuller format with one row a published measurement (`--measurements`), which hold static batches as well.
"""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd
from benchmarks.accuracy_launches import (
    activation_scales,
    cache_dtypes,
    on_one_host,
    release_months,
    samplings,
    unrecorded_groups,
)

COLUMNS: Final = (
    "row_id",
    "source",
    "model",
    "model_class",
    "hardware",
    "framework",
    "version",
    "month",
    "weights",
    "kv",
    "mode",
    "tp",
    "pp",
    "dp",
    "ep",
    "moe_tp",
    "n_accelerators",
    "nominal_input_tokens",
    "input_tokens",
    "output_tokens",
    "load",
    "engine_load",
    "load_is_stated",
    "sampling",
    "activation_scales",
    "ttft_ms",
    "ttft_statistic",
    "tpot_ms",
    "latency_s",
    "output_tokens_per_s_per_accelerator",
    "unit_is_ambiguous",
    "quality",
)
"""Columns of a row. `source` is inferencex, gap_analysis, trtllm_docs, argonne, splitwise or rocm; tokens are
means; `kv` is empty where the framework's default holds; `sampling` is greedy or top-p;
`activation_scales` is dynamic where they are found while the model runs; `month` is that of the software;
`ttft_statistic` is mean or median; `load` is the concurrency of all accelerators in closed_loop and burst
mode, and else the batch; `load_is_stated` is False where the row names no concurrency and `load` is the batch
limit of its engine; `engine_load` is the load of one engine where the row tells it; `unit_is_ambiguous` where
a throughput, and the latency that follows from it, may be of one accelerator or of all."""

MEAN_LENGTH_RATIO: Final = 0.9
"""Mean length over nominal length in InferenceMAX and InferenceX, which draw lengths uniformly from 0.8 to
1.0 of the nominal one. Source: the benchmark's documented random range ratio of 0.8."""

_RELEASED_TOGETHER: Final = ("gap_analysis", "sglang", "Qwen/Qwen3-32B", "H100-SXM")
"""Source, framework, model and hardware of the one series whose requests are all released at once: its mean
TTFT is 1.1 times (0.9 to 1.5 for four rows of five) that of so many prompts one after the other. Elsewhere it
is below, as prompts come one by one."""

_SOURCES: Final = {
    "InferenceX dump": "inferencex",
    "InferenceX API": "inferencex",
    "InferenceMAX": "inferencex",
    "gap-analysis": "gap_analysis",
    "TensorRT-LLM docs": "trtllm_docs",
    "Argonne": "argonne",
    "Splitwise": "splitwise",
    "AMD ROCm": "rocm",
}
HARDWARE: Final = {
    "B200-SXM-180GB": "B200-SXM",
    "B300-SXM": "B300-SXM",
    "H100-SXM-80GB": "H100-SXM",
    "H200-SXM-141GB": "H200-SXM",
    "A100-SXM-80GB": "A100-SXM-80GB",
    # Argonne's run on Polaris, by the file system of their scripts, whose A100 have 40 GB.
    "A100 (variant not stated)": "A100-SXM-40GB",
    "H100 (variant not stated)": "H100-SXM",
    "GB200-NVL72": "GB200-NVL72",
    "L40S": "L40S",
    "MI300X": "MI300X",
    "MI325X": "MI325X",
    "MI355X": "MI355X",
    "b200_sxm": "B200-SXM",
    "b300_sxm": "B300-SXM",
    "h100_sxm": "H100-SXM",
    "h200_sxm": "H200-SXM",
    "gb200": "GB200-NVL72",
    "gb300": "GB300-NVL72",
}
_FRAMEWORKS: Final = {
    "vllm": "vllm",
    "vLLM": "vllm",
    "sglang": "sglang",
    "trtllm": "trtllm",
    "trt": "trtllm",
    "TensorRT-LLM": "trtllm",
    "trtllm(gptSessionBenchmark)": "trtllm",
    "vllm(bench latency)": "vllm",
    "vllm(bench throughput)": "vllm",
    "vllm(early 2024)/HF": "vllm",
    # The engine of AMD schedules as vLLM does, and its hardware has no operator tables of any framework.
    "atom": "vllm",
}
"""Frameworks of ours; others keep their name, and no operator table stands for them."""
_MODELS: Final = {
    "Llama-2-70B": "meta-llama/Llama-2-70b-hf",
    "Llama-3.1-70B": "meta-llama/Llama-3.1-70B",
    # The first LLaMA 7B has the shapes of the second.
    "LLaMA-7B": "meta-llama/Llama-2-7b-hf",
    "huggyllama/llama-7b": "meta-llama/Llama-2-7b-hf",
    "Mistral 7B": "mistralai/Mistral-7B-v0.1",
    "Mixtral 8x7B": "mistralai/Mixtral-8x7B-v0.1",
}
_CLASSES: Final = (
    ("deepseek", "DeepSeek"),
    ("gpt-oss", "gpt-oss"),
    ("kimi", "other MoE"),
    ("glm-5", "other MoE"),
    ("minimax", "other MoE"),
    ("qwen3-235b", "other MoE"),
    ("qwen3.5", "other MoE"),
    ("mixtral", "other MoE"),
)
_DAY: Final = r"(20\d\d-\d\d-\d\d)"
_MAY_HIDE_SPECULATION: Final = ("deepseek", "qwen3.5", "kimi", "glm", "minimax")
"""Models whose InferenceX rows do not say whether they speculate, in `silicon_sample.csv`."""


def packaged_file() -> Path | None:
    """Find `silicon_sample.csv` of aiconfigurator-core without importing it; None where it is absent."""
    spec = importlib.util.find_spec("aiconfigurator_core")
    if spec is None or not spec.submodule_search_locations:
        return None
    path = Path(spec.submodule_search_locations[0]) / "systems" / "silicon_sample.csv"
    return path if path.is_file() else None


def published_rows(path: Path) -> pd.DataFrame:
    """Read a file of measurements into `COLUMNS`; a missing figure is NaN.

    Raises
    ------
    ValueError
        The columns are those of neither format.
    """
    table = pd.read_csv(path, dtype=str, keep_default_na=False)
    if "silicon_data_source" in table.columns:
        rows = _packaged(table)
    elif "row_id" in table.columns:
        rows = _full(table)
    else:
        raise ValueError(f"{path}: neither 'row_id' nor 'silicon_data_source' is among its columns")
    names = rows["model"].str.lower()
    rows["model_class"] = "dense"
    for part, model_class in _CLASSES:
        rows.loc[names.str.contains(part, regex=False), "model_class"] = model_class
    in_groups = unrecorded_groups(rows, rows["day"])
    rows["ep"] = rows["ep"].where(~in_groups, rows["tp"])
    rows["moe_tp"] = rows["moe_tp"].where(~in_groups, 1)
    together = rows[["source", "framework", "model", "hardware"]].eq(list(_RELEASED_TOGETHER)).all(axis=1)
    rows.loc[together & (rows["mode"] == "closed_loop"), "mode"] = "burst"
    rows["sampling"] = samplings(rows)
    rows["kv"] = cache_dtypes(rows)
    rows["month"] = release_months(rows)
    rows["activation_scales"] = activation_scales(rows)
    random_lengths = rows["source"] == "inferencex"
    for column in ("input_tokens", "output_tokens"):
        mean = np.where(random_lengths, np.rint(MEAN_LENGTH_RATIO * rows[column]), rows[column])
        rows[column] = mean.astype(np.int64)
    return rows[list(COLUMNS)].reset_index(drop=True)


def _numbers(column: pd.Series[str]) -> pd.Series[float]:
    return pd.to_numeric(column.replace("", None))


def _full(table: pd.DataFrame) -> pd.DataFrame:
    mode = table["mode"].map({"agg": "closed_loop", "static": "static", "static-prefill": "prefill"})
    mode = mode.where(~table["loop"].str.startswith("offline"), "offline")
    closed = mode == "closed_loop"
    load = _numbers(table["concurrency"]).where(closed, _numbers(table["batch"]))
    model = table["model"].map(_MODELS).fillna(table["model"])
    return pd.DataFrame(
        {
            "row_id": table["row_id"],
            "source": _first_match(table["source"], _SOURCES),
            "model": model,
            "hardware": table["hardware"].map(HARDWARE).fillna(table["hardware"]),
            "framework": table["runtime"].map(_FRAMEWORKS).fillna(table["runtime"]),
            "version": table["date_version"],
            "month": table["date_version"].str.extract(r"(20\d\d-\d\d)", expand=False).fillna(""),
            "day": table["date_version"].str.extract(_DAY, expand=False).fillna(""),
            "weights": [
                weights_label(name, precision)
                for name, precision in zip(table["model"], table["precision"], strict=True)
            ],
            "mode": mode,
            **_degrees(table["tp"], table["pp"], table["dp"], table["ep"], table["moe_tp"]),
            "n_accelerators": _numbers(table["n_gpus"]).astype(np.int64),
            "nominal_input_tokens": _numbers(table["isl"]),
            "input_tokens": _numbers(table["isl"]),
            "output_tokens": _numbers(table["osl"]),
            "load": load,
            "engine_load": np.nan,
            "load_is_stated": True,
            "ttft_ms": _numbers(table["ttft_ms"]),
            "ttft_statistic": table["ttft_stat"].replace("", "mean"),
            "tpot_ms": _numbers(table["tpot_ms"]),
            "latency_s": _numbers(table["e2e_latency_s"]),
            "output_tokens_per_s_per_accelerator": _numbers(table["out_tok_s_per_gpu"]),
            "unit_is_ambiguous": table["notes"].str.contains("unit ambiguous"),
            "quality": table["quality"],
        }
    )


def _packaged(table: pd.DataFrame) -> pd.DataFrame:
    table = table[table["mode"] == "agg"]
    said = table["silicon_data_source"]
    source = pd.Series(
        np.where(said.str.contains("gap-analysis"), "gap_analysis", "inferencex"), index=table.index
    )
    hides = table["model_path"].str.lower().str.contains("|".join(_MAY_HIDE_SPECULATION))
    concurrency = _numbers(said.str.extract(r"silicon_concurrency=(\d+)", expand=False).fillna(""))
    degrees = _degrees(
        table["tp_size"],
        table["pp_size"],
        table["attention_dp_size"],
        table["moe_ep_size"],
        table["moe_tp_size"],
    )
    degrees = on_one_host(degrees, table["system"].str.startswith("gb"))
    each = _numbers(table["batch_size"])
    return pd.DataFrame(
        {
            "row_id": table["id"],
            "source": source,
            "model": table["model_path"],
            "hardware": table["system"].map(HARDWARE).fillna(table["system"]),
            "framework": table["backend"],
            "version": table["backend_version"],
            "month": said.str.extract(r"measured=(20\d\d-\d\d)", expand=False).fillna(""),
            "day": said.str.extract("measured=" + _DAY, expand=False).fillna(""),
            "weights": [
                weights_label(name, precision)
                for name, precision in zip(table["model_path"], table["precision"], strict=True)
            ],
            "mode": "closed_loop",
            **degrees,
            "n_accelerators": degrees["tp"] * degrees["pp"] * degrees["dp"],
            "nominal_input_tokens": _numbers(table["isl"]),
            "input_tokens": _numbers(table["isl"]),
            "output_tokens": _numbers(table["osl"]),
            "load": concurrency.fillna(each * degrees["dp"]),
            # By the ranks as the row has them: some of its labels are undone above.
            "engine_load": each * _numbers(table["attention_dp_size"]).fillna(1).clip(lower=1),
            "load_is_stated": concurrency.notna(),
            "ttft_ms": _numbers(table["silicon_ttft_ms"]),
            "ttft_statistic": "mean",
            "tpot_ms": _numbers(table["silicon_tpot_ms"]),
            "latency_s": np.nan,
            "output_tokens_per_s_per_accelerator": np.nan,
            "unit_is_ambiguous": False,
            "quality": np.where(hides & (source == "inferencex"), "B", "A"),
        }
    )


def _degrees(
    tp: pd.Series[str], pp: pd.Series[str], dp: pd.Series[str], ep: pd.Series[str], moe_tp: pd.Series[str]
) -> dict[str, pd.Series[int]]:
    """Degrees of parallelism; one is meant by an empty or zero cell, and a left-out moe_tp stays 0."""
    one = {
        name: _numbers(column).fillna(1) for name, column in (("tp", tp), ("pp", pp), ("dp", dp), ("ep", ep))
    }
    degrees = {name: column.clip(lower=1).astype(np.int64) for name, column in one.items()}
    return degrees | {"moe_tp": _numbers(moe_tp).fillna(0).astype(np.int64)}


def weights_label(model: str, precision: str) -> str:
    """Return the label of the weights: what checkpoints of that name hold, whatever the table calls it."""
    if "gpt-oss" in model:
        return "mxfp4"
    # Rows without a precision are of unquantised checkpoints.
    return {"": "bf16", "fp16": "bf16", "fp16/bf16": "bf16"}.get(precision, precision)


def _first_match(names: pd.Series[str], parts: dict[str, str]) -> list[str]:
    found = []
    for name in names:
        matches = [short for part, short in parts.items() if re.search(re.escape(part), name)]
        found.append(matches[0] if matches else name)
    return found
