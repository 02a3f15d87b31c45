from dataclasses import replace

import numpy as np
import pytest
from tests.perfmodel.fakes import WorkSource, accelerator, dense_model, layouts

from fleetplan.fleet.inventory import Precision
from fleetplan.perfmodel.evaluator import Evaluator
from fleetplan.perfmodel.serving import Load, Scheduling, burst
from fleetplan.perfmodel.serving.replica_loops import closed_loop
from fleetplan.perfmodel.steps import StepShape

EVALUATOR = Evaluator(dense_model(layers=16), accelerator(), WorkSource(), Precision("bf16", "bf16"))


def load(input_tokens: int, output_tokens: int = 200) -> Load:
    scheduling = Scheduling(max_sequences=4096, iteration_tokens=8192)
    lengths = (np.array([tokens]) for tokens in (input_tokens, 0, output_tokens))
    return Load(layouts("TP2"), *lengths, scheduling)


def step_ms(batch: int, context: int, prompts: int, new_tokens: int) -> float:
    def one(value: int) -> np.ndarray:
        return np.array([value])

    shape = StepShape(layouts("TP2"), one(prompts), one(new_tokens), one(0), one(batch), one(context))
    return float(EVALUATOR.step(shape).latency_ms[0])


def test_prompts_go_first_and_the_first_of_them_wait_for_the_rest() -> None:
    # 32 prompts of 1,024 tokens take four iterations of 8,192.
    state = burst(EVALUATOR, load(1024), np.array([32.0]))
    prefill, decode = step_ms(0, 0, 8, 1024), step_ms(32, 1124, 0, 0)
    assert state.batch.tolist() == [32]
    assert state.ttft_ms == pytest.approx([2.5 * prefill])
    assert state.tpot_ms == pytest.approx([decode + 1.5 * prefill / 199])


def test_one_iteration_of_prompts_delays_no_token() -> None:
    state = burst(EVALUATOR, load(1024), np.array([4.0]))
    assert state.tpot_ms == pytest.approx([step_ms(4, 1124, 0, 0)])


def test_tokens_come_faster_than_in_a_closed_loop_and_the_first_one_later() -> None:
    together = burst(EVALUATOR, load(2048), np.array([64.0]))
    steady = closed_loop(EVALUATOR, load(2048), np.array([64.0]))
    assert together.tpot_ms < steady.tpot_ms
    assert together.ttft_ms > steady.ttft_ms


def test_requests_beyond_the_cache_wait_for_the_next_wave() -> None:
    small = Evaluator(
        dense_model(layers=16), accelerator(hbm_gib=0.8), WorkSource(), Precision("bf16", "bf16")
    )
    state = burst(small, load(1024), np.array([2000.0]))
    assert state.batch[0] < 1000
    wave = 200 * state.tpot_ms[0]
    assert state.ttft_ms[0] > wave


def test_the_last_wave_holds_what_is_left() -> None:
    few, most = load(1024), 24
    narrow = replace(few, scheduling=replace(few.scheduling, max_sequences=most))
    full, rest = (burst(EVALUATOR, few, np.array([float(count)])) for count in (24, 8))
    all_ms = 1e3 * (2 * most / full.requests_per_s + 8 / rest.requests_per_s)
    state = burst(EVALUATOR, narrow, np.array([2.0 * most + 8]))
    assert (2 * most + 8) / state.requests_per_s * 1e3 == pytest.approx(all_ms)
    wave_ms = 1e3 * most / full.requests_per_s
    means = most * (full.ttft_ms + full.ttft_ms + wave_ms) + 8 * (rest.ttft_ms + 2 * wave_ms)
    assert state.ttft_ms == pytest.approx(means / (2 * most + 8))


def test_ranks_with_less_than_one_request_serve_no_more_than_there_are() -> None:
    """Two requests on four ranks have the rate of two requests."""
    ranks = replace(load(1024), layouts=layouts("TP1DP4-TP4"))
    two, four = (burst(EVALUATOR, ranks, np.array([each])) for each in (2.0, 4.0))
    assert two.requests_per_s == pytest.approx(four.requests_per_s / 2)
