"""All requests at once: makespans by hand, waves, unequal lengths, and how a framework's limits show."""

from dataclasses import replace

import numpy as np
import pytest
from tests.perfmodel.fakes import WorkSource, accelerator, dense_model, layouts

from fleetplan.fleet.inventory import Precision
from fleetplan.perfmodel.evaluator import Evaluator
from fleetplan.perfmodel.parallelism import parse_parallelism
from fleetplan.perfmodel.replay import offline as module
from fleetplan.perfmodel.replay.offline import TooManyRequestsError, offline
from fleetplan.perfmodel.serving import Load, Range, Scheduling, step_costs

EVALUATOR = Evaluator(dense_model(layers=16), accelerator(), WorkSource(), Precision("bf16", "bf16"))
PLAIN = Scheduling(max_sequences=256, iteration_tokens=8192)


def load(label: str = "TP2", tokens: tuple[int, int] = (512, 65), scheduling: Scheduling = PLAIN) -> Load:
    return Load(layouts(label), np.array([tokens[0]]), np.array([0]), np.array([tokens[1]]), scheduling)


def makespan_ms(count: float, wanted: Load, variation: float = 0.0) -> float:
    return count / float(offline(EVALUATOR, wanted, np.array([count]), variation).requests_per_s[0]) * 1e3


def test_a_batch_that_fits_takes_its_prompts_and_its_steps() -> None:
    costs = step_costs(EVALUATOR, parse_parallelism("TP2"), Range(16, 8192, 1024))
    prompts = costs.token_ms[8192] + 16 * costs.prompt_ms[512 // 16]
    steps = [costs.iteration_ms(0, 0, 16, 16.0 * (512 + 1 + each)) for each in range(64)]
    assert makespan_ms(16, load()) == pytest.approx(prompts + sum(steps), rel=0.01)


def test_twice_the_requests_of_a_full_engine_take_twice_as_long() -> None:
    few, many = makespan_ms(2000, load()), makespan_ms(4000, load())
    assert many / few == pytest.approx(2.0, rel=0.05)


def test_a_narrow_batch_takes_waves() -> None:
    narrow = load(scheduling=replace(PLAIN, max_sequences=4))
    assert makespan_ms(16, narrow) > 3.5 * makespan_ms(4, narrow)


def test_a_small_cache_is_a_narrow_batch() -> None:
    small = Evaluator(
        dense_model(layers=16), accelerator(hbm_gib=0.8), WorkSource(), Precision("bf16", "bf16")
    )
    state = offline(small, load(), np.array([2000.0]))
    assert state.fits.all()
    assert state.batch[0] < offline(EVALUATOR, load(), np.array([2000.0])).batch[0]


def test_unequal_lengths_end_with_a_long_tail() -> None:
    assert makespan_ms(200, load(), 1.0) > 1.3 * makespan_ms(200, load())


def test_replicas_split_the_requests_over_their_engines() -> None:
    assert makespan_ms(64, load("TP2DP4-TP8")) < makespan_ms(64, load())
    alone = offline(EVALUATOR, load("TP2DP4-TP8"), np.array([64.0]))
    assert alone.batch[0] <= 16


def test_more_requests_than_are_simulated_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_REQUESTS", 10)
    with pytest.raises(TooManyRequestsError, match="n_requests: 11 of one engine"):
        offline(EVALUATOR, load(), np.array([11.0]))
