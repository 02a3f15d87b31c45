"""Disaggregated deployments of `silicon_sample.csv` that state the replicas of both phases and their clients.

A class of their own: prompts and generation have accelerators of their own, so that TTFT and TPOT test one
phase each. Recipes of srt-slurm started the servers and say what the rows do not.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd
from benchmarks.accuracy_bars import AccuracyBar
from benchmarks.accuracy_launches import REQUESTS_PER_CLIENT, streamed_tokens
from benchmarks.accuracy_rows import HARDWARE, MEAN_LENGTH_RATIO, weights_label
from benchmarks.accuracy_table import error_figures, markdown_table

from fleetplan.perfmodel.predict import predict

LARGEST_BLOCK_SPLIT: Final = 16
"""Slices of an expert of DeepSeek-V3 (2,048 wide) whose width is a whole block of 128: FP8 scaled in blocks
cannot be split further."""

_DEGREES: Final = ("tp_size", "pp_size", "attention_dp_size", "moe_tp_size", "moe_ep_size")


def disaggregated_rows(path: Path) -> pd.DataFrame:
    """Read the disaggregated rows of `silicon_sample.csv`, with their cases.

    Returns
    -------
    pandas.DataFrame
        The columns of a table of cases, `measured_ttft_ms`, `measured_tpot_ms`, `hardware`, `ep_width`,
        `model_class` and `stated` (False: the row does not count its clients, or the replicas of a phase).
    """
    table = pd.read_csv(path)
    table = table[table["mode"] == "disagg"].reset_index(drop=True)
    said = table["silicon_data_source"]
    compared = said.str.contains("gap-analysis")
    mean = np.where(compared, 1.0, MEAN_LENGTH_RATIO)
    prefill, decode = (_degrees(table, phase) for phase in ("prefill", "decode"))
    load = pd.to_numeric(said.str.extract(r"silicon_concurrency=(\d+)", expand=False))
    stated = table[["prefill_num_workers", "decode_num_workers"]].notna().all(axis=1) & load.notna()
    rows = pd.DataFrame(
        {
            "case_id": table["id"],
            "model": table["model_path"],
            "hardware": table["system"].map(HARDWARE),
            "backend": table["backend"],
            "weights": [
                weights_label(*each) for each in zip(table["model_path"], table["precision"], strict=True)
            ],
            "kv": np.where(_narrow_cache(table), "fp8", ""),
            "mode": "disaggregated",
            **decode,
            **{f"prefill_{name}": column for name, column in prefill.items()},
            "prefill_replicas": table["prefill_num_workers"],
            "decode_replicas": table["decode_num_workers"],
            "input_tokens": np.rint(mean * table["isl"]).astype(np.int64),
            "output_tokens": np.rint(mean * table["osl"]).astype(np.int64),
            "concurrency": load,
            "n_requests": REQUESTS_PER_CLIENT * load,
            "streamed_tokens": [
                streamed_tokens(*each)
                for each in zip(table["backend"], table["system"].map(HARDWARE), strict=True)
            ],
            # Requests come through Dynamo, not through the server of the framework.
            "front_end_ms": 0.0,
            "front_end_token_us": 0.0,
        }
    )
    names = table["model_path"].str.lower()
    return rows.assign(
        measured_ttft_ms=table["silicon_ttft_ms"],
        measured_tpot_ms=table["silicon_tpot_ms"],
        stated=stated,
        ep_width=decode["ep"],
        model_class=np.select(
            [names.str.contains("deepseek"), names.str.contains("kimi")], ["DeepSeek", "Kimi"], "other"
        ),
    )


def _narrow_cache(table: pd.DataFrame) -> pd.Series[bool]:
    """Rows with an FP8 cache: by the recipes, all of SGLang on Blackwell."""
    found: pd.Series[bool] = (table["backend"] == "sglang") & ~table["system"].str.startswith("h")
    return found


def _degrees(table: pd.DataFrame, phase: str) -> dict[str, pd.Series[int]]:
    """Degrees of a phase; experts that cannot be split as labelled are spread, as DeepEP does it."""
    tp, pp, dp, split, ep = (
        table[f"{phase}_{name}"].fillna(1).clip(lower=1).astype(np.int64) for name in _DEGREES
    )
    spread = (table["backend"] == "sglang") & (ep == 1) & (split > LARGEST_BLOCK_SPLIT)
    ep, split = ep.where(~spread, split), split.where(~spread, 1)
    # A row without experts' degrees leaves them to attention's.
    split = split.where(split * ep == tp * dp, (tp * dp) // ep)
    return {"tp": tp, "pp": pp, "dp": dp, "ep": ep, "moe_tp": split}


def predicted_pools(rows: pd.DataFrame, folder: Path) -> pd.DataFrame:
    """Add predictions and signed relative errors of the rows whose replicas and clients are stated."""
    stated = rows[rows["stated"]].reset_index(drop=True)
    found = predict(stated.drop(columns=["stated", "ep_width", "model_class"]), folder)
    ok = found["status"] == "ok"
    return stated.assign(
        status=found["status"],
        reason=found["reason"],
        predicted_ttft_ms=found["ttft_ms"],
        predicted_tpot_ms=found["tpot_ms"],
        ttft_error=(found["ttft_ms"] / stated["measured_ttft_ms"] - 1.0).where(ok),
        tpot_error=(found["tpot_ms"] / stated["measured_tpot_ms"] - 1.0).where(ok),
    )


def pool_bars(rows: pd.DataFrame) -> list[AccuracyBar]:
    """Return the bars of disaggregated rows, given rows with their errors."""
    return [
        AccuracyBar("TPOT, disaggregated, replicas stated", rows["tpot_error"], 8.0, 25.0),
        AccuracyBar("TTFT, disaggregated, replicas stated", rows["ttft_error"], 35.0),
    ]


def pool_sections(rows: pd.DataFrame) -> dict[str, str]:
    """Tabulate errors of disaggregated rows by hardware, by model, and by expert parallelism of decode."""
    found = {}
    for by, columns in (
        ("hardware", ["hardware", "backend"]),
        ("model class", ["model_class", "weights"]),
        ("expert parallelism", ["ep_width"]),
    ):
        body = [
            [*map(str, labels), error_figures(group["tpot_error"]), error_figures(group["ttft_error"])]
            for labels, group in rows.groupby(columns, sort=True)
        ]
        found[f"Errors of disaggregated deployments by {by}"] = markdown_table(
            [*columns, "TPOT", "TTFT"], body
        )
    return found
