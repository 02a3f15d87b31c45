"""Admission of prompts: waits against arrivals counted one by one, and their effect on a closed loop."""

from dataclasses import replace

import numpy as np
import pytest
from tests.perfmodel.queueing.test_loops import BUDGET, COSTS, TIMES, drawn, one

from fleetplan.perfmodel.replay.engine import PoolRun
from fleetplan.perfmodel.replay.engine_state import EngineLimits
from fleetplan.perfmodel.serving import Admission
from fleetplan.perfmodel.serving.closed import ClosedLoop, closed_loop

ITERATIONS = 100_000


def loop(clients: np.ndarray, rules: Admission) -> ClosedLoop:
    return closed_loop(replace(TIMES, admission=rules), clients, np.full(clients.size, 10.0))


def counted_wait(admission: Admission, starts: float) -> float:
    """Mean iterations from the first boundary after an arrival to the one at which the request is let in."""
    random = np.random.default_rng(3)
    waits: list[int] = []
    waiting: list[int] = []
    opened, last_look = -1, 0
    for now in range(ITERATIONS):
        waiting += [now] * int(random.poisson(starts))
        if not waiting or now - last_look < admission.polled_iterations:
            continue
        last_look = now
        if admission.gathering_iterations:
            opened = now if opened < 0 else opened
            if now - opened < admission.gathering_iterations:
                continue
            opened = -1
        waits += [now - came for came in waiting]
        waiting = []
    return float(np.mean(waits))


@pytest.mark.parametrize("starts", [0.01, 0.3])
def test_gathering_waits_as_counted(starts: float) -> None:
    rules = Admission(gathering_iterations=40)
    assert rules.wait_iterations(one(starts))[0] == pytest.approx(counted_wait(rules, starts), rel=0.04)
    assert rules.joint_iterations == 40


def test_seldom_looks_wait_for_half_of_the_time_between_them() -> None:
    # Many arrivals, so that no look finds nothing; that it falls on a boundary is the half that is left out.
    rules = Admission(polled_iterations=30)
    assert rules.wait_iterations(one(5))[0] == pytest.approx(counted_wait(rules, 5), rel=0.02)
    assert rules.joint_iterations == 30


def test_looks_before_every_iteration_wait_for_nothing() -> None:
    assert Admission().wait_iterations(one(0.2))[0] == 0
    assert counted_wait(Admission(), 0.2) == 0
    assert Admission().joint_iterations == 1


def test_an_iteration_made_up_ahead_is_waited_for() -> None:
    clients = np.array([1.0, 16.0])
    plain, ahead = loop(clients, Admission()), loop(clients, Admission(iterations_ahead=1))
    # A single client finds the engine idle.
    assert ahead.steady_ttft_ms[0] == pytest.approx(plain.steady_ttft_ms[0])
    assert ahead.admission_ms[0] == 0
    added = ahead.steady_ttft_ms[1] - plain.steady_ttft_ms[1]
    assert added == pytest.approx(ahead.tpot_ms[1] * 15 / 16, rel=0.05)
    # The burst at the start finds it idle as well.
    assert ahead.burst_ttft_ms.tolist() == plain.burst_ttft_ms.tolist()


def test_prompts_that_came_together_are_computed_together() -> None:
    found = loop(one(32), Admission(polled_iterations=10))
    plain = loop(one(32), Admission())
    waited = found.admission_ms[0]
    assert waited == pytest.approx(4.5 * found.tpot_ms[0] * 31 / 32)
    assert found.steady_ttft_ms[0] - waited > 1.2 * plain.steady_ttft_ms[0]
    # They take their clients out of the batch meanwhile.
    assert found.sequences[0] < plain.sequences[0]


@pytest.mark.parametrize("clients", [1, 8, 32])
def test_prompts_apart_agree_with_the_simulator(clients: int) -> None:
    wanted = drawn(10 * clients, np.zeros(10 * clients))
    limits = EngineLimits(256, BUDGET, 10**9, prompts_apart=True)
    driven = PoolRun(COSTS, limits, wanted, released=9 * clients, turnaround_ms=0.01)
    driven.send(0, np.arange(clients))
    driven.run()
    log = driven.log
    ttft = log.first_ms - log.arrival_ms
    tpot = (log.finish_ms - log.first_ms) / (wanted.output_tokens - 1)
    found = loop(one(clients), Admission(prompts_apart=True))
    assert found.burst_ttft_ms[0] == pytest.approx(ttft[:clients].mean(), rel=0.05)
    assert found.mean_ttft_ms[0] == pytest.approx(ttft.mean(), rel=0.15)
    assert found.tpot_ms[0] == pytest.approx(tpot.mean(), rel=0.08)
