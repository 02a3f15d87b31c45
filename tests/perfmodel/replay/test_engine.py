"""The engine against exact queues, a step-by-step reference, and cases worked out by hand."""

from collections import deque
from dataclasses import replace
from math import inf

import numpy as np
import pytest

from fleetplan.perfmodel.replay.engine import PoolRun
from fleetplan.perfmodel.replay.engine_state import EngineLimits, RequestLog
from fleetplan.perfmodel.replay.pools import attention_ms, run_engines
from fleetplan.perfmodel.serving import Requests, StepCosts

AMPLE = 10**9


def costs(
    most_sequences: int = 64,
    most_tokens: int = 4096,
    base_ms: float = 10.0,
    ms_per_token: float = 0.0,
    ms_per_context: float = 0.0,
    ms_per_prompt_block: float = 0.0,
) -> StepCosts:
    """Return iterations of base + tokens * a + context * b; prompts add a time for each 16 of their
    tokens."""
    return StepCosts(
        tuple((base_ms + ms_per_token * np.arange(most_tokens + most_sequences + 1)).tolist()),
        tuple([0.0] * (most_sequences + 1)),
        tuple([ms_per_context] * (most_sequences + 1)),
        tuple((ms_per_prompt_block * np.arange(4096)).tolist()),
    )


def requests(arrival_ms: list[float], tokens: list[int], output: list[int], **more: object) -> Requests:
    none = np.zeros(len(tokens), dtype=np.int64)
    given = {"prefix_tokens": none, **more}
    return Requests(np.array(arrival_ms), np.array(tokens), output_tokens=np.array(output), **given)


def served(
    step_costs: StepCosts, limits: EngineLimits, wanted: Requests, engines: int = 1, router: str = "random"
) -> RequestLog:
    return run_engines(step_costs, limits, wanted, engines, router, seed=1)


def limits(sequences: int = 64, tokens: int = 4096, kv: int = AMPLE, **more: object) -> EngineLimits:
    return EngineLimits(sequences, tokens, kv, **more)


# One request, worked out by hand ----------------------------------------------------------------------------


def test_a_request_alone() -> None:
    log = served(costs(), limits(), requests([5.0], [100], [4]))
    assert [*log.start_ms, *log.first_ms, *log.finish_ms] == [5.0, 15.0, 45.0]


def test_one_token_ends_with_the_prompt() -> None:
    log = served(costs(), limits(), requests([0.0], [100], [1]))
    assert log.first_ms.tolist() == log.finish_ms.tolist() == [10.0]


def test_context_grows_by_a_token_each_iteration() -> None:
    # Iterations of 10 + 0.1 ms for each of 101, 102 and 103 tokens.
    log = served(costs(ms_per_context=0.1), limits(), requests([0.0], [100], [4]))
    assert log.finish_ms[0] == pytest.approx(10 + 20.1 + 20.2 + 20.3)


def test_prompts_are_cut_where_the_budget_ends() -> None:
    # 250 tokens in iterations of 100: attention over 250 / 16 blocks in all.
    log = served(costs(ms_per_prompt_block=1.0), limits(tokens=100), requests([0.0], [250], [1]))
    assert log.first_ms[0] == pytest.approx(30.0 + 250 / 16)


def test_running_sequences_take_their_part_of_the_budget() -> None:
    # The second prompt arrives in the first iteration. Then 99 of its 150 tokens fit beside one sequence.
    log = served(costs(), limits(tokens=100), requests([0.0, 1.0], [100, 150], [10, 1]))
    assert log.first_ms.tolist() == [10.0, 30.0]


def test_a_prompt_waits_for_the_iteration_to_end() -> None:
    log = served(costs(), limits(), requests([0.0, 11.0], [10, 10], [5, 1]))
    assert log.first_ms.tolist() == [10.0, 30.0]


def test_a_full_batch_makes_wait() -> None:
    log = served(costs(), limits(sequences=1), requests([0.0, 0.0], [10, 10], [3, 1]))
    assert [*log.finish_ms, log.first_ms[1]] == [30.0, 40.0, 40.0]


def test_prompts_apart_stop_the_others() -> None:
    # With sglang's order the second prompt's iteration gives the first sequence no token.
    both = requests([0.0, 5.0], [10, 10], [3, 1])
    assert served(costs(), limits(), both).finish_ms.tolist() == [30.0, 20.0]
    assert served(costs(), limits(prompts_apart=True), both).finish_ms.tolist() == [40.0, 20.0]


# The cache --------------------------------------------------------------------------------------------------


def test_a_prompt_waits_until_its_cache_fits() -> None:
    # Two prompts of 100 with their first tokens do not fit in 201; the second starts when the first has
    # ended.
    log = served(costs(), limits(kv=201), requests([0.0, 0.0], [100, 100], [5, 1]))
    assert log.finish_ms.tolist() == [50.0, 60.0]
    assert log.preemptions.tolist() == [0, 0]


def test_the_last_admitted_loses_its_cache_and_computes_it_again() -> None:
    # Both prompts of 10 run at once; held: 22 tokens after 10 ms, 24 after 20 ms. 25 do not take two more, so
    # the second loses its cache with 2 tokens made. The first ends at 50 ms; the second computes 12 tokens
    # and makes its third at 60 ms, its fourth and fifth at 80 ms.
    log = served(costs(), limits(kv=25), requests([0.0, 0.0], [10, 10], [5, 5]))
    assert log.preemptions.tolist() == [0, 1]
    assert log.first_ms.tolist() == [10.0, 10.0]
    assert log.finish_ms.tolist() == [50.0, 80.0]
    assert log.computed_tokens.tolist() == [10, 22]


def test_a_preempted_request_goes_before_those_that_wait() -> None:
    log = served(costs(), limits(sequences=2, kv=25), requests([0.0, 0.0, 1.0], [10, 10, 10], [5, 5, 1]))
    assert log.first_ms[2] > log.finish_ms[1] - 30.0
    assert log.start_ms[2] >= 50.0


def test_a_request_that_never_fits_is_an_error() -> None:
    with pytest.raises(ValueError, match="longer than the cache"):
        served(costs(), limits(kv=50), requests([0.0], [100], [5]))
    with pytest.raises(ValueError, match="grows beyond"):
        served(costs(), limits(kv=102), requests([0.0], [100], [50]))


def test_the_cache_limits_the_batch() -> None:
    # Room for 4 sequences of 100 + 20 tokens: 40 requests come out at 4 a round of 20 iterations.
    log = served(costs(), limits(kv=4 * 120), requests([0.0] * 40, [100] * 40, [20] * 40))
    assert log.finish_ms.max() == pytest.approx(10 * 20 * 10.0)
    assert log.preemptions.sum() == 0


# Sessions ---------------------------------------------------------------------------------------------------


def test_the_next_request_of_a_session_finds_its_cache() -> None:
    two = requests([0.0, 1000.0], [100, 150], [10, 1], session=np.array([7, 7]))
    assert served(costs(), limits(session_tokens=1000), two).computed_tokens.tolist() == [100, 40]
    assert served(costs(), limits(), two).computed_tokens.tolist() == [100, 150]


def test_the_oldest_session_is_given_up_first() -> None:
    arrivals = [0.0, 1000.0, 2000.0, 3000.0]
    four = requests(arrivals, [100] * 4, [1] * 4, session=np.array([1, 2, 1, 2]))
    # Room for one session of 101: each request throws the other one's out.
    assert served(costs(), limits(session_tokens=150), four).computed_tokens.tolist() == [100] * 4
    assert served(costs(), limits(session_tokens=250), four).computed_tokens.tolist() == [100, 100, 1, 1]


def test_a_session_stays_on_its_engine() -> None:
    n = 40
    wanted = requests((1000.0 * np.arange(n)).tolist(), [100] * n, [1] * n, session=np.arange(n) // 2 % 10)
    for router in ("random", "round-robin", "least-loaded"):
        log = served(costs(), limits(session_tokens=AMPLE), wanted, 4, router)
        for session in range(10):
            assert len({log.engine[i] for i in np.flatnonzero(wanted.session == session)}) == 1
        # The first request of each session computes all of it, the others one token.
        assert log.computed_tokens.sum() == 10 * 100 + (n - 10)


# Against a reference that takes every step ------------------------------------------------------------------


def step_by_step(
    step_costs: StepCosts, bounds: EngineLimits, wanted: Requests
) -> tuple[np.ndarray, np.ndarray]:
    """Simulate one engine an iteration at a time, with plain lists; no preemption, no sessions."""
    n = len(wanted)
    first, finish = np.full(n, inf), np.full(n, inf)
    arrived, waiting, running = deque(range(n)), [], {}
    left = wanted.input_tokens.copy()
    now = 0.0
    while arrived or waiting or running:
        if not waiting and not running:
            now = max(now, wanted.arrival_ms[arrived[0]])
        while arrived and wanted.arrival_ms[arrived[0]] <= now:
            waiting.append(arrived.popleft())
        room, done, tokens, attention = bounds.iteration_tokens - len(running), [], 0, 0.0
        while waiting and room > 0 and len(running) + len(done) < bounds.sequences:
            i = waiting[0]
            taken = min(room, left[i])
            before = wanted.input_tokens[i] - left[i]
            any_ms = step_costs.prompt_ms[0]
            computed = (0.0 if before else any_ms) + taken * (step_costs.prompt_ms[1] - any_ms) / 16
            attention += max(computed, any_ms + before * step_costs.read_ms_per_token)
            attention += before * step_costs.rebuilt_ms_per_token
            tokens, room = tokens + taken, room - taken
            left[i] -= taken
            if left[i]:
                break
            done.append(waiting.pop(0))
        count = len(running)
        context = sum(wanted.input_tokens[i] + made for i, made in running.items())
        now += step_costs.token_ms[tokens + count] + attention
        now += step_costs.decode_ms[count] + step_costs.decode_ms_per_context_token[count] * context
        for i in list(running):
            running[i] += 1
        for i in done:
            running[i] = 1
            first[i] = now
        for i, made in list(running.items()):
            if made >= wanted.output_tokens[i]:
                finish[i] = now
                del running[i]
    return first, finish


@pytest.mark.parametrize("seed", range(6))
def test_jumps_give_the_times_of_single_steps(seed: int) -> None:
    random = np.random.default_rng(seed)
    n = 120
    wanted = requests(
        np.cumsum(random.exponential(120.0, n)).tolist(),
        random.integers(1, 700, n).tolist(),
        random.integers(1, 90, n).tolist(),
    )
    # Something of all that stands before a chunk is read and, by latent attention, computed.
    plain = costs(8, 256, 7.0, 0.02, 1e-3, 0.05)
    step_costs = replace(
        plain,
        prompt_ms=tuple(0.1 * (seed % 3) + each for each in plain.prompt_ms),
        rebuilt_ms_per_token=0.01 * (seed % 2),
        read_ms_per_token=0.001 * (seed % 3),
    )
    bounds = limits(sequences=8, tokens=256)
    first, finish = step_by_step(step_costs, bounds, wanted)
    log = served(step_costs, bounds, wanted)
    assert log.first_ms == pytest.approx(first, rel=1e-9)
    assert log.finish_ms == pytest.approx(finish, rel=1e-9)


@pytest.mark.parametrize(("prompt", "prefix"), [(100, 1000), (7, 4000), (300, 17), (300, 0)])
def test_attention_after_a_cached_prefix_takes_as_long_as_of_as_many_pairs(prompt: int, prefix: int) -> None:
    blocks = np.arange(4096)
    whole = replace(
        costs(ms_per_token=0.01),
        prompt_ms=tuple((0.2 + 0.05 * blocks + 1e-3 * blocks**2).tolist()),
        unlimited_ms=tuple((0.1 + 1e-3 * blocks**2).tolist()),
        read_ms_per_token=1e-5,
    )
    prefixes = np.array([prefix])
    log = served(whole, limits(), requests([0.0], [prompt], [1], prefix_tokens=prefixes))
    assert log.first_ms[0] == pytest.approx(whole.iteration_ms(prompt, prefix, 0, 0.0))
    assert attention_ms(whole, requests([0.0], [prompt], [1], prefix_tokens=prefixes))[0] == pytest.approx(
        whole.after_prefix_ms(prompt, prefix)
    )


def test_an_engine_that_is_driven_in_small_steps_gives_the_same_times() -> None:
    random = np.random.default_rng(2)
    n = 80
    wanted = requests(
        np.cumsum(random.exponential(80.0, n)).tolist(),
        random.integers(1, 400, n).tolist(),
        random.integers(1, 60, n).tolist(),
    )
    whole = served(costs(8, 256, 7.0, 0.02, 1e-3), limits(8, 256), wanted)
    driven = PoolRun(costs(8, 256, 7.0, 0.02, 1e-3), limits(8, 256), wanted)
    driven.send(0, np.arange(n))
    for until in np.arange(0.0, 20_000.0, 13.0):
        driven.run(until)
    driven.run()
    assert driven.log.finish_ms == pytest.approx(whole.finish_ms, rel=1e-9)
    assert driven.state.engines["unfinished"].tolist() == [0]


# Exact queues -----------------------------------------------------------------------------------------------


def poisson(rate_per_ms: float, n: int, seed: int = 3) -> np.ndarray:
    return np.cumsum(np.random.default_rng(seed).exponential(1 / rate_per_ms, n))


def mean_wait_ms(wanted: Requests, log: RequestLog, warm_up: int) -> float:
    return float((log.start_ms - wanted.arrival_ms)[warm_up:].mean())


def test_one_sequence_of_one_token_is_m_d_1() -> None:
    n, service, load = 200_000, 10.0, 0.7
    wanted = requests(poisson(load / service, n).tolist(), [10] * n, [1] * n)
    log = served(costs(base_ms=service), limits(sequences=1, tokens=10), wanted)
    expected = service * load / (2 * (1 - load))
    assert mean_wait_ms(wanted, log, n // 10) == pytest.approx(expected, rel=0.03)


def test_exponential_prompts_are_m_m_1() -> None:
    n, load = 200_000, 0.6
    tokens = np.maximum(1, np.random.default_rng(4).exponential(1000.0, n)).astype(np.int64)
    table = costs(1, int(tokens.max()), base_ms=0.0, ms_per_token=0.01)
    wanted = requests(poisson(load / 10.0, n).tolist(), tokens.tolist(), [1] * n)
    log = served(table, limits(sequences=1, tokens=int(tokens.max())), wanted)
    assert mean_wait_ms(wanted, log, n // 10) == pytest.approx(10.0 * load / (1 - load), rel=0.03)


def test_places_enough_is_m_d_infinity() -> None:
    # Iterations of constant time: the number that run is Poisson with mean rate * time, whatever the batch.
    n, rate = 50_000, 0.02
    wanted = requests(poisson(rate, n).tolist(), [10] * n, [50] * n)
    log = served(costs(400), limits(sequences=400), wanted)
    stay = log.finish_ms - wanted.arrival_ms
    # Half an iteration until the next one starts where one runs, which is nearly always, and 50 of them.
    assert stay.mean() == pytest.approx(505.0, rel=0.002)


def test_least_loaded_beats_the_other_routers() -> None:
    n = 20_000
    tokens = np.clip(np.random.default_rng(4).exponential(1000.0, n), 1, 8000).astype(np.int64)
    table = costs(1, 8000, base_ms=0.0, ms_per_token=0.01)
    wanted = requests(poisson(4 * 0.8 / 10.0, n).tolist(), tokens.tolist(), [1] * n)
    waits = {
        router: mean_wait_ms(wanted, served(table, limits(1, 8000), wanted, 4, router), 1000)
        for router in ("random", "round-robin", "least-loaded")
    }
    assert waits["least-loaded"] < waits["round-robin"] < waits["random"]
    # Four queues of M/M/1; with the shortest joined they wait little longer than M/M/4, 0.1865 * 10 / 0.25.
    assert waits["random"] == pytest.approx(40.0, rel=0.15)
    assert 7.4 < waits["least-loaded"] < 11.0


# Closed loop ------------------------------------------------------------------------------------------------


def test_a_closed_loop_keeps_its_clients() -> None:
    n, clients = 200, 4
    wanted = requests([0.0] * n, [10] * n, [5] * n)
    driven = PoolRun(costs(), limits(), wanted, released=n - clients, turnaround_ms=1.0)
    driven.send(0, np.arange(clients))
    driven.run()
    arrival, finish = driven.log.arrival_ms, driven.log.finish_ms
    assert np.isfinite(finish).all()
    assert driven.state.engines["released"] == driven.state.engines["unfinished"] == 0
    # All start together and end together: a round is one prompt, four tokens, and the turnaround of 1 ms.
    assert finish[:4].tolist() == [50.0] * 4
    assert arrival[4:8].tolist() == [51.0] * 4
    assert finish.max() == pytest.approx(50 * 51.0 - 1.0)
