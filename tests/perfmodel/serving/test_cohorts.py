"""Closed loops of equal requests, against iterations counted one by one."""

from collections import deque
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tests.measured import needs_tables
from tests.perfmodel.serving.test_ranks_in_step import CHUNK, RANKS, times

from fleetplan.perfmodel.predict import predict
from fleetplan.perfmodel.serving.closed import Outside, closed_loop
from fleetplan.perfmodel.serving.cohorts import cohort_loop, mixed_cohort_loop
from fleetplan.perfmodel.serving.iteration_times import IterationTimes
from fleetplan.perfmodel.serving.lengths import Lengths
from fleetplan.perfmodel.serving.short_answers import closed_loop_of_any_length

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


BUDGETS = (2048, 8192, 16_384)
AWAY_MS = 4.0
"""Time of a client between an answer and its next request."""


def mixed(prompt: int, output: int, budget: int) -> IterationTimes:
    """Return iterations of 20 ms and 0.04 ms a token, beside which prompts run."""
    tokens = np.array([1.0, 16_384.0])
    grids = replace(times(1).grids, tokens=tokens, token_ms=20.0 + 0.04 * tokens[None, :])
    grids = replace(grids, sequences=np.array([0.0, 256.0]))
    return IterationTimes(grids, Lengths(float(prompt), 0.0, float(output)), budget)


def counted_mixed(found: IterationTimes, clients: int, rounds: int = 8) -> tuple[float, float, float]:
    """Mean TTFT and TPOT of the later half of `rounds`, and the rate. [ms, ms, 1/ms]"""
    prompt, steps = int(found.lengths.input_tokens), int(found.lengths.decode_iterations)
    one, now = np.ones(1), 0.0

    @cache
    def iteration_ms(tokens: int, running: int) -> float:
        return float(found.mixed_ms(tokens * one, running * one)[0])

    # The clients do not send in the same instant.
    sent = deque((client / clients, client) for client in range(clients))
    waiting: deque[list[float]] = deque()
    running: dict[float, list[float]] = {}
    ended: list[tuple[float, float, float]] = []
    while len(ended) < rounds * clients:
        if not waiting and not running:
            now = max(now, sent[0][0])
        while sent and sent[0][0] <= now:
            waiting.append([sent[0][1], sent.popleft()[0], prompt])
        room = left = int(found.iteration_tokens) - len(running)
        started = []
        while waiting and left > 0:
            taken = min(left, int(waiting[0][2]))
            waiting[0][2] -= taken
            left -= taken
            if waiting[0][2] == 0:
                started.append(waiting.popleft())
        now += iteration_ms(room - left, len(running))
        for client, (arrival, first, done) in list(running.items()):
            running[client] = [arrival, first, done + 1]
            if done + 1 == steps:
                del running[client]
                ended.append((now, first - arrival, (now - first) / steps))
                sent.append((now + AWAY_MS + client / clients, int(client)))
        running |= {client: [arrival, now, 0] for client, arrival, _ in started}
        sent = deque(sorted(sent))
    half = len(ended) // 2
    last = np.array(ended[half:])
    rate = len(last) / (last[-1, 0] - ended[half - 1][0])
    return float(last[:, 1].mean()), float(last[:, 2].mean()), rate


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize(("clients", "prompt"), [(2, 1000), (8, 128), (8, 1000), (32, 1000), (64, 128)])
@pytest.mark.parametrize("output", [32, 128])
def test_groups_follow_each_other_where_prompts_run_beside_generation(
    clients: int, prompt: int, output: int, budget: int
) -> None:
    found = mixed(prompt, output, budget)
    loop = mixed_cohort_loop(found, np.array([float(clients)]), None, Outside(AWAY_MS))
    ttft, tpot, rate = counted_mixed(found, clients)
    assert loop.steady_ttft_ms[0] == pytest.approx(ttft, rel=0.13)
    assert loop.tpot_ms[0] == pytest.approx(tpot, rel=0.07)
    assert loop.requests_per_ms[0] == pytest.approx(rate, rel=0.03)


@pytest.mark.parametrize("clients", [1.0, 1.5, 6.0, 40.0, 250.0])
@pytest.mark.parametrize("prompt", [1, 300, 5000])
def test_order_changes_neither_work_nor_clients(clients: float, prompt: int) -> None:
    for output in (1, 2, 200):
        found, inside, outside = mixed(prompt, output, 2048), np.array([clients]), Outside(AWAY_MS)
        together = mixed_cohort_loop(found, inside, None, outside)
        apart = closed_loop_of_any_length(found, inside, None, outside)
        assert together.requests_per_ms == pytest.approx(apart.requests_per_ms)
        in_engine = together.steady_ttft_ms + (output - 1) * together.iteration_ms
        assert clients / together.requests_per_ms == pytest.approx(in_engine + AWAY_MS)
        assert together.steady_ttft_ms[0] > 0
        if clients == 1:
            assert together.iteration_ms == pytest.approx(apart.iteration_ms)


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


def test_lengths_that_vary_keep_requests_apart() -> None:
    assert glm(length_variation=1.0)["tpot_ms"] == glm()["tpot_ms"] > glm(length_variation=0.0)["tpot_ms"]


def test_equal_prompts_of_other_frameworks_arrive_together() -> None:
    together, apart = glm("vllm", length_variation=0.0), glm("vllm")
    assert together["ttft_ms"] > 1.3 * apart["ttft_ms"]
    assert together["tpot_ms"] < apart["tpot_ms"]
    assert together["requests_per_s"] == pytest.approx(apart["requests_per_s"])


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
