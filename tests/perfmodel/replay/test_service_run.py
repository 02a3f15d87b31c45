"""Requests of a service through routing, prefill, hand-over and decode, worked out by hand."""

import numpy as np
import pytest

from fleetplan.fleet.inventory import LatencyLimit
from fleetplan.perfmodel.replay import (
    Deployment,
    EngineGroup,
    EnginePool,
    LoadTarget,
    PrefillGroup,
    PrefillPool,
    capacity,
    run_service,
    running_over_time,
    sustained_rate_per_s,
)
from fleetplan.perfmodel.replay.capacity import RATES, highest_rate
from fleetplan.perfmodel.replay.deployed import DeployedEngine
from fleetplan.perfmodel.replay.engine_state import EngineLimits
from fleetplan.perfmodel.serving import RequestKind, Requests, StepCosts

# Every iteration takes 10 ms, whatever it computes.
COSTS = StepCosts((10.0,) * 4200, (0.0,) * 65, (0.0,) * 65, (0.0,) * 300)


def engine(sequences: int = 64, tokens_per_step: float = 1.0) -> DeployedEngine:
    return DeployedEngine(COSTS, EngineLimits(sequences, 4096, 10**9), tokens_per_step)


def engines(rate: float = 1.0, count: int = 1, **more: float) -> EngineGroup:
    return EngineGroup("engines", engine(**more), count, (rate,))  # type: ignore[arg-type]


def prefill(rate: float = 1.0, transfer: float = 0.0) -> PrefillGroup:
    return PrefillGroup("prefill", PrefillPool(COSTS, 1, 1, 1, 1, 4096, transfer), (rate,))


def requests(arrival_ms: list[float], output: int, tokens: int = 100) -> Requests:
    n = len(arrival_ms)
    none = np.zeros(n, dtype=np.int64)
    return Requests(np.array(arrival_ms), none + tokens, none, none + output)


def test_aggregated_requests_compute_and_generate() -> None:
    run = run_service(Deployment((engines(),), (), ()), requests([0.0, 100.0], 4))
    assert run.ttft_ms.tolist() == [10.0, 10.0]
    assert run.tpot_ms.tolist() == [10.0, 10.0]
    assert run.latency_ms.tolist() == [40.0, 40.0]


def test_a_prompt_is_handed_over_and_decoded() -> None:
    # 10 ms of prompt, 100 tokens at 0.5 ms each on the way, then three more tokens.
    run = run_service(Deployment((), (prefill(transfer=0.5),), (engines(),)), requests([0.0], 4))
    assert run.ttft_ms.tolist() == [60.0]
    assert run.latency_ms.tolist() == [90.0]
    assert [(use.phase, use.requests) for use in run.groups] == [("prefill", 1), ("decode", 1)]


def test_decode_without_a_place_makes_wait() -> None:
    deployment = Deployment((), (prefill(),), (engines(sequences=1),))
    run = run_service(deployment, requests([0.0, 0.0], 3))
    # Prompts end at 10 and 20 ms; the place is taken from 10 to 30 ms.
    assert run.first_ms.tolist() == [10.0, 30.0]


def test_groups_share_traffic_as_planned() -> None:
    n = 4000
    deployment = Deployment((engines(3.0), EngineGroup("other", engine(), 1, (1.0,))), (), ())
    run = run_service(deployment, requests(list(np.arange(n) * 5.0), 1))
    first, second = run.groups
    assert first.requests + second.requests == n
    assert first.requests / n == pytest.approx(0.75, abs=0.03)


def test_a_class_that_nothing_serves_is_an_error() -> None:
    with pytest.raises(ValueError, match="no replicas serve"):
        run_service(Deployment((engines(0.0),), (), ()), requests([0.0], 1))


def test_speculation_takes_fewer_iterations() -> None:
    run = run_service(Deployment((engines(tokens_per_step=2.0),), (), ()), requests([0.0], 9))
    # Eight tokens after the first, two an iteration.
    assert run.latency_ms.tolist() == [50.0]
    assert run.tpot_ms.tolist() == [5.0]


def test_who_waits_and_who_runs_over_time() -> None:
    deployment = Deployment((), (prefill(),), (engines(),))
    run = run_service(deployment, requests([0.0, 0.0, 0.0], 1))
    waiting, running = running_over_time(run.groups[0], np.array([-1.0, 5.0, 15.0, 25.0, 35.0]))
    assert waiting.tolist() == [0, 2, 1, 0, 0]
    assert running.tolist() == [0, 1, 1, 1, 0]


# Rates that limits allow ------------------------------------------------------------------------------------


def target(limit: LatencyLimit, burstiness: float = 1.0, output: int = 1) -> LoadTarget:
    return LoadTarget(RequestKind(100, output), burstiness, (limit,), ())


def test_the_rate_of_a_limit_is_that_of_m_d_1() -> None:
    # One request at a time, 10 ms each: M/D/1. The mean of 20 ms is reached at rho / (2 (1 - rho)) = 1.
    pool = EnginePool(COSTS, EngineLimits(1, 100, 10**9), 1)
    found = sustained_rate_per_s(pool, target(LatencyLimit(None, 20.0)), 100.0)
    assert found == pytest.approx(0.97 * 66.7, rel=0.04)


def test_tighter_limits_and_bursts_allow_less() -> None:
    pool = EnginePool(COSTS, EngineLimits(1, 100, 10**9), 1)
    p95 = sustained_rate_per_s(pool, target(LatencyLimit(0.95, 30.0)), 100.0)
    assert sustained_rate_per_s(pool, target(LatencyLimit(0.99, 30.0)), 100.0) < p95
    assert sustained_rate_per_s(pool, target(LatencyLimit(0.95, 30.0), burstiness=4.0), 100.0) < p95
    assert sustained_rate_per_s(pool, target(LatencyLimit(0.95, 9.0)), 100.0) == 0.0


def test_a_request_that_grows_beyond_the_cache_allows_no_rate() -> None:
    """A batch of mean lengths fits: half of the output is there at a time."""
    pool = EnginePool(COSTS, EngineLimits(1, 2048, 150), 1)
    limit = LatencyLimit(0.9, 1e9)
    assert sustained_rate_per_s(pool, target(limit, output=100), 1.0) == 0.0
    assert sustained_rate_per_s(pool, target(limit, output=50), 1.0) > 0.0


def test_large_pools_carry_more_each() -> None:
    limits = EngineLimits(1, 100, 10**9)
    limit = target(LatencyLimit(0.95, 20.0))
    one = sustained_rate_per_s(EnginePool(COSTS, limits, 1), limit, 100.0)
    eight = sustained_rate_per_s(EnginePool(COSTS, limits, 8), limit, 800.0)
    assert eight / 8 > 1.3 * one


@pytest.mark.parametrize("step", [1, 16])
@pytest.mark.parametrize("highest", [0, 1, 2, 31, 32, 33, 62, 63])
def test_the_highest_rate_is_found_from_any_guess(highest: int, step: int) -> None:
    for first in (0, 1, 32, 40, 63):
        asked: list[int] = []

        def keeps(rate: int, asked: list[int] = asked) -> bool:
            asked.append(rate)
            return rate <= highest

        assert highest_rate(keeps, first, step) == highest
        assert len(set(asked)) == len(asked)
        assert all(0 < rate < RATES for rate in asked)
        # A right guess takes two looks, a wrong one no more than twice as many as halving does.
        assert len(asked) <= (2 if step == 1 and 0 < first == highest else 12), first


def test_a_guess_from_few_requests_does_not_change_the_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = EngineLimits(sequences=8, iteration_tokens=2048, kv_tokens=100_000)
    pools = [EnginePool(COSTS, limits, engines) for engines in (1, 3)]
    targets = [target(LatencyLimit(0.95, 30.0), burstiness=each) for each in (1.0, 4.0)]
    cases = [(pool, each) for pool in pools for each in targets]
    found = [sustained_rate_per_s(*case, 300.0) for case in cases]
    monkeypatch.setattr(capacity, "FEWER", 1)
    assert [sustained_rate_per_s(*case, 300.0) for case in cases] == found
    assert all(found)
