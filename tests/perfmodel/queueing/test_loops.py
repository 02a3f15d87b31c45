"""Formulas of continuous batching against the simulator, and their limits."""

from dataclasses import replace

import numpy as np
import pytest
from tests.perfmodel.fakes import WorkSource, accelerator, dense_model

from fleetplan.fleet.inventory import Precision
from fleetplan.perfmodel.evaluator import Evaluator
from fleetplan.perfmodel.parallelism import Parallelism
from fleetplan.perfmodel.queueing.batching import open_loop, renewals
from fleetplan.perfmodel.replay.engine import PoolRun
from fleetplan.perfmodel.replay.engine_state import EngineLimits
from fleetplan.perfmodel.replay.pools import run_engines
from fleetplan.perfmodel.serving import Range, Requests, step_costs, step_grids
from fleetplan.perfmodel.serving.closed import Outside, closed_loop
from fleetplan.perfmodel.serving.iteration_times import IterationTimes, after_prefix_ms
from fleetplan.perfmodel.serving.lengths import Lengths

EVALUATOR = Evaluator(dense_model(layers=16), accelerator(), WorkSource(), Precision("bf16", "bf16"))
BUDGET = 2048
REACH = Range(256, BUDGET, 8192)
COSTS = step_costs(EVALUATOR, Parallelism(1, 2, 1, 2, 1), REACH)
GRIDS = step_grids(EVALUATOR, [Parallelism(1, 2, 1, 2, 1)], REACH)
LIMITS = EngineLimits(256, BUDGET, 10**9)
MEAN_INPUT, MEAN_OUTPUT = 900, 135
TIMES = IterationTimes(GRIDS, Lengths(MEAN_INPUT, 0.0, MEAN_OUTPUT), BUDGET)


def one(value: float) -> np.ndarray:
    return np.array([float(value)])


def drawn(n: int, arrival_ms: np.ndarray, fixed: bool = False) -> Requests:
    random = np.random.default_rng(6)
    input_tokens = np.full(n, MEAN_INPUT) if fixed else random.integers(800, 1001, n)
    output_tokens = np.full(n, MEAN_OUTPUT) if fixed else random.integers(120, 151, n)
    return Requests(arrival_ms, input_tokens, np.zeros(n, dtype=np.int64), output_tokens)


def rate_per_ms(prompt_share: float) -> float:
    full_ms = TIMES.mixed_ms(one(BUDGET), one(0.0))[0]
    # Sequences beside the prompts lengthen the iterations: the share comes out somewhat larger.
    return prompt_share * BUDGET / full_ms / MEAN_INPUT


@pytest.mark.parametrize("prompt_share", [0.15, 0.4])
@pytest.mark.parametrize("burstiness", [1.0, 4.0])
def test_open_loop_agrees_with_the_simulator(prompt_share: float, burstiness: float) -> None:
    # Of 6,000 requests the mean TPOT differs by 7 % from seed to seed.
    rate, n = rate_per_ms(prompt_share), 24_000
    gaps = np.random.default_rng(7).gamma(1 / burstiness, burstiness / rate, n)
    wanted = drawn(n, np.cumsum(gaps))
    log = run_engines(COSTS, LIMITS, wanted, 1, "random", seed=1)
    ttft = (log.first_ms - wanted.arrival_ms)[500:]
    tpot = ((log.finish_ms - log.first_ms) / (wanted.output_tokens - 1))[500:]
    found = open_loop(TIMES, one(rate), burstiness)
    assert found.ttft_ms[0] == pytest.approx(ttft.mean(), rel=0.15)
    assert found.ttft_percentile_ms(0.95)[0] == pytest.approx(np.percentile(ttft, 95), rel=0.25)
    assert found.ttft_percentile_ms(0.99)[0] == pytest.approx(np.percentile(ttft, 99), rel=0.35)
    assert found.tpot_ms[0] == pytest.approx(tpot.mean(), rel=0.06 if burstiness == 1 else 0.25)
    assert prompt_share < found.prompt_share[0] < 1.35 * prompt_share


def test_without_load_a_prompt_runs_alone() -> None:
    found = open_loop(TIMES, one(1e-9))
    assert found.ttft_ms[0] - found.tpot_ms[0] / 2 == pytest.approx(
        TIMES.mixed_ms(one(900), one(0))[0], rel=0.02
    )
    assert found.sequences[0] < 0.01


def test_arrivals_in_bunches_have_mates() -> None:
    # A Poisson process has as many arrivals after one as at any other time; a bursty one more.
    expected = np.array([0.01, 0.1, 1.0, 5.0])
    assert renewals(expected, 1.0).tolist() == expected.tolist()
    assert (renewals(expected, 4.0) > expected).all()
    # In the long run the excess is (ca2 - 1) / 2.
    assert renewals(np.array([8.0]), 4.0)[0] - 8.0 == pytest.approx(1.5, abs=0.1)


def simulated_closed(clients: int, rounds: int, fixed: bool = False) -> tuple[np.ndarray, np.ndarray]:
    n = clients * rounds
    wanted = drawn(n, np.zeros(n), fixed)
    # A follower just misses the iteration that starts when its predecessor ends.
    driven = PoolRun(COSTS, LIMITS, wanted, released=n - clients, turnaround_ms=0.01)
    driven.send(0, np.arange(clients))
    driven.run()
    log = driven.log
    return log.first_ms - log.arrival_ms, (log.finish_ms - log.first_ms) / (wanted.output_tokens - 1)


@pytest.mark.parametrize("clients", [1, 8, 32])
def test_closed_loop_agrees_with_the_simulator(clients: int) -> None:
    ttft, tpot = simulated_closed(clients, 10)
    found = closed_loop(TIMES, one(clients), one(10))
    assert found.mean_ttft_ms[0] == pytest.approx(ttft.mean(), rel=0.15)
    assert found.burst_ttft_ms[0] == pytest.approx(ttft[:clients].mean(), rel=0.05)
    assert found.tpot_ms[0] == pytest.approx(tpot.mean(), rel=0.08)


def test_more_clients_than_prompts_can_feed_wait() -> None:
    found = closed_loop(TIMES, np.array([64.0, 1000.0]), np.array([50.0, 50.0]))
    in_system = (found.steady_ttft_ms + (MEAN_OUTPUT - 1) * found.tpot_ms) / found.tpot_ms
    starts = (BUDGET - found.sequences) / MEAN_INPUT
    # Little's law: clients = starts an iteration * iterations in the system.
    assert (starts * in_system)[1] == pytest.approx(1000.0, rel=0.02)
    assert found.steady_ttft_ms[1] > 3 * found.steady_ttft_ms[0]


def test_time_outside_the_engine_keeps_clients_out_of_the_batch() -> None:
    clients, rounds = one(32), one(10)
    plain = closed_loop(TIMES, clients, rounds)
    slow = closed_loop(TIMES, clients, rounds, Outside(request_ms=500.0))
    assert slow.sequences[0] < plain.sequences[0]
    assert slow.tpot_ms[0] < plain.tpot_ms[0]
    # Little's law holds of the whole way of a request.
    cycle_ms = slow.steady_ttft_ms + (MEAN_OUTPUT - 1) * slow.tpot_ms + 500.0
    assert (slow.requests_per_ms * cycle_ms)[0] == pytest.approx(32.0)
    assert slow.burst_ttft_ms[0] == plain.burst_ttft_ms[0]


def test_a_burst_is_as_fast_as_the_front_end_that_feeds_it() -> None:
    apart_ms, clients = 1000.0, 16
    found = closed_loop(TIMES, one(clients), one(10), Outside(apart_ms=apart_ms))
    alone_ms = TIMES.prompts_ms(one(MEAN_INPUT), one(0))[0]
    assert found.burst_ttft_ms[0] == pytest.approx(alone_ms + apart_ms * (clients - 1) / 2, rel=1e-3)


def test_a_single_client_has_the_engine_to_itself() -> None:
    found = closed_loop(TIMES, one(1), one(10))
    prompt_ms = TIMES.prompts_ms(one(MEAN_INPUT), one(0))[0]
    decode_ms = (MEAN_OUTPUT - 1) * TIMES.decode_ms(one(1))[0]
    assert found.steady_ttft_ms[0] == pytest.approx(prompt_ms, rel=0.02)
    assert found.requests_per_ms[0] == pytest.approx(1 / (prompt_ms + decode_ms), rel=0.02)


def test_some_of_the_loads_have_the_times_that_they_would_have_alone() -> None:
    inputs, prefixes = np.array([900.0, 100.0, 400.0]), np.array([0.0, 64.0, 640.0])
    outputs, lost = np.array([135.0, 40.0, 90.0]), np.array([0.0, 0.5, 0.25])
    grids = step_grids(EVALUATOR, [Parallelism(1, 1, 1, 1, 1), Parallelism(1, 2, 1, 2, 1)], REACH)
    layouts = np.array([0, 1, 1])
    together = IterationTimes(
        grids, Lengths(inputs, prefixes, outputs, lost_ratio=lost), BUDGET, layouts=layouts
    )
    for row in range(3):
        lengths = Lengths(inputs[row], prefixes[row], outputs[row], lost_ratio=lost[row])
        alone = IterationTimes(grids.of(layouts[row]), lengths, BUDGET)
        expected = alone.mixed_ms(one(300), one(8))
        assert together.take(np.array([row])).mixed_ms(one(300), one(8)) == pytest.approx(expected, rel=1e-12)
        assert together.of(row).mixed_ms(one(300), one(8)) == pytest.approx(expected, rel=1e-12)


def test_a_prompt_takes_the_most_of_all_shorter_prefixes() -> None:
    # Attention that falls between two points, as measured times of short prompts do.
    lengths, bends = np.array([0.0, 100, 200, 400]), np.array([[0.0, 1, 5, 5.5]])
    bent = replace(GRIDS, lengths=lengths, prompt_ms=bends, unlimited_ms=0.0 * bends)
    cases = {(0, 100): 1.0, (100, 100): 5.0, (200, 100): 5.0, (50, 100): 3.0}
    for (prefix, prompt), expected in cases.items():
        found = after_prefix_ms(bent, np.array([0]), one(prefix), one(prompt))
        assert found == pytest.approx([expected]), (prefix, prompt)


def test_a_prompt_that_attends_to_its_whole_prefix_takes_as_long_as_one_of_as_many_pairs() -> None:
    attention = GRIDS.unlimited_ms[0]
    assert (attention <= GRIDS.prompt_ms[0]).all()
    found = after_prefix_ms(GRIDS, np.array([0]), one(800), one(200))
    # Each of 200 tokens attends to 800 tokens and to those of its own prompt, as 600 of a whole prompt do.
    whole = np.sqrt(0.25 + 2 * (200 * 800 + 100 * 201)) - 0.5
    other = (GRIDS.prompt_ms[0] - attention)[1]
    assert found[0] == pytest.approx(np.interp(whole, GRIDS.lengths, attention) + other, rel=1e-2)


def test_requests_of_different_lengths_have_the_answers_of_each_alone() -> None:
    lengths = Lengths(np.array([900.0, 100.0]), np.array([0.0, 64.0]), np.array([135.0, 40.0]))
    together = closed_loop(IterationTimes(GRIDS, lengths, BUDGET), np.array([8.0, 30.0]), np.ones(2))
    second = IterationTimes(GRIDS, Lengths(100.0, 64.0, 40.0), BUDGET)
    alone = closed_loop(second, one(30), one(1))
    for name in ("tpot_ms", "steady_ttft_ms", "burst_ttft_ms", "requests_per_ms"):
        assert getattr(together, name)[1] == pytest.approx(getattr(alone, name)[0])
