"""Closed loops of equal requests, against iterations counted one by one."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tests.measured import needs_tables
from tests.perfmodel.serving.test_ranks_in_step import CHUNK, RANKS, times

from fleetplan.perfmodel.predict import predict
from fleetplan.perfmodel.serving.closed import Outside, closed_loop
from fleetplan.perfmodel.serving.cohorts import cohort_loop
from fleetplan.perfmodel.serving.iteration_times import IterationTimes
from fleetplan.perfmodel.serving.lengths import Lengths

OUTPUT = 512.0


def alike(prompt: float, ranks: int = 1) -> IterationTimes:
    whole = times(ranks)
    return IterationTimes(whole.grids, Lengths(prompt, 0.0, OUTPUT), CHUNK, whole.admission)


def counted(found: IterationTimes, clients: int, prompt: int) -> tuple[float, float, float]:
    """Mean TTFT and TPOT of a round, and how long it takes: prompts are chunked one after the other."""
    one = np.ones(1)
    left, now, first = clients * prompt, 0.0, np.zeros(clients)
    while left > 0:
        tokens = min(CHUNK, left)
        now += float(found.mixed_ms(tokens * one, 0.0 * one)[0])
        left -= tokens
        done = (clients * prompt - left) // prompt
        first[:done] = np.where(first[:done] == 0.0, now, first[:done])
    end = now + (OUTPUT - 1) * float(found.decode_ms(clients * one)[0])
    return float(first.mean()), float(((end - first) / (OUTPUT - 1)).mean()), end


@pytest.mark.parametrize(("clients", "prompt"), [(1, 4096), (8, 2048), (16, 4096), (16, 512), (64, 1024)])
def test_a_round_is_a_burst_and_the_iterations_after_it(clients: int, prompt: int) -> None:
    found = cohort_loop(alike(prompt), np.array([float(clients)]))
    ttft, tpot, round_ms = counted(alike(prompt), clients, prompt)
    assert found.steady_ttft_ms[0] == pytest.approx(ttft)
    assert found.tpot_ms[0] == pytest.approx(tpot)
    assert clients / found.requests_per_ms[0] == pytest.approx(round_ms)


def test_a_single_client_has_the_rate_of_the_ordinary_loop() -> None:
    one, outside = np.ones(1), Outside(7.0)
    together, alone = (loop(alike(2048), one, None, outside) for loop in (cohort_loop, closed_loop))
    assert together.requests_per_ms == pytest.approx(alone.requests_per_ms)
    assert together.tpot_ms == pytest.approx(alone.tpot_ms)


def test_ranks_stay_in_step_where_nobody_else_comes_between() -> None:
    clients = np.array([16.0])
    together = cohort_loop(alike(2048, RANKS), clients)
    assert together.tpot_ms == pytest.approx(cohort_loop(alike(2048), clients).tpot_ms)
    assert together.tpot_ms < 0.85 * closed_loop(alike(2048, RANKS), clients).tpot_ms


def test_requests_for_one_token_generate_nothing_after_their_burst() -> None:
    found = times(1)
    prompts = IterationTimes(found.grids, Lengths(2048.0, 0.0, 1.0), CHUNK, found.admission)
    loop = cohort_loop(prompts, np.array([4.0]))
    assert 4.0 / loop.requests_per_ms[0] == pytest.approx(
        4 * float(found.prompts_ms(CHUNK * np.ones(1), np.zeros(1))[0])
    )


def glm(backend: str = "sglang", **columns: object) -> pd.Series:
    case = {
        "case_id": "a",
        "model": "zai-org/GLM-5.2",
        "hardware": "B200-SXM",
        "backend": backend,
        "weights": "fp8",
        "kv": "fp8",
        "mode": "closed_loop",
        "tp": 1,
        "dp": 8,
        "ep": 8,
        "input_tokens": 8192,
        "output_tokens": 1024,
        "concurrency": 64,
        "software_date": "2026-07",
    }
    return predict(pd.DataFrame([case | columns]), Path()).iloc[0]


def test_other_frameworks_mix_prompts_with_generation_whatever_their_lengths() -> None:
    assert glm("vllm", length_variation=0.0)["tpot_ms"] == glm("vllm")["tpot_ms"]
    assert glm(length_variation=1.0)["tpot_ms"] == glm()["tpot_ms"] > glm(length_variation=0.0)["tpot_ms"]


@needs_tables
@pytest.mark.parametrize(
    ("hardware", "ranks", "clients", "tpot_ms"),
    [
        ("B200-SXM", 8, 64, 17.65),
        ("B200-SXM", 8, 256, 32.61),
        ("GB300-NVL72", 4, 64, 25.21),
        ("GB300-NVL72", 4, 256, 48.43),
    ],
)
def test_published_loops_of_requests_that_are_all_alike(
    hardware: str, ranks: int, clients: int, tpot_ms: float
) -> None:
    # sgl-project/sglang@27132f7, glm-5.2-benchmarks.jsx, one drafted token that is always accepted.
    found = glm(
        hardware=hardware,
        dp=ranks,
        ep=ranks,
        concurrency=clients,
        max_batched_tokens=32_768 // ranks,
        max_sequences=256 // ranks,
        memory_ratio=0.85,
        draft_tokens=1,
        acceptance_ratio=1.0,
        draft_cost_ratio=0.044,
        length_variation=0.0,
    )
    assert found["tpot_ms"] == pytest.approx(tpot_ms, rel=0.1)
