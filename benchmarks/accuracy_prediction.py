"""Predictions of published rows by the ordinary `predict`, and their errors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
from benchmarks.accuracy_rules import excluded
from benchmarks.queueing_launches import ADMISSION_COLUMNS, ROUNDS, WITHOUT_PREFIXES, admission

from fleetplan.perfmodel.predict import predict

_MS_PER_S = 1e3


def predicted(rows: pd.DataFrame, folder: Path) -> pd.DataFrame:
    """Add predictions, the rule that excludes a row, and signed relative errors.

    Parameters
    ----------
    rows : pandas.DataFrame
        From `fleetplan` benchmarks' `published_rows`.
    folder : Path
        Where relative paths of model configs start.

    Returns
    -------
    pandas.DataFrame
        With `status` and `reason` of the prediction, `rule`, and the columns `tpot_error`, `ttft_error`,
        `prefill_error`, `throughput_error` and `latency_error`: predicted over measured less one, NaN where a
        row has no such figure, is excluded or was refused.
    """
    found = predict(_cases(rows), folder)
    joined = rows.assign(
        status=found["status"],
        reason=found["reason"],
        source_of_times=found["source"],
        predicted_ttft_ms=found["ttft_ms"],
        predicted_tpot_ms=found["tpot_ms"],
        predicted_latency_s=found["latency_ms"] / _MS_PER_S,
        predicted_tokens_per_s=found["output_tokens_per_s_per_accelerator"],
        predicted_memory_gib=found["memory_gib_per_accelerator"],
    )
    joined = joined.assign(rule=excluded(joined))
    usable = (joined["rule"] == "") & (joined["status"] == "ok")
    closed = joined["mode"].isin(["closed_loop", "burst"])
    measured = {
        "tpot_error": joined["tpot_ms"].where(closed),
        "ttft_error": joined["ttft_ms"].where(joined["mode"] == "closed_loop"),
        "prefill_error": joined["ttft_ms"].where(~closed),
        "throughput_error": joined["output_tokens_per_s_per_accelerator"]
        .fillna(_identity(joined))
        .where(closed),
        "latency_error": joined["latency_s"].where(joined["mode"] == "static"),
    }
    ours = {
        "tpot_error": joined["predicted_tpot_ms"],
        "ttft_error": joined["predicted_ttft_ms"],
        "prefill_error": joined["predicted_ttft_ms"],
        "throughput_error": joined["predicted_tokens_per_s"],
        "latency_error": joined["predicted_latency_s"],
    }
    return joined.assign(**{name: (ours[name] / measured[name] - 1.0).where(usable) for name in measured})


def _identity(rows: pd.DataFrame) -> pd.Series[float]:
    """Tokens a second and accelerator that a closed loop of so many requests has by its own latencies."""
    request_ms = rows["ttft_ms"] + rows["tpot_ms"] * (rows["output_tokens"] - 1)
    rate: pd.Series[float] = (
        rows["load"] * rows["output_tokens"] / request_ms * _MS_PER_S / rows["n_accelerators"]
    )
    return rate


def _cases(rows: pd.DataFrame) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "case_id": rows["row_id"],
            "model": rows["model"],
            "hardware": rows["hardware"],
            "backend": rows["framework"],
            "weights": rows["weights"],
            "kv": rows["kv"],
            "mode": rows["mode"],
            "tp": rows["tp"],
            "pp": rows["pp"],
            "dp": rows["dp"],
            "ep": rows["ep"],
            "moe_tp": rows["moe_tp"].replace(0, np.nan),
            "input_tokens": rows["input_tokens"],
            "output_tokens": rows["output_tokens"],
            "batch": rows["load"],
            "sampling": rows["sampling"],
            "software_date": rows["month"],
            "activation_scales": rows["activation_scales"],
            "concurrency": rows["load"],
            "n_accelerators": rows["n_accelerators"],
            **_launched(rows),
        }
    )


def _launched(rows: pd.DataFrame) -> dict[str, list[float | None]]:
    """Columns of how the servers of closed loops let requests in, and of the requests that were sent."""
    closed = (rows["mode"] == "closed_loop").tolist()
    records = rows[list(ADMISSION_COLUMNS)].to_dict("records")
    rules = [admission(row) if loops else None for loops, row in zip(closed, records, strict=True)]
    sent = [
        ROUNDS * load if loops and mean else None
        for loops, mean, load in zip(closed, rows["ttft_statistic"] == "mean", rows["load"], strict=True)
    ]
    return {
        "prefix_cache": [0 if model in WITHOUT_PREFIXES else None for model in rows["model"]],
        "iterations_ahead": [None if each is None else each.iterations_ahead for each in rules],
        "polled_iterations": [None if each is None else each.polled_iterations for each in rules],
        "gathering_iterations": [None if each is None else each.gathering_iterations for each in rules],
        "n_requests": sent,
    }
