"""TPOT of the same rows by aiconfigurator, run in this process from its own package: only an oracle."""

from __future__ import annotations

import importlib
import logging
from typing import Any, Final

import numpy as np
import pandas as pd
from benchmarks.accuracy_fits import SEED
from benchmarks.accuracy_launches import cache_dtype

from fleetplan.fleet.catalog import accelerators

SAMPLE_ROWS: Final = 500
"""Rows that the peer is asked for: about a tenth of a second each."""

PREFILL_TOKENS: Final = 8192
"""Prompt tokens an iteration that the peer is given: the limit that our own model uses."""

_GEMM: Final = {
    "bf16": "bfloat16",
    "fp8": "fp8_static",
    "fp4": "nvfp4",
    "int4": "bfloat16",
    "mxfp4": "bfloat16",
}
_MOE: Final = {"bf16": "bfloat16", "fp8": "fp8_block", "fp4": "nvfp4", "int4": "int4_wo"}
_NEWEST: Final = {"vllm": "0.24.0", "sglang": "0.5.14", "trtllm": "1.3.0rc20"}
_MODELS: Final = {
    "meta-llama/Llama-3.1-70B": "meta-llama/Meta-Llama-3.1-70B",
    "meta-llama/Llama-3.1-8B-Instruct": "meta-llama/Meta-Llama-3.1-8B",
    "nvidia/Llama-3.1-8B-Instruct-FP8": "meta-llama/Meta-Llama-3.1-8B",
    "deepseek-ai/DeepSeek-R1-0528": "deepseek-ai/DeepSeek-R1",
}


def peer_errors(rows: pd.DataFrame) -> pd.Series[float]:
    """Signed relative TPOT errors of the peer on a seeded sample of closed-loop rows, NaN where it refuses.

    Parameters
    ----------
    rows : pandas.DataFrame
        With predictions; only rows with a `tpot_error` of ours in closed loops on measured systems are asked.
    """
    asked = rows[rows["tpot_error"].notna() & (rows["mode"] == "closed_loop")]
    asked = asked[asked["hardware"].map(_systems()).notna()]
    asked = asked.sample(min(SAMPLE_ROWS, len(asked)), random_state=SEED)
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        times = [_tpot_ms(row) for row in asked.to_dict("records")]
    finally:
        logging.disable(before)
    return pd.Series(times, index=asked.index, dtype=float) / asked["tpot_ms"] - 1.0


def _systems() -> dict[str, str | None]:
    return {name: part.measured_system for name, part in accelerators().items()}


def _tpot_ms(row: dict[str, Any]) -> float:
    sdk = "aiconfigurator_core.sdk"
    config = importlib.import_module(f"{sdk}.config")
    database_of = importlib.import_module(f"{sdk}.perf_database").get_database
    model_of = importlib.import_module(f"{sdk}.models").get_model
    backend_of = importlib.import_module(f"{sdk}.backends.factory").get_backend
    framework = row["framework"]
    try:
        database = database_of(_systems()[row["hardware"]], framework, _NEWEST[framework])
        name = _MODELS.get(row["model"], row["model"])
        model = model_of(name, config.ModelConfig(**_model_config(row)), framework)
        requests = config.RuntimeConfig(
            batch_size=max(1, int(row["load"] // row["dp"])),
            isl=int(row["input_tokens"]),
            osl=int(row["output_tokens"]),
        )
        summary = backend_of(framework).run_agg(model, database, requests, ctx_tokens=PREFILL_TOKENS)
        return float(summary.get_result_dict()["tpot"])
    except Exception:
        return float(np.nan)


def _model_config(row: dict[str, Any]) -> dict[str, Any]:
    common = importlib.import_module("aiconfigurator_core.sdk.common")
    weights, dense = row["weights"], row["model_class"] == "dense"
    narrow = cache_dtype(row["framework"], weights, row["kv"]) == "fp8"
    gemm = "fp8_block" if weights == "fp8" and not dense else _GEMM[weights]
    blackwell = row["hardware"].startswith(("B", "GB"))
    mxfp4 = "w4a8_mxfp4_mxfp8" if blackwell else "w4a16_mxfp4"
    stage = int(row["tp"] * row["dp"])
    return {
        "tp_size": int(row["tp"]),
        "pp_size": int(row["pp"]),
        "attention_dp_size": int(row["dp"]),
        "moe_tp_size": 1 if dense else stage // int(row["ep"]),
        "moe_ep_size": 1 if dense else int(row["ep"]),
        "gemm_quant_mode": common.GEMMQuantMode[gemm],
        "moe_quant_mode": common.MoEQuantMode[_MOE.get(weights, mxfp4)],
        "kvcache_quant_mode": common.KVCacheQuantMode["fp8" if narrow else "bfloat16"],
        # It has attention in FP8 for TensorRT-LLM alone.
        "fmha_quant_mode": common.FMHAQuantMode[
            "fp8" if narrow and row["framework"] == "trtllm" else "bfloat16"
        ],
    }
