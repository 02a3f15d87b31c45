"""An accelerator waits for a host that makes up steps one by one, and for none that works ahead."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from fleetplan.fleet.catalog import accelerators
from fleetplan.fleet.inventory import Precision
from fleetplan.perfmodel.evaluator import Evaluator, build_evaluator
from fleetplan.perfmodel.parallelism import Layouts, Parallelism
from fleetplan.perfmodel.predict import predict
from fleetplan.perfmodel.serving import Range, step_costs
from fleetplan.perfmodel.steps import Software, StepShape
from fleetplan.perfmodel.steps.host_gaps import GAP_NAME, HOST_GAPS, host_gap

OLDER, NEWEST = Software("2025-10"), Software()
ONE = Parallelism(1, 1, 1, 1, 1)


def evaluator(software: Software) -> Evaluator:
    part = accelerators()["H100-SXM"]
    precision = Precision("bf16", "bf16")
    return build_evaluator("meta-llama/Llama-3.1-8B", part, "vllm", precision, Path(), software=software)


def generation(sequences: int, layout: Parallelism = ONE) -> StepShape:
    none, running = np.array([0]), np.array([sequences])
    return StepShape(Layouts.of([layout]), none, none, none, running, np.array([500]))


@pytest.mark.parametrize(
    ("software", "step_ms", "sequence_us"),
    [
        (Software("2024-07"), 2.0, 200.0),
        (Software("2024-10"), 2.0, 165.0),
        (OLDER, 0.5, 20.0),
        (Software("2026-02"), 0.0, 0.0),
        (NEWEST, 0.0, 0.0),
        (Software("2025-10", iterations_ahead=1), 0.0, 0.0),
        # Who switches it off has the wait of the last version that had none.
        (Software(iterations_ahead=0), 0.5, 20.0),
    ],
)
def test_the_gap_of_a_version_and_of_its_settings(
    software: Software, step_ms: float, sequence_us: float
) -> None:
    gap = host_gap("vllm", software)
    assert (gap.step_ms, gap.sequence_us) == (step_ms, sequence_us)
    assert host_gap("sglang", software).sequence_us == 0.0


def test_a_step_waits_for_each_of_its_sequences() -> None:
    older, newest = evaluator(OLDER), evaluator(NEWEST)
    for sequences in (1, 200):
        waiting, plain = older.step(generation(sequences)), newest.step(generation(sequences))
        assert waiting.latency_ms - plain.latency_ms == pytest.approx(0.5 + 0.020 * sequences)
        assert waiting.breakdown_ms[waiting.names.index(GAP_NAME)] == pytest.approx(0.5 + 0.020 * sequences)
        assert GAP_NAME not in plain.names


def test_pipelines_hide_it() -> None:
    layout = Parallelism(2, 1, 1, 1, 1)
    steps = [evaluator(software).step(generation(64, layout)) for software in (OLDER, NEWEST)]
    assert steps[0].latency_ms == pytest.approx(steps[1].latency_ms)


def test_iterations_of_a_simulation_hold_it_once() -> None:
    wanted = Range(256, 2048, 4096)
    waiting, plain = (step_costs(evaluator(software), ONE, wanted) for software in (OLDER, NEWEST))
    for sequences in (1, 256):
        ours, theirs = (each.iteration_ms(0, 0, sequences, 500 * sequences) for each in (waiting, plain))
        assert ours - theirs == pytest.approx(0.5 + 0.020 * sequences, rel=0.02)


def test_every_mode_of_predict_reads_the_column() -> None:
    modes = ["decode", "static", "closed_loop", "burst", "offline"]
    frame = pd.DataFrame(
        {
            "case_id": [f"{mode} {ahead}" for mode in modes for ahead in (0, 1)],
            "mode": [mode for mode in modes for _ in range(2)],
            "iterations_ahead": [0, 1] * len(modes),
            "model": "meta-llama/Llama-3.1-8B",
            "hardware": "H100-SXM",
            "weights": "bf16",
            "tp": 1,
            "input_tokens": 500,
            "output_tokens": 100,
            "batch": 100,
            "concurrency": 100,
            "n_requests": 100,
        }
    )
    found = predict(frame)
    assert (found["status"] == "ok").all(), found["reason"].tolist()
    tpot = found["tpot_ms"].to_numpy().reshape(-1, 2)
    assert (tpot[:, 0] > tpot[:, 1] + 1.0).all()


@pytest.mark.parametrize(
    ("month", "waits_ms"),
    [("2024-07", 2.0 + 64 * 0.2 * 29 / 62), ("2024-10", 2.0 + 64 * 0.165 * 29 / 62), ("2025-10", 1.78)],
)
def test_a_static_batch_waits_for_no_server(month: str, waits_ms: float) -> None:
    """A static batch goes directly to the library and pays no server time per step."""
    row = {"case_id": "a", "model": "meta-llama/Llama-3.1-8B", "hardware": "H100-SXM", "weights": "bf16"}
    row |= {"tp": 1, "batch": 64, "input_tokens": 500, "output_tokens": 100, "mode": "static"}
    rows = [row | {"software_date": each} for each in (month, "2026-02")]
    waiting, newest = predict(pd.DataFrame(rows))["tpot_ms"]
    assert waiting - newest == pytest.approx(waits_ms)


@pytest.mark.parametrize(("month", "waits_ms"), [("2024-07", 1.0), ("2025-02", 0.0)])
def test_batch_manager_of_trtllm_takes_a_time_each_step(month: str, waits_ms: float) -> None:
    """TensorRT-LLM's batch manager adds a time to every step, which depends on the version."""
    row = {"case_id": "a", "model": "meta-llama/Llama-2-7b-hf", "hardware": "A100-SXM-80GB", "tp": 1}
    row |= {"backend": "trtllm", "weights": "bf16", "batch": 16, "input_tokens": 500, "mode": "decode"}
    rows = [row | {"software_date": each} for each in (month, "2025-06")]
    waiting, newest = predict(pd.DataFrame(rows))["tpot_ms"]
    assert waiting - newest == pytest.approx(waits_ms)


@pytest.mark.parametrize("framework", ["vllm", "trtllm"])
def test_newer_software_waits_no_longer(framework: str) -> None:
    rows = sorted((row for row in HOST_GAPS if row.framework == framework), key=lambda row: row.since)
    for waits in ([row.sequence_us for row in rows], [row.engine_us for row in rows]):
        assert waits == sorted(waits, reverse=True)
    assert all(row.source and row.engine_us <= row.sequence_us for row in rows)
