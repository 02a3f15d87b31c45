"""Published TTFT of closed loops against `plan predict` and against the simulator, with unscaled step times.

What is known of how a row was made decides what it can say. InferenceX sends ten prompts a client, all
clients at once at the start, with lengths from 0.8 to 1.0 of the nominal ones; `benchmarks.accuracy_launches`
and `benchmarks.queueing_launches` say how its servers were started. Means hold the burst at the start,
medians are those of the requests that follow it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd
from benchmarks.accuracy_prediction import predicted
from benchmarks.accuracy_rows import MEAN_LENGTH_RATIO, packaged_file, published_rows
from benchmarks.queueing_bars import drawn, simulated_closed
from benchmarks.queueing_launches import LLAMA_70B, ROUNDS, admission

from fleetplan.fleet.catalog import accelerators
from fleetplan.fleet.inventory import Precision
from fleetplan.perfmodel.evaluator import build_evaluator
from fleetplan.perfmodel.parallelism import Parallelism
from fleetplan.perfmodel.replay import deployed_engine
from fleetplan.perfmodel.replay.deployed import DeployedEngine
from fleetplan.perfmodel.serving import Range, StepGrids, default_scheduling, step_grids
from fleetplan.perfmodel.serving.closed import Outside, closed_loop
from fleetplan.perfmodel.serving.iteration_times import IterationTimes
from fleetplan.perfmodel.serving.lengths import Lengths
from fleetplan.perfmodel.serving.replica_load import HELD_OUTPUT_RATIO
from fleetplan.perfmodel.steps import Software

ROOT: Final = Path(__file__).resolve().parent.parent


@dataclass(frozen=True, slots=True)
class MeasuredRow:
    """A published row with what the model says of it.

    Attributes
    ----------
    measured_ms, predicted_ms, simulated_ms : float
        TTFT as published; that of `plan predict`; and that of the simulator, NaN where it was not run. [ms]
    framework : str
        What serves it.
    seventy_billion : bool
        Whether it is of Llama-70B on H100 or H200, with a known client, and not limited by its cache.
    """

    measured_ms: float
    predicted_ms: float
    simulated_ms: float
    framework: str
    seventy_billion: bool


def measured_rows(path: Path | None, seed: int) -> list[MeasuredRow]:
    """Rows of a file of measurements, or of the one that aiconfigurator-core carries; none without either."""
    source = path or packaged_file()
    if source is None:
        return []
    rows = predicted(published_rows(source), ROOT)
    rows = rows[(rows["mode"] == "closed_loop") & rows["ttft_error"].notna()]
    engines: dict[tuple[object, ...], tuple[DeployedEngine, StepGrids]] = {}
    return [_row(row, engines, seed) for _, row in rows.iterrows()]


def _row(
    row: pd.Series, engines: dict[tuple[object, ...], tuple[DeployedEngine, StepGrids]], seed: int
) -> MeasuredRow:
    seventy = (
        row["model"] == LLAMA_70B
        and row["hardware"] in ("H100-SXM", "H200-SXM")
        and row["source"] == "inferencex"
        and row["pp"] == 1
    )
    simulated_ms = float("nan")
    if seventy:
        key = tuple(row[name] for name in ("hardware", "framework", "weights", "tp", "kv", "month"))
        if key not in engines:
            engines[key] = _engine(row)
        engine, grids = engines[key]
        held = row["load"] * (row["input_tokens"] + HELD_OUTPUT_RATIO * row["output_tokens"])
        seventy = held <= engine.limits.kv_tokens
        simulated_ms = _simulated_ms(row, engine, grids, seed) if seventy else simulated_ms
    return MeasuredRow(
        float(row["ttft_ms"]),
        float(row["predicted_ttft_ms"]),
        simulated_ms,
        str(row["framework"]),
        bool(seventy),
    )


def _engine(row: pd.Series) -> tuple[DeployedEngine, StepGrids]:
    part = accelerators()[row["hardware"]]
    framework = str(row["framework"])
    kv = row["kv"] or ("fp8" if framework == "trtllm" else "bf16")
    software = Software(str(row["month"]))
    precision = Precision(row["weights"], kv)
    evaluator = build_evaluator(row["model"], part, framework, precision, ROOT, software=software)
    tp = int(row["tp"])
    layout = Parallelism(1, tp, 1, tp, 1)
    engine = deployed_engine(evaluator, layout, 1024, 16_384, framework)
    return engine, step_grids(evaluator, [layout], Range(1024, engine.limits.iteration_tokens, 16_384))


def _simulated_ms(row: pd.Series, engine: DeployedEngine, grids: StepGrids, seed: int) -> float:
    """Mean TTFT by the simulator, with front end, and the wait for admission that it leaves out. [ms]."""
    clients = max(1, int(row["load"]))
    nominal = (int(row["nominal_input_tokens"]), round(float(row["output_tokens"]) / MEAN_LENGTH_RATIO))
    front_end = default_scheduling(str(row["framework"]), accelerators()[row["hardware"]]).front_end
    outside_ms = front_end.request_ms + float(front_end.prompt_ms(np.array(float(row["input_tokens"]))))
    requests = drawn(nominal, np.zeros(clients * ROUNDS), seed)
    ttft, _ = simulated_closed(engine.costs, engine.limits, requests, clients, outside_ms)
    lengths = Lengths(float(row["input_tokens"]), 0.0, float(row["output_tokens"]))
    times = IterationTimes(grids, lengths, engine.limits.iteration_tokens, admission(row.to_dict()))
    waits = closed_loop(times, np.array([float(clients)]), np.array([float(ROUNDS)]), Outside(outside_ms))
    # The burst at the start finds the engine idle and is let in.
    return float(ttft.mean()) + outside_ms + float(waits.admission_ms[0]) * (1 - 1 / ROUNDS)
