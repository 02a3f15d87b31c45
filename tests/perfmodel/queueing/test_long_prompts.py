"""Long prompts and short answers, where a request's own prompt fills many of the iterations."""

from dataclasses import dataclass

import numpy as np
import pytest
from tests.perfmodel.queueing.test_loops import BUDGET, EVALUATOR, one

from fleetplan.perfmodel.parallelism import Parallelism
from fleetplan.perfmodel.queueing.batching import open_loop
from fleetplan.perfmodel.replay.engine import PoolRun
from fleetplan.perfmodel.replay.engine_state import EngineLimits
from fleetplan.perfmodel.replay.pools import run_engines
from fleetplan.perfmodel.serving import Admission, Range, Requests, step_costs, step_grids
from fleetplan.perfmodel.serving.closed import closed_loop
from fleetplan.perfmodel.serving.iteration_times import IterationTimes
from fleetplan.perfmodel.serving.lengths import Lengths

REACH = Range(256, BUDGET, 20_000)
LAYOUT = Parallelism(1, 2, 1, 2, 1)
COSTS = step_costs(EVALUATOR, LAYOUT, REACH)
GRIDS = step_grids(EVALUATOR, [LAYOUT], REACH)


@dataclass(frozen=True)
class MeanLoop:
    """Means of what the simulator found."""

    ttft_ms: float
    tpot_ms: float
    requests_per_ms: float


def times(input_tokens: int, output_tokens: int, apart: bool) -> IterationTimes:
    lengths = Lengths(0.9 * input_tokens, 0.0, 0.9 * output_tokens)
    return IterationTimes(GRIDS, lengths, BUDGET, admission=Admission(prompts_apart=apart))


def drawn(arrival_ms: np.ndarray, input_tokens: int, output_tokens: int) -> Requests:
    random, n = np.random.default_rng(3), arrival_ms.size
    inputs = random.integers(int(0.8 * input_tokens), input_tokens + 1, n)
    outputs = random.integers(int(0.8 * output_tokens), output_tokens + 1, n)
    return Requests(arrival_ms, inputs, np.zeros(n, dtype=np.int64), outputs)


def simulated(clients: int, input_tokens: int, output_tokens: int, apart: bool) -> MeanLoop:
    rounds = 40
    n = clients * rounds
    wanted = drawn(np.zeros(n), input_tokens, output_tokens)
    limits = EngineLimits(256, BUDGET, 10**9, apart)
    driven = PoolRun(COSTS, limits, wanted, released=n - clients, turnaround_ms=0.01)
    driven.send(0, np.arange(clients))
    driven.run()
    log, steady = driven.log, slice(2 * clients, None)
    tpot = (log.finish_ms - log.first_ms) / (wanted.output_tokens - 1)
    ttft = log.first_ms - log.arrival_ms
    return MeanLoop(ttft[steady].mean(), tpot[steady].mean(), n / log.finish_ms.max())


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("clients", [1, 2, 4, 16])
@pytest.mark.parametrize(("input_tokens", "output_tokens"), [(8192, 64), (16_000, 32)])
def test_no_request_waits_for_its_own_prompt_while_it_generates(
    input_tokens: int, output_tokens: int, clients: int, apart: bool
) -> None:
    wanted = simulated(clients, input_tokens, output_tokens, apart)
    found = closed_loop(times(input_tokens, output_tokens, apart), one(clients), one(40))
    assert found.tpot_ms[0] == pytest.approx(wanted.tpot_ms, rel=0.06)
    assert found.requests_per_ms[0] == pytest.approx(wanted.requests_per_ms, rel=0.04)
    # Cohorts that form by themselves are not modelled.
    assert found.steady_ttft_ms[0] == pytest.approx(wanted.ttft_ms, rel=0.4)


@pytest.mark.parametrize("apart", [False, True])
def test_a_single_client_meets_no_prompt(apart: bool) -> None:
    of = times(16_000, 32, apart)
    found = closed_loop(of, one(1), one(40))
    assert found.tpot_ms[0] == pytest.approx(of.decode_ms(one(1))[0])
    prompt_ms = of.prompts_ms(one(14_400), one(0))[0]
    rate = 1 / (prompt_ms + of.lengths.decode_iterations * found.tpot_ms[0])
    assert found.requests_per_ms[0] == pytest.approx(rate, rel=0.02)


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize(("input_tokens", "output_tokens"), [(8192, 64), (16_000, 32)])
def test_open_loop_meets_those_that_came_behind_its_own_prompt(
    input_tokens: int, output_tokens: int, apart: bool
) -> None:
    of = times(input_tokens, output_tokens, apart)
    rate, n = 0.4 / of.prompts_ms(one(0.9 * input_tokens), one(0))[0], 6000
    gaps = np.random.default_rng(7).exponential(1 / rate, n)
    wanted = drawn(np.cumsum(gaps), input_tokens, output_tokens)
    log = run_engines(COSTS, EngineLimits(256, BUDGET, 10**9, apart), wanted, 1, "random", seed=1)
    tpot = ((log.finish_ms - log.first_ms) / (wanted.output_tokens - 1))[500:].mean()
    ttft = (log.first_ms - wanted.arrival_ms)[500:].mean()
    found = open_loop(of, one(rate))
    # Without those that came behind it would be 0.42 to 0.7 of the simulator's.
    assert found.tpot_ms[0] == pytest.approx(tpot, rel=0.27)
    assert found.ttft_ms[0] == pytest.approx(ttft, rel=0.25)
