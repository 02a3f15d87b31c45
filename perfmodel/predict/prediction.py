"""Latency, throughput and memory of explicit configurations, with one result per row."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fleetplan.fleet.catalog import accelerators
from fleetplan.fleet.catalog.hardware_names import hardware_hint, part_called
from fleetplan.fleet.errors import InputError
from fleetplan.fleet.inventory import Accelerator, Precision
from fleetplan.fleet.inventory.power import power_capped
from fleetplan.fleet.units import MS_PER_S
from fleetplan.perfmodel.architecture import MoeFfn, UnsupportedArchitecture
from fleetplan.perfmodel.evaluator import (
    Calibration,
    Evaluator,
    build_evaluator,
    with_calibration,
)
from fleetplan.perfmodel.landscape import AGGREGATED, DECODE, PREFILL, configuration_problem
from fleetplan.perfmodel.operators import FloatArray, IntArray
from fleetplan.perfmodel.optables import UnsupportedDtype
from fleetplan.perfmodel.parallelism import Layouts, Parallelism
from fleetplan.perfmodel.predict.case_files import read_cases
from fleetplan.perfmodel.predict.cases import DISAGGREGATED, Cases, parse_cases
from fleetplan.perfmodel.predict.columns import NUMBER_COLUMNS, OUTPUT_COLUMNS, ModeResult, PredictionColumns
from fleetplan.perfmodel.predict.degrees import Degrees
from fleetplan.perfmodel.predict.disaggregated import disaggregated_result
from fleetplan.perfmodel.predict.step_modes import step_result
from fleetplan.perfmodel.queueing.open_loops import open_loop
from fleetplan.perfmodel.replay.offline import TooManyRequestsError, offline
from fleetplan.perfmodel.serving import Load, SteadyState, burst, server_scheduling, template_ms
from fleetplan.perfmodel.serving.replica_loops import closed_loop
from fleetplan.perfmodel.steps import ConfigurationBatch
from fleetplan.perfmodel.techniques import technique_problem
from fleetplan.perfmodel.techniques.record import LOOPS

__all__ = ["NUMBER_COLUMNS", "OUTPUT_COLUMNS", "predict", "read_cases"]

_PHASES: Final = {"prefill": PREFILL, "decode": DECODE, DISAGGREGATED: DECODE}
"""Phases of modes whose columns of parallelism are those of one phase; all others serve prompts and
generation on the same accelerators."""


def predict(
    frame: pd.DataFrame,
    folder: Path = Path(),
    path: str = "cases",
    calibration: Calibration | None = None,
    parts: Mapping[str, Accelerator] | None = None,
) -> pd.DataFrame:
    """Predict every row of a table of cases.

    Parameters
    ----------
    frame : pandas.DataFrame
        See `fleetplan.perfmodel.predict.cases.parse_cases`. `batch` counts the sequences of one attention-DP
        rank and pipeline micro-batch; `concurrency` and `requests_per_s` are those of all `n_accelerators`.
    folder : Path
        Folder of relative paths of model configs; default: the working directory.
    path : str
        Name of the table in errors.
    calibration : Calibration, optional
        Its ratios multiply the times of its deployments.
    parts : Mapping[str, Accelerator], optional
        Accelerators by name; those of the catalogue by default.

    Returns
    -------
    pandas.DataFrame
        `OUTPUT_COLUMNS`, one row an input row and in the same order. `status` is ok or rejected, then
        with a `reason`; numbers that a mode does not have, and all numbers of a rejected row, are NaN.
        A row that needs more memory than there is has `status` ok and `fits` False: its times hold for
        an accelerator with more memory. `latency_ms` is one step in prefill and decode mode, the whole
        batch in static mode and a request from end to end in the loops. Rates are those of
        `n_accelerators`, or of one replica. `source` is the weakest kind of evidence that holds a tenth
        of the time. In offline mode all `n_requests` are there at the start, and `latency_ms` is the time
        until the last of them ends. A static batch is handed to the library of the framework, everything
        else comes through a server.

    Raises
    ------
    InputError
        Required columns are missing.
    """
    cases = parse_cases(frame, path)
    answers = PredictionColumns(cases.reason)
    known = accelerators() if parts is None else parts
    keys = pd.DataFrame(
        {
            "model": cases.model,
            "hardware": cases.hardware,
            "backend": cases.backend,
            "weights": cases.weights,
            "kv": cases.kv,
            "techniques": cases.techniques.codes,
        },
        dtype=object,
    )
    codes = keys.groupby(list(keys.columns), sort=False, dropna=False).ngroup().to_numpy()
    for code in range(int(codes.max()) + 1 if codes.size else 0):
        rows = np.flatnonzero((codes == code) & (cases.reason == ""))
        if rows.size:
            _predict_group(cases, rows, folder, answers, calibration, known)
    return answers.frame(cases.case_id)


def _predict_group(
    cases: Cases,
    rows: IntArray,
    folder: Path,
    answers: PredictionColumns,
    calibration: Calibration | None,
    parts: Mapping[str, Accelerator],
) -> None:
    first = int(rows[0])
    hardware = _hardware_name(str(cases.hardware[first]), parts)
    if hardware not in parts:
        given = str(cases.hardware[first])
        what = f"hardware: {given!r} is not in the catalogue" if given else "hardware: missing"
        answers.reject(rows, f"{what}; {hardware_hint(given, list(parts))}")
        return
    precision = Precision(str(cases.weights[first]), str(cases.kv[first]))
    setting = cases.techniques.distinct[int(cases.techniques.codes[first])]
    try:
        accelerator = _capped(parts[hardware], setting.power_cap_w)
    except ValueError as error:
        answers.reject(rows, f"power_cap_w: {error}")
        return
    model, framework = str(cases.model[first]), str(cases.backend[first])
    if setting.software.activation_scales == "dynamic" and (framework, precision.weights) != (
        "trtllm",
        "fp8",
    ):
        answers.reject(rows, "activation_scales: dynamic is for trtllm with weights fp8 only")
        return
    try:
        evaluator = build_evaluator(
            model, accelerator, framework, precision, folder, setting.techniques, setting.software
        )
    except InputError as error:
        answers.reject(rows, "; ".join(f"model: {issue}" for issue in error.issues))
        return
    except UnsupportedArchitecture as error:
        answers.reject(rows, f"model: {error}")
        return
    evaluator = with_calibration(evaluator, framework, calibration)
    problem = technique_problem(evaluator.architecture, framework, setting.techniques)
    if problem:
        answers.reject(rows, problem)
        return
    rows, found = _runnable(cases, rows, evaluator, answers)
    layouts = Layouts.of(found)
    for mode in sorted(set(cases.mode[rows].tolist())):
        selected = np.flatnonzero(cases.mode[rows] == mode)
        _predict_mode(cases, rows[selected], layouts.take(selected), str(mode), evaluator, answers)


def _capped(accelerator: Accelerator, power_cap_w: float | None) -> Accelerator:
    return accelerator if power_cap_w is None else power_capped(accelerator, power_cap_w)


def _hardware_name(given: str, parts: Mapping[str, Accelerator]) -> str:
    """Return the name of a part that others name otherwise, or in another case; else the name as given."""
    own = {name.lower(): name for name in parts}.get(given.lower())
    return part_called(given) or given if own is None else own


def _runnable(
    cases: Cases, rows: IntArray, evaluator: Evaluator, answers: PredictionColumns
) -> tuple[IntArray, list[Parallelism]]:
    """Return the rows whose parallelism can run, with their layouts; the others are rejected."""
    kept: list[int] = []
    layouts: list[Parallelism] = []
    known: dict[tuple[Degrees, str], Parallelism | str] = {}
    for row in rows.tolist():
        degrees, phase = cases.degrees[row], _PHASES.get(str(cases.mode[row]), AGGREGATED)
        if (degrees, phase) not in known:
            known[degrees, phase] = _layout(degrees, evaluator, phase, str(cases.backend[row]))
        layout = known[degrees, phase]
        if not isinstance(layout, str) and cases.mode[row] == DISAGGREGATED:
            prefill = _layout(cases.pools[row].prefill, evaluator, PREFILL, str(cases.backend[row]))
            layout = f"prefill_tp: {prefill}" if isinstance(prefill, str) else layout
        if isinstance(layout, str):
            answers.reason[row] = layout
        elif cases.n_accelerators[row] % layout.accelerators:
            answers.reason[row] = (
                f"n_accelerators: {cases.n_accelerators[row]} is not a multiple of the "
                f"{layout.accelerators} of one replica ({layout.label})"
            )
        else:
            kept.append(row)
            layouts.append(layout)
    return np.array(kept, dtype=np.int64), layouts


def _layout(degrees: Degrees, evaluator: Evaluator, phase: str, framework: str) -> Parallelism | str:
    """Return the layout, or why it cannot run."""
    architecture = evaluator.architecture
    has_experts = any(isinstance(group.ffn, MoeFfn) for group in architecture.groups)
    try:
        layout = degrees.parallelism(has_experts)
    except ValueError as error:
        return str(error)
    return configuration_problem(architecture, layout, evaluator.accelerator, phase, framework) or layout


def _predict_mode(
    cases: Cases,
    rows: IntArray,
    layouts: Layouts,
    mode: str,
    evaluator: Evaluator,
    answers: PredictionColumns,
) -> None:
    replicas = np.maximum(1, cases.n_accelerators[rows] // layouts.accelerators)
    try:
        if mode in LOOPS:
            load = _load(cases, rows, layouts, evaluator)
            state = _loop(cases, rows, load, mode, evaluator, replicas)
            result = _loop_result(state, load, cases.load[rows] / replicas if mode == "offline" else None)
            _reject_overload(answers, rows, state, replicas)
        elif mode == DISAGGREGATED:
            result = disaggregated_result(cases, rows, _load(cases, rows, layouts, evaluator), evaluator)
        else:
            result = step_result(mode, evaluator, _batch(cases, rows, layouts, mode))
    except UnsupportedDtype as error:
        answers.reject(rows, f"weights: {error}")
    except UnsupportedArchitecture as error:
        answers.reject(rows, f"model: {error}")
    except TooManyRequestsError as error:
        answers.reject(rows, str(error))
    else:
        answers.fill(rows, result)
        answers.numbers["requests_per_s"][rows] *= replicas


def _load(cases: Cases, rows: IntArray, layouts: Layouts, evaluator: Evaluator) -> Load:
    first = int(rows[0])
    default = server_scheduling(
        str(cases.backend[first]),
        evaluator.accelerator,
        evaluator.software_date,
        overlaps_host=evaluator.overlaps_host,
    )
    setting = cases.techniques.distinct[int(cases.techniques.codes[first])]
    parsed_ms = template_ms(
        str(cases.backend[first]), evaluator.architecture.model_type, evaluator.software_date
    )
    return Load(
        layouts,
        cases.input_tokens[rows],
        cases.prefix_tokens[rows],
        cases.output_tokens[rows],
        setting.scheduling.applied(default, parsed_ms),
        alike=setting.length_variation == 0.0,
    )


def _loop(
    cases: Cases, rows: IntArray, load: Load, mode: str, evaluator: Evaluator, replicas: IntArray
) -> SteadyState:
    each = cases.load[rows] / replicas
    if mode == "offline":
        setting = cases.techniques.distinct[int(cases.techniques.codes[rows[0]])]
        return offline(evaluator, load, each, setting.length_variation or 0.0)
    if mode == "burst":
        return burst(evaluator, load, each)
    if mode == "open_loop":
        return open_loop(evaluator, load, each)
    return closed_loop(evaluator, load, each, cases.n_requests[rows] / replicas)


def _batch(cases: Cases, rows: IntArray, layouts: Layouts, mode: str) -> ConfigurationBatch:
    input_tokens, prefix_tokens = cases.input_tokens[rows], cases.prefix_tokens[rows]
    output_tokens = cases.output_tokens[rows]
    context = input_tokens + prefix_tokens
    if mode == "static":
        # On average over a batch, decode attends to the prompt and half the output.
        context = context + output_tokens // 2
    batch = cases.load[rows].astype(np.int64)
    return ConfigurationBatch(layouts, batch, input_tokens, prefix_tokens, context, output_tokens)


def _loop_result(state: SteadyState, load: Load, together: FloatArray | None) -> ModeResult:
    """Return the columns of loops; of `together` requests at once, how long all of them take."""
    tokens_per_s = state.requests_per_s * load.output_tokens
    latency_ms = state.ttft_ms + (load.output_tokens - 1) * state.tpot_ms
    if together is not None:
        latency_ms = together / state.requests_per_s * MS_PER_S
    return ModeResult(
        ttft_ms=state.ttft_ms,
        # After the only token of a request none follows.
        tpot_ms=np.where(load.output_tokens > 1, state.tpot_ms, 0.0),
        latency_ms=latency_ms,
        requests_per_s=state.requests_per_s,
        output_tokens_per_s_per_accelerator=tokens_per_s / load.layouts.accelerators,
        memory_gib_per_accelerator=state.memory.total_gib,
        fits=state.memory.fits & state.fits,
        by_provenance_ms=state.iteration.by_provenance_ms,
        bottleneck=state.iteration.bottleneck,
        names=state.iteration.names,
    )


def _reject_overload(
    answers: PredictionColumns, rows: IntArray, state: SteadyState, replicas: NDArray[np.int64]
) -> None:
    for position in np.flatnonzero(~state.sustained).tolist():
        most = state.requests_per_s[position] * replicas[position]
        answers.reason[rows[position]] = (
            f"requests_per_s: the configuration sustains {most:.4g} at most (batch {state.batch[position]})"
        )
