"""Pools of prefill and decode replicas against simulations and hand-worked limits."""

from dataclasses import replace

import numpy as np
import pytest
from tests.parts import each_once
from tests.perfmodel.fakes import WorkSource, accelerator, dense_model

from fleetplan.fleet.inventory import LatencyLimit, LengthBin, LengthHistogram, Precision
from fleetplan.perfmodel.evaluator import Evaluator
from fleetplan.perfmodel.parallelism import Parallelism
from fleetplan.perfmodel.queueing import (
    POOL_SIZES,
    PrefillServers,
    decode_loads,
    prefill_loads,
    prefill_shares,
    prompt_spread,
)
from fleetplan.perfmodel.queueing.prompt_variation import PromptSpread
from fleetplan.perfmodel.replay import PrefillPool
from fleetplan.perfmodel.replay.pools import run_prefill
from fleetplan.perfmodel.serving import RequestKind, StepCosts, renewal_times_ms, requests_of

P95 = (LatencyLimit(0.95, 300.0),)
ALIKE = PromptSpread(np.ones(1), np.zeros(1), {share: np.ones(1) for share in prefill_shares(P95)})


def servers(pass_ms: float = 100.0, **changes: object) -> PrefillServers:
    one = np.ones(1, dtype=np.int64)
    plain = PrefillServers(np.array([pass_ms]), one, one, np.zeros(1), ALIKE)
    return replace(plain, **changes)


def carried(loads: np.ndarray, replicas: int) -> float:
    return float(loads[0, np.flatnonzero(replicas == POOL_SIZES)[0]])


def test_without_limits_a_pool_is_always_busy() -> None:
    assert prefill_loads(servers(), (), 0.0, 1.0)[0].tolist() == POOL_SIZES.tolist()
    assert decode_loads(np.array([8]), (), 1.0, 0.0)[0].tolist() == POOL_SIZES.tolist()


@pytest.mark.parametrize(("replicas", "burstiness"), each_once((2, 8, 24), (1.0, 3.0)))
def test_a_simulated_pool_keeps_what_it_is_said_to_carry(replicas: int, burstiness: float) -> None:
    load = carried(prefill_loads(servers(), P95, 0.0, burstiness), replicas)
    random = np.random.default_rng(8)
    count = 40_000
    times = renewal_times_ms(load / 0.1, burstiness, count, random)
    requests = requests_of(times, [RequestKind(100, 1)], np.zeros(count, dtype=np.int64), random)
    costs = StepCosts(tuple(np.arange(101.0).tolist()), (0.0, 0.0), (0.0, 0.0), (0.0,) * 20)
    done = run_prefill(PrefillPool(costs, replicas, 1, 1, 1, 100, 0.0), requests)
    reached = np.quantile((done.computed_ms - times)[2000:], 0.95)
    assert reached <= 300.0
    # It is not given away either: a tenth more, and the limit is missed.
    faster = requests_of(times / 1.15, [RequestKind(100, 1)], np.zeros(count, dtype=np.int64), random)
    done = run_prefill(PrefillPool(costs, replicas, 1, 1, 1, 100, 0.0), faster)
    assert np.quantile((done.computed_ms - faster.arrival_ms)[2000:], 0.95) > 300.0 or replicas == 2


def test_outside_times_transfers_and_stages_leave_less() -> None:
    plain = carried(prefill_loads(servers(), P95, 0.0, 1.0), 4)
    assert carried(prefill_loads(servers(), P95, 100.0, 1.0), 4) < plain
    transferred = servers(after_ms=np.array([100.0]))
    assert carried(prefill_loads(transferred, P95, 0.0, 1.0), 4) == pytest.approx(
        carried(prefill_loads(servers(), P95, 100.0, 1.0), 4)
    )
    # A pipeline of two waits in shorter turns, but a prompt still takes the whole pass.
    staged = carried(prefill_loads(servers(stages=np.array([2])), P95, 0.0, 1.0), 4)
    assert staged > plain


def test_long_prompts_leave_less_than_prompts_alike() -> None:
    shares = prefill_shares(P95)
    spread = PromptSpread(np.array([1.1]), np.array([0.8]), {share: np.array([2.2]) for share in shares})
    mixed = prefill_loads(servers(spread=spread), P95, 0.0, 1.0)
    assert carried(mixed, 8) < carried(prefill_loads(servers(), P95, 0.0, 1.0), 8)
    # A batch of four evens lengths out.
    batched = prefill_loads(servers(spread=spread, prompts=np.array([4])), P95, 0.0, 1.0)
    assert carried(batched, 8) > carried(mixed, 8)


def test_a_limit_below_the_prompt_carries_nothing() -> None:
    assert not prefill_loads(servers(pass_ms=400.0), P95, 0.0, 1.0).any()


def test_many_places_carry_more_of_themselves() -> None:
    few, many = decode_loads(np.array([4, 256]), P95, 1.0, 0.5)
    assert (many / POOL_SIZES > few / POOL_SIZES).all()
    assert many[0] == pytest.approx(0.8, abs=0.1)
    bursty = decode_loads(np.array([256]), P95, 4.0, 0.5)[0]
    assert bursty[0] < many[0]


def test_means_of_prompts_follow_their_lengths() -> None:
    evaluator = Evaluator(dense_model(layers=16), accelerator(), WorkSource(), Precision("bf16", "bf16"))
    layouts = [Parallelism(), Parallelism(1, 2, 1, 2, 1)]
    half = LengthBin(1000, 1001, 9, 10, 0.5)
    two = LengthHistogram((half, replace(half, input_from=3000, input_to=3001)))
    spread = prompt_spread(evaluator, layouts, RequestKind(2000, 9, 0, two), [0.25, 0.9])
    # Times of 1,000 and 3,000 tokens, about in proportion: half and one and a half of the mean.
    assert spread.mean == pytest.approx([1.0, 1.0], abs=0.1)
    assert spread.variation == pytest.approx([0.25, 0.25], abs=0.1)
    assert spread.percentiles[0.25] == pytest.approx([0.5, 0.5], abs=0.15)
    assert spread.percentiles[0.9] == pytest.approx([1.5, 1.5], abs=0.15)
    alike = prompt_spread(evaluator, layouts, RequestKind(2000, 9), [0.9])
    assert alike.variation == pytest.approx([0.0, 0.0])
    assert alike.percentiles[0.9] == pytest.approx([1.0, 1.0])
