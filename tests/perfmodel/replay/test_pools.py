"""Prefill pools against hand-worked batches and exact queues."""

import numpy as np
import pytest

from fleetplan.perfmodel.replay import PrefillPool
from fleetplan.perfmodel.replay.pools import run_prefill
from fleetplan.perfmodel.serving import Requests, StepCosts

# 0.01 ms a token, and 1 ms of attention for each 16 tokens.
COSTS = StepCosts(tuple((0.01 * np.arange(8193)).tolist()), (0.0, 0.0), (0.0, 0.0), tuple([0.0] * 1025))


def pool(**changes: float) -> PrefillPool:
    figures = {
        "replicas": 1,
        "batch": 1,
        "ranks": 1,
        "stages": 1,
        "chunk_tokens": 8192,
        "transfer_ms_per_token": 0.0,
    }
    return PrefillPool(COSTS, **{**figures, **changes})  # type: ignore[arg-type]


def requests(arrival_ms: list[float], tokens: list[int]) -> Requests:
    n = len(tokens)
    none = np.zeros(n, dtype=np.int64)
    return Requests(np.array(arrival_ms), np.array(tokens), none, none + 1)


def test_prompts_run_in_the_order_of_their_arrival() -> None:
    done = run_prefill(pool(), requests([0.0, 1.0, 2.0], [1000, 500, 100]))
    assert done.start_ms.tolist() == [0.0, 10.0, 15.0]
    assert done.computed_ms.tolist() == pytest.approx([10.0, 15.0, 16.0])
    assert done.busy_ms == pytest.approx(16.0)


def test_what_waits_is_batched() -> None:
    done = run_prefill(pool(batch=2), requests([0.0, 1.0, 2.0, 3.0], [1000, 500, 100, 100]))
    assert done.start_ms.tolist() == pytest.approx([0.0, 10.0, 10.0, 16.0])
    assert done.computed_ms.tolist() == pytest.approx([10.0, 16.0, 16.0, 17.0])


def test_the_rank_with_most_tokens_sets_the_time() -> None:
    done = run_prefill(pool(ranks=2), requests([0.0, 0.0, 0.0], [1000, 300, 100]))
    assert done.computed_ms.tolist() == pytest.approx([10.0, 10.0, 11.0])


def test_a_pipeline_takes_the_next_prompt_when_its_first_stage_is_free() -> None:
    done = run_prefill(pool(stages=2), requests([0.0, 0.0], [1000, 1000]))
    assert done.computed_ms.tolist() == pytest.approx([10.0, 15.0])


def test_long_prompts_take_several_iterations() -> None:
    done = run_prefill(pool(chunk_tokens=100), requests([0.0], [250]))
    assert done.computed_ms[0] == pytest.approx(2.5)


def test_chunks_of_a_prompt_follow_each_other_through_a_pipeline() -> None:
    # Ten chunks of 1 ms in two stages: the last one leaves the first stage at 5 ms, the second 0.5 ms later.
    done = run_prefill(pool(stages=2, chunk_tokens=100, pipelined=True), requests([0.0, 0.0], [1000, 1000]))
    assert done.computed_ms.tolist() == pytest.approx([5.5, 10.5])
    whole = run_prefill(pool(stages=2, chunk_tokens=1000, pipelined=True), requests([0.0, 0.0], [1000, 1000]))
    assert whole.computed_ms.tolist() == pytest.approx([10.0, 15.0])


def test_caches_leave_over_one_link_one_after_the_other() -> None:
    done = run_prefill(pool(transfer_ms_per_token=0.02), requests([0.0, 0.0], [1000, 100]))
    # Computed at 10 and 11 ms; the first takes the link until 30 ms.
    assert done.arrived_ms.tolist() == pytest.approx([30.0, 32.0])


def test_one_server_of_one_length_is_m_d_1_and_four_are_less() -> None:
    n = 100_000
    random = np.random.default_rng(5)
    arrivals = np.cumsum(random.exponential(10 / 0.8, n))
    alone = run_prefill(pool(), requests(arrivals.tolist(), [1000] * n))
    wait = float((alone.start_ms - arrivals)[5000:].mean())
    assert wait == pytest.approx(10 * 0.8 / 0.4, rel=0.05)
    four = run_prefill(pool(replicas=4), requests((arrivals / 4).tolist(), [1000] * n))
    assert float((four.start_ms - arrivals / 4)[5000:].mean()) < wait / 4
