"""Closed loops of requests with few tokens: no slower than with more, and as the simulator has them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from tests.parts import each_once
from tests.perfmodel.fakes import WorkSource, accelerator, dense_model

from fleetplan.fleet.inventory import Precision
from fleetplan.perfmodel.evaluator import Evaluator
from fleetplan.perfmodel.parallelism import Parallelism
from fleetplan.perfmodel.predict import predict
from fleetplan.perfmodel.replay.engine import PoolRun
from fleetplan.perfmodel.replay.engine_state import EngineLimits
from fleetplan.perfmodel.serving import Range, Requests, step_costs, step_grids
from fleetplan.perfmodel.serving.closed import Outside
from fleetplan.perfmodel.serving.iteration_times import IterationTimes
from fleetplan.perfmodel.serving.lengths import Lengths
from fleetplan.perfmodel.serving.short_answers import closed_loop_of_any_length

LAYOUT = Parallelism(1, 2, 1, 2, 1)
BUDGET, PROMPT = 2048, 1500
REACH = Range(64, BUDGET, 8192)
EVALUATOR = Evaluator(dense_model(layers=16), accelerator(), WorkSource(), Precision("bf16", "bf16"))
GRIDS, COSTS = step_grids(EVALUATOR, [LAYOUT], REACH), step_costs(EVALUATOR, LAYOUT, REACH)


def times(output_tokens: float, tokens_per_step: float = 1.0) -> IterationTimes:
    return IterationTimes(GRIDS, Lengths(PROMPT, 0.0, output_tokens, tokens_per_step), BUDGET)


PROMPT_MS = float(times(1.0).prompts_ms(np.array([float(PROMPT)]), np.zeros(1))[0])


@pytest.mark.parametrize(
    ("outside", "drafted"), each_once((0.0, 0.3, 1.0, 4.0), (1.0, 2.5), pytest.mark.more)
)
def test_no_request_gets_faster_with_more_tokens(outside: float, drafted: float) -> None:
    clients = np.array([1.0, 2.0, 3.0, 5.0, 9.0, 17.0, 60.0])
    apart = Outside(request_ms=outside * PROMPT_MS)
    outputs = [1.0, 2.0, 3.0, 4.0, 5.0, 7.0, 9.0, 12.0, 30.0, 100.0]
    rates = np.array(
        [
            closed_loop_of_any_length(times(each, drafted), clients, None, apart).requests_per_ms
            for each in outputs
        ]
    )
    # Drafted tokens make the lengths that are compared uneven.
    assert (rates[1:] <= rates[:-1] * (1 + (2e-3 if drafted == 1 else 1e-2))).all()


@pytest.mark.parametrize("clients", [2, 4, 8])
def test_single_tokens_agree_with_the_simulator(clients: int) -> None:
    """Loops agree with the simulator where requests spend much of their time outside the engine."""
    count, outside_ms = 6000, 1.5 * PROMPT_MS
    lengths = np.random.default_rng(3).integers(1200, 1801, count)
    wanted = Requests(np.zeros(count), lengths, np.zeros_like(lengths), np.ones_like(lengths))
    limits = EngineLimits(64, BUDGET, 10**9)
    driven = PoolRun(COSTS, limits, wanted, released=count - clients, turnaround_ms=outside_ms)
    driven.send(0, np.arange(clients))
    driven.run()
    ended = np.sort(driven.log.finish_ms)
    rate = (0.7 * count) / (ended[int(0.9 * count)] - ended[int(0.2 * count)])
    found = closed_loop_of_any_length(times(1.0), np.array([float(clients)]), None, Outside(outside_ms))
    assert found.requests_per_ms[0] == pytest.approx(rate, rel=0.12)
    assert found.steady_ttft_ms[0] == pytest.approx(clients / found.requests_per_ms[0] - outside_ms)


def test_one_token_takes_no_longer_than_two() -> None:
    """Latency never falls, and throughput never rises, with the output length."""
    row = {
        "model": "qwen2-7b",
        "hardware": "MI350X",
        "backend": "vllm",
        "weights": "bf16",
        "kv": "fp8",
        "tp": 2,
    }
    row |= {"mode": "closed_loop", "input_tokens": 7436, "max_batched_tokens": 16384}
    outputs = [1, 2, 3, 5, 8, 20]
    for clients in (4, 11):
        rows = [row | {"output_tokens": each, "concurrency": clients, "case_id": each} for each in outputs]
        found = predict(pd.DataFrame(rows))
        assert (np.diff(found["latency_ms"]) >= -2e-3 * found["latency_ms"][:-1]).all()
        assert (np.diff(found["requests_per_s"]) <= 2e-3 * found["requests_per_s"][:-1]).all()
