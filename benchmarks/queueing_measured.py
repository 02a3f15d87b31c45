"""Published TTFT of closed loops against the closed form and the simulator, with unscaled step times.

What is known of how a row was made decides what it can say. InferenceX sends ten prompts a client, all
clients at once at the start, with lengths from 0.8 to 1.0 of the nominal ones; its vLLM rows of the FP8
checkpoint keep a BF16 cache and its TensorRT-LLM rows an FP8 one. `benchmarks.queueing_launches` says how the
servers let prompts in. Means hold the burst at the start, medians are those of the requests that follow it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd
from benchmarks.accuracy_rows import MEAN_LENGTH_RATIO, packaged_file, published_rows
from benchmarks.queueing_bars import drawn, simulated_closed
from benchmarks.queueing_launches import LLAMA_70B, admission

from fleetplan.fleet.catalog import accelerators
from fleetplan.fleet.errors import InputError
from fleetplan.fleet.inventory import Precision
from fleetplan.perfmodel.architecture import UnsupportedArchitecture
from fleetplan.perfmodel.evaluator import build_evaluator
from fleetplan.perfmodel.landscape import layout_problem
from fleetplan.perfmodel.optables import UnsupportedDtype
from fleetplan.perfmodel.parallelism import Parallelism
from fleetplan.perfmodel.queueing.closed import ClosedLoop, closed_loop
from fleetplan.perfmodel.queueing.iteration_times import IterationTimes, Lengths
from fleetplan.perfmodel.replay import deployed_engine
from fleetplan.perfmodel.replay.deployed import DeployedEngine

ROUNDS: Final = 10
"""Prompts a client of InferenceX: its scripts ask for ten times the concurrency."""

FRONT_END_MS: Final = 15.0
"""Time of a request outside the engine: HTTP, tokenisation, the first token's way back. [ms]
Source: 10 to 20 ms is what published rows of one request at a time have beyond their prompt."""

LONGEST_FRONT_END_MS: Final = 500
"""Up to where `left_out` looks for the time outside the engine. [ms]"""

HELD_OUTPUT_RATIO: Final = 0.55
"""Part of its output that a resident sequence holds in the mean, to tell rows that the cache limits."""

FAMILIES: Final = (
    "deepseek",
    "qwen3-235b",
    "qwen3.5",
    "qwen3-32b",
    "llama-3.1-8b",
    "llama-3.1-70b",
    "gpt-oss",
    "kimi",
    "glm",
    "minimax",
)
"""Models that differ by a quantisation or a release only have one name here."""


@dataclass(frozen=True, slots=True)
class MeasuredRow:
    """A published row with what the model says of it.

    Attributes
    ----------
    measured_ms, engine_ms, simulated_ms : float
        TTFT as published; that of the closed form inside the engine; and that of the simulator, NaN where it
        was not run. [ms]
    framework, family : str
        What serves which model.
    seventy_billion : bool
        Whether it is of Llama-70B on H100 or H200, with a known client, and not limited by its cache.
    """

    measured_ms: float
    engine_ms: float
    simulated_ms: float
    framework: str
    family: str
    seventy_billion: bool


def measured_rows(path: Path | None, seed: int) -> list[MeasuredRow]:
    """Rows of a file of measurements, or of the one that aiconfigurator-core carries; none without either."""
    source = path or packaged_file()
    if source is None:
        return []
    rows = published_rows(source)
    rows = rows[(rows["mode"] == "closed_loop") & rows["ttft_ms"].notna() & (rows["pp"] == 1)]
    engines: dict[tuple[object, ...], DeployedEngine | None] = {}
    found = []
    for _, row in rows.iterrows():
        key = tuple(
            row[name] for name in ("model", "hardware", "framework", "weights", "tp", "dp", "ep", "moe_tp")
        )
        if key not in engines:
            engines[key] = _engine(row)
        known = engines[key]
        if known is not None:
            found.append(_row(row, known, seed))
    return found


def left_out(rows: list[MeasuredRow]) -> np.ndarray:
    """TTFT with a time outside the engine by framework, that of each family from the others, [n]. [ms]."""
    measured = np.array([row.measured_ms for row in rows])
    inside = np.array([row.engine_ms for row in rows])
    framework = np.array([row.framework for row in rows])
    family = np.array([row.family for row in rows])
    found = inside + FRONT_END_MS
    for name, left in sorted(set(zip(framework.tolist(), family.tolist(), strict=True))):
        own = (framework == name) & (family == left)
        others = (framework == name) & (family != left)
        if others.any():
            found[own] = inside[own] + fitted_front_end_ms(measured[others], inside[others])
    return found


def fitted_front_end_ms(measured_ms: np.ndarray, inside_ms: np.ndarray) -> float:
    """Time outside the engine, to a ms, whose mean absolute error is least in logarithms. [ms]."""
    candidates = np.arange(LONGEST_FRONT_END_MS + 1.0)
    errors = [np.abs(np.log((inside_ms + each) / measured_ms)).mean() for each in candidates]
    return float(candidates[int(np.argmin(errors))])


def _engine(row: pd.Series) -> DeployedEngine | None:
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
        longest = int(row["nominal_input_tokens"] + row["output_tokens"] / MEAN_LENGTH_RATIO) + 64
        return deployed_engine(evaluator, layout, 1024, max(longest, 16_384), row["framework"])
    except (ValueError, InputError, UnsupportedArchitecture, UnsupportedDtype):
        return None


def _row(row: pd.Series, engine: DeployedEngine, seed: int) -> MeasuredRow:
    clients = max(1, int(row["load"] / row["dp"]))
    lengths = Lengths(float(row["input_tokens"]), 0.0, float(row["output_tokens"]))
    times = IterationTimes(engine.costs, lengths, engine.limits.iteration_tokens)
    rules = admission(row, engine.limits.prompts_apart)
    formula = closed_loop(times, np.array([float(clients)]), np.array([float(ROUNDS)]), rules)
    held = clients * (lengths.input_tokens + HELD_OUTPUT_RATIO * lengths.output_tokens)
    seventy = (
        row["model"] == LLAMA_70B
        and row["hardware"] in ("H100-SXM", "H200-SXM")
        and row["source"] == "inferencex"
        and held <= engine.limits.kv_tokens
    )
    median = row["ttft_statistic"] == "median"
    return MeasuredRow(
        float(row["ttft_ms"]),
        float((formula.steady_ttft_ms if median else formula.mean_ttft_ms)[0]),
        _simulated_ms(row, engine, clients, formula, seed) if seventy else float("nan"),
        row["framework"],
        next((each for each in FAMILIES if each in row["model"].lower()), row["model"]),
        seventy,
    )


def _simulated_ms(
    row: pd.Series, engine: DeployedEngine, clients: int, formula: ClosedLoop, seed: int
) -> float:
    """Mean TTFT by the simulator, which lets prompts in at once, and the wait for admission. [ms]."""
    nominal = (int(row["nominal_input_tokens"]), round(float(row["output_tokens"]) / MEAN_LENGTH_RATIO))
    requests = drawn(nominal, np.zeros(clients * ROUNDS), seed)
    ttft, _ = simulated_closed(engine.costs, engine.limits, requests, clients, FRONT_END_MS)
    # The burst at the start finds the engine idle and is let in.
    waits_ms = float(formula.admission_ms[0]) * (1 - 1 / ROUNDS)
    return float(ttft.mean()) + FRONT_END_MS + waits_ms
