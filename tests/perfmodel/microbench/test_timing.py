"""Duration of measurements: blocks of executions, precision, controls, parallel processes."""

from __future__ import annotations

import os
import time
from itertools import chain
from typing import TYPE_CHECKING

import pytest
from tests.perfmodel.microbench.scripted_clock import QUICK, ScriptedClock, device, operands, single
from tests.perfmodel.microbench.torch_needed import needs_torch

from fleetplan.perfmodel.microbench.control import Control
from fleetplan.perfmodel.microbench.points import point
from fleetplan.perfmodel.microbench.timing import TimingEffort, is_known, quantile_of, stable_timing
from fleetplan.perfmodel.operators import OperatorKind

if TYPE_CHECKING:
    from fleetplan.perfmodel.microbench.operands import Kernel

pytestmark = needs_torch


def nothing() -> Kernel:
    """A kernel that does nothing."""
    kernel: Kernel = operands.Kernel.of(lambda: None)
    return kernel


def test_a_kernel_runs_until_its_time_stands_still() -> None:
    # Three that do not count; then blocks of 64, of which two are of a slow spell.
    blocks = [[9.0] * 3, [4.0, 6.0] * 32, [20.0] * 64, [20.0] * 64, *[[4.0, 6.0] * 32] * 20]
    clock = ScriptedClock(chain.from_iterable(blocks))
    timing = stable_timing(nothing(), clock, TimingEffort())
    # The mean of a block, which no execution took; the spell is left out.
    assert timing.latency_us == 5.0
    assert clock.asked == [3, *[64] * 8]
    assert timing.repeats == 8 * 64


def test_a_time_is_known_when_blocks_no_longer_change_it() -> None:
    assert not is_known([5.0] * 7)
    assert is_known([5.0] * 8)
    rising = [5.0 + step for step in range(20)]
    assert not is_known(rising)
    assert is_known([*rising, *[14.5] * 3])


def test_what_is_known_when_the_time_is_up_counts() -> None:
    noisy = ScriptedClock(float(1 + position) for position in range(10_000_000))
    timing = stable_timing(nothing(), noisy, TimingEffort(most_s=0.0))
    # Two blocks, of which quartiles are made.
    assert noisy.asked == [3, 64, 64]
    assert timing.latency_us == (sum(range(4, 68)) + sum(range(68, 132))) / 128


def test_long_executions_are_blocks_of_their_own() -> None:
    class Slow(ScriptedClock):
        def times_us(self, kernel: Kernel, repeats: int) -> list[float]:
            time.sleep(0.002 * repeats)
            return super().times_us(kernel, repeats)

    clock = Slow([1.0] * 1000)
    stable_timing(nothing(), clock, TimingEffort(most_s=0.01, block_s=0.002))
    assert set(clock.asked[1:]) == {1}


def test_processes_that_measure_together_stop_together() -> None:
    class Agreeing(ScriptedClock):
        def agreed(self, value: float) -> float:
            # Another one was slow: its block had one execution, and its time is up.
            return 100.0

    clock = Agreeing(float(position) for position in range(1, 1000))
    stable_timing(nothing(), clock, TimingEffort())
    assert clock.asked == [3, 1, 1]


def test_shares_of_a_list() -> None:
    assert [quantile_of([3.0, 1.0, 2.0], share) for share in (0.0, 0.5, 1.0)] == [1.0, 2.0, 3.0]


def test_the_control_is_run_before_and_after_a_point() -> None:
    # The choice of either kernel takes three executions; then four blocks of either.
    blocks = [[1.0] * 6, [4.0, 6.0] * 8, [8.0] * 8, [99.0] * 8, [7.0] * 32, [9.0] * 10_000]
    clock = ScriptedClock(chain.from_iterable(blocks))
    control = Control(clock)
    clock.asked.clear()
    # Of the first, halfway between means of 5 and 8; of the second, 7.
    assert control.time_us() == 6.5 + 7.0
    assert clock.asked == [8] * 8
    each = point(OperatorKind.GEMM, "bf16", m=1, n=16, k=16)
    # The longer one of before and after.
    assert single.measure_alone(each, clock, QUICK, control).control_us == 18.0
    assert single.measure_alone(each, clock, QUICK).control_us is None


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one core alone")
def test_threads_stay_on_their_cores_while_they_are_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fleetplan.perfmodel.microbench.device.LOOK_S", 0.0)
    before = os.sched_getaffinity(0)
    used = iter([dict.fromkeys(before, 0), {core: 100 * (core != max(before)) for core in before}])
    monkeypatch.setattr("fleetplan.perfmodel.microbench.device._jiffies_used", lambda: next(used))
    with device.Pinned(1):
        # The core that nobody used meanwhile.
        assert os.sched_getaffinity(0) == {max(before)}
    assert os.sched_getaffinity(0) == before
    with device.Pinned(len(before)):
        assert os.sched_getaffinity(0) == before
