"""Published mean TTFT of closed loops against the closed form and the simulator, with unscaled step times.

What is known of how a row was made decides what it can say. InferenceX sends ten prompts a client, all
clients at once at the start, with lengths from 0.8 to 1.0 of the nominal ones; its vLLM rows of the FP8
checkpoint keep a BF16 cache and its TensorRT-LLM rows an FP8 one. TensorRT-LLM rows of Llama-70B with 1,024
tokens in and out on fewer than eight accelerators ran with `batch_wait_timeout_iters: 20`: a prompt waits for
up to 20 iterations, which is added as 19 TPOTs.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd
from benchmarks.accuracy_rows import packaged_file, published_rows
from benchmarks.queueing_bars import drawn, simulated_closed

from fleetplan.fleet.catalog import accelerators
from fleetplan.fleet.errors import InputError
from fleetplan.fleet.inventory import Precision
from fleetplan.perfmodel.architecture import UnsupportedArchitecture
from fleetplan.perfmodel.configurations import layout_problem
from fleetplan.perfmodel.optables.times import UnsupportedDtype
from fleetplan.perfmodel.parallelism import Parallelism
from fleetplan.perfmodel.phases import Evaluator, build_evaluator
from fleetplan.perfmodel.queueing.closed import closed_loop
from fleetplan.perfmodel.queueing.iteration_times import IterationTimes, Lengths
from fleetplan.perfmodel.replay.deployed import DeployedEngine, deployed_engine

ROUNDS: Final = 10
"""Prompts a client of InferenceX: its scripts ask for ten times the concurrency."""

FRONT_END_MS: Final = 15.0
"""Time of a request outside the engine: HTTP, tokenisation, the first token's way back. [ms]
Source: 10 to 20 ms is what published rows of one request at a time have beyond their prompt."""

BATCH_WAIT_TPOTS: Final = 19
"""Iterations that a prompt waits where TensorRT-LLM collects a batch for up to 20 of them."""

HELD_OUTPUT_RATIO: Final = 0.55
"""Part of its output that a resident sequence holds in the mean, to tell rows that the cache limits."""

SEVENTY_BILLION: Final = "meta-llama/Llama-3.1-70B"


@dataclass(frozen=True, slots=True)
class MeasuredRow:
    """A published row with what the model says of it.

    Attributes
    ----------
    measured_ms, formula_ms, simulated_ms : float
        Mean TTFT; NaN where it was not simulated. [ms]
    seventy_billion : bool
        Whether it is of Llama-70B on H100 or H200, with a known client, and not limited by its cache.
    """

    measured_ms: float
    formula_ms: float
    simulated_ms: float
    seventy_billion: bool


def measured_rows(path: Path | None, seed: int) -> list[MeasuredRow]:
    """Rows of a file of measurements, or of the one that aiconfigurator-core carries; none without either."""
    source = path or packaged_file()
    if source is None:
        return []
    rows = published_rows(source)
    rows = rows[(rows["mode"] == "closed_loop") & rows["ttft_ms"].notna() & (rows["pp"] == 1)]
    engines: dict[tuple[object, ...], tuple[DeployedEngine, Evaluator] | None] = {}
    found = []
    for _, row in rows.iterrows():
        key = tuple(
            row[name] for name in ("model", "hardware", "framework", "weights", "tp", "dp", "ep", "moe_tp")
        )
        if key not in engines:
            engines[key] = _engine(row)
        known = engines[key]
        if known is not None:
            found.append(_row(row, known[0], seed))
    return found


def _engine(row: pd.Series) -> tuple[DeployedEngine, Evaluator] | None:
    """What simulates a row; None for hardware, models and layouts that are not understood."""
    part = accelerators().get(row["hardware"])
    if part is None or row["framework"] not in ("vllm", "sglang", "trtllm"):
        return None
    kv = "fp8" if row["framework"] == "trtllm" else "bf16"
    tp, dp, ep = int(row["tp"]), int(row["dp"]), int(row["ep"])
    try:
        evaluator = build_evaluator(
            row["model"], part, row["framework"], Precision(row["weights"], kv), Path()
        )
        layout = Parallelism(1, tp, dp, tp * dp // ep, ep)
        if layout_problem(evaluator.architecture, layout, part):
            return None
        longest = int(row["nominal_input_tokens"] + row["output_tokens"] / 0.9) + 64
        engine = deployed_engine(evaluator, layout, 1024, max(longest, 16_384), row["framework"])
    except (ValueError, InputError, UnsupportedArchitecture, UnsupportedDtype):
        return None
    return engine, evaluator


def _row(row: pd.Series, engine: DeployedEngine, seed: int) -> MeasuredRow:
    clients = max(1, int(row["load"] / row["dp"]))
    lengths = Lengths(float(row["input_tokens"]), 0.0, float(row["output_tokens"]))
    times = IterationTimes(engine.costs, lengths, engine.limits.iteration_tokens)
    formula = closed_loop(times, np.array([float(clients)]), np.array([float(ROUNDS)]))
    held = clients * (lengths.input_tokens + HELD_OUTPUT_RATIO * lengths.output_tokens)
    seventy = (
        row["model"] == SEVENTY_BILLION
        and row["hardware"] in ("H100-SXM", "H200-SXM")
        and row["source"] == "inferencex"
        and held <= engine.limits.kv_tokens
    )
    waits = float(formula.tpot_ms[0]) * BATCH_WAIT_TPOTS if _collects_batches(row) else 0.0
    simulated = float("nan")
    if seventy:
        nominal = (int(row["nominal_input_tokens"]), round(float(row["output_tokens"]) / 0.9))
        requests = drawn(nominal, np.zeros(clients * ROUNDS), seed)
        ttft, _ = simulated_closed(engine.costs, engine.limits, requests, clients, FRONT_END_MS)
        simulated = float(ttft.mean()) + FRONT_END_MS + waits
    return MeasuredRow(
        float(row["ttft_ms"]), float(formula.mean_ttft_ms[0]) + FRONT_END_MS + waits, simulated, seventy
    )


def _collects_batches(row: pd.Series) -> bool:
    short = row["nominal_input_tokens"] <= 1024 and row["output_tokens"] <= 1024
    return bool(row["model"] == SEVENTY_BILLION and row["framework"] == "trtllm" and short and row["tp"] < 8)
