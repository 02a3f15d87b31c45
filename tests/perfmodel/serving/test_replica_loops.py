"""Closed and open loops of whole replicas: Little's law, limits of batch and cache, peaks of the phases."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from tests.parts import each_once
from tests.perfmodel.fakes import WorkSource, accelerator, dense_model, layouts

from fleetplan.fleet.inventory import Precision
from fleetplan.perfmodel.evaluator import Evaluator
from fleetplan.perfmodel.predict import predict
from fleetplan.perfmodel.queueing.open_loops import open_loop
from fleetplan.perfmodel.serving import Admission, Load, Scheduling, SteadyState
from fleetplan.perfmodel.serving.replica_loops import closed_loop, full_batches
from fleetplan.perfmodel.serving.scheduling import FrontEnd
from fleetplan.perfmodel.steps import ConfigurationBatch

BF16 = Precision("bf16", "bf16")
EVALUATOR = Evaluator(dense_model(layers=16), accelerator(), WorkSource(), BF16)
PLAIN = Scheduling(max_sequences=1024, iteration_tokens=8192)
APART = replace(PLAIN, admission=Admission(prompts_apart=True))


def load(
    n_configs: int,
    label: str = "TP2",
    input_tokens: int = 1000,
    output_tokens: int = 200,
    scheduling: Scheduling = PLAIN,
) -> Load:
    def filled(value: int) -> np.ndarray:
        return np.full(n_configs, value)

    return Load(
        layouts(*[label] * n_configs), filled(input_tokens), filled(0), filled(output_tokens), scheduling
    )


def closed(*concurrency: float, label: str = "TP2", scheduling: Scheduling = PLAIN) -> SteadyState:
    wanted = load(len(concurrency), label, scheduling=scheduling)
    return closed_loop(EVALUATOR, wanted, np.array(concurrency))


@pytest.mark.parametrize("scheduling", [PLAIN, APART, replace(PLAIN, front_end=FrontEnd(20.0, 10.0))])
def test_littles_law_holds(scheduling: Scheduling) -> None:
    concurrency = np.array([1.0, 16.0, 64.0, 512.0, 5000.0])
    state = closed(*concurrency, scheduling=scheduling)
    cycle_ms = state.ttft_ms + 199 * state.tpot_ms
    assert state.requests_per_s / 1e3 * cycle_ms == pytest.approx(concurrency)


def test_one_request_at_a_time_is_a_batch_of_one() -> None:
    assert closed(1.0).batch.tolist() == [1]


def test_more_concurrency_is_never_faster_and_never_less_throughput() -> None:
    state = closed(1, 2, 4, 8, 16, 32, 64, 128, 256, 1024, 4096)
    assert (np.diff(state.tpot_ms) >= 0).all()
    assert (np.diff(state.requests_per_s) >= 0).all()


def test_the_cache_limits_the_batch_and_the_rest_waits() -> None:
    small = Evaluator(dense_model(layers=16), accelerator(hbm_gib=0.8), WorkSource(), BF16)
    state = closed_loop(small, load(1), np.array([2000.0]))
    assert state.batch[0] < 1000
    assert state.fits.all()
    in_service = state.requests_per_s / 1e3 * (199 * state.tpot_ms + state.ttft_ms)
    assert in_service == pytest.approx([2000.0])


def test_the_batch_of_the_framework_limits_it_as_well() -> None:
    narrow = replace(PLAIN, max_sequences=16)
    limited, free = closed(64.0, scheduling=narrow), closed(16.0)
    assert limited.batch[0] <= 16
    assert limited.tpot_ms == pytest.approx(free.tpot_ms, rel=0.02)
    assert limited.requests_per_s == pytest.approx(free.requests_per_s, rel=0.02)
    assert limited.ttft_ms[0] > 3 * 199 * free.tpot_ms[0] * 0.9


def test_a_burst_at_the_start_lengthens_the_mean_by_its_share() -> None:
    wanted, concurrency = load(1), np.array([64.0])
    steady = closed_loop(EVALUATOR, wanted, concurrency).ttft_ms
    few = closed_loop(EVALUATOR, wanted, concurrency, np.array([128.0])).ttft_ms
    many = closed_loop(EVALUATOR, wanted, concurrency, np.array([6400.0])).ttft_ms
    assert few - steady == pytest.approx(50 * (many - steady))
    assert few > many > steady


def test_ranks_and_micro_batches_share_the_requests() -> None:
    alone, shared = closed(8.0), closed(64.0, label="PP2-TP2DP4-TP8")
    assert shared.batch[0] <= 8
    assert alone.batch[0] <= 8
    assert shared.requests_per_s[0] > alone.requests_per_s[0]


def test_a_case_has_the_same_answer_in_any_company() -> None:
    alone, accompanied = closed(16.0), closed(16.0, 4000.0)
    assert alone.ttft_ms[0] == accompanied.ttft_ms[0]
    assert alone.tpot_ms[0] == accompanied.tpot_ms[0]


def test_prompts_first_delays_every_iteration_fused_prompts_replace_some() -> None:
    assert closed(64.0, scheduling=APART).tpot_ms[0] > closed(64.0).tpot_ms[0]


def peaks_per_s(wanted: Load) -> tuple[float, float]:
    """Largest rate of prefill alone, and of decode alone, over batches; decode has no work for one token."""
    batches = np.unique(np.geomspace(1, 2048, 40).astype(np.int64))
    rows = np.zeros(batches.size, dtype=np.int64)
    tokens = int(wanted.input_tokens[0])
    filled = np.full(batches.size, tokens)
    configurations = ConfigurationBatch(
        wanted.layouts.take(rows), batches, filled, 0 * filled, filled, 0 * filled + 1
    )
    prefill = EVALUATOR.prefill(configurations).requests_per_s.max()
    steps = EVALUATOR.decode(configurations).requests_per_s.max()
    later = int(wanted.output_tokens[0]) - 1
    return float(prefill), float(steps) / later if later else np.inf


def check_peaks(cases: int, seed: int) -> None:
    """Closed loops of random layouts, lengths and concurrency against the peaks of both phases."""
    random = np.random.default_rng(seed)
    labels = ["TP1", "TP2", "PP2-TP2", "TP2DP2-TP4"]
    for label in labels:
        for scheduling in (PLAIN, APART):
            for _ in range(-(-cases // 400)):
                tokens, outputs = int(2 ** random.uniform(3, 14)), int(2 ** random.uniform(0, 11))
                wanted = load(50, label, tokens, outputs, scheduling)
                state = closed_loop(EVALUATOR, wanted, 2.0 ** random.uniform(0, 13, 50))
                opened = open_loop(EVALUATOR, wanted, 2.0 ** random.uniform(-4, 14, 50))
                prefill, decode = peaks_per_s(wanted)
                served = np.maximum(state.requests_per_s, opened.requests_per_s)
                assert served.max() <= 1.01 * prefill, (label, tokens, outputs)
                assert served.max() <= 1.01 * decode, (label, tokens, outputs)


def test_no_loop_passes_the_peak_of_a_phase() -> None:
    check_peaks(800, 11)


@pytest.mark.slow
def test_no_loop_of_many_passes_the_peak_of_a_phase() -> None:
    check_peaks(10_000, 12)


def test_open_loop_serves_the_given_rate() -> None:
    served = closed(64.0)
    state = open_loop(EVALUATOR, load(1), served.requests_per_s)
    assert state.sustained.all()
    assert state.requests_per_s == pytest.approx(served.requests_per_s)
    # The batch that this rate keeps busy is the one that the closed loop settled at.
    assert abs(int(state.batch[0]) - int(served.batch[0])) <= 2
    assert state.tpot_ms == pytest.approx(served.tpot_ms, rel=0.05)


def test_a_rate_beyond_all_batches_is_not_sustained() -> None:
    state = open_loop(EVALUATOR, load(2), np.array([1.0, 1e9]))
    assert state.sustained.tolist() == [True, False]
    assert 1.0 < state.requests_per_s[1] < 1e9


def test_prompts_of_one_token_answers_saturate_prefill_and_no_more() -> None:
    wanted = load(2, "TP1", 2000, 1)
    state = closed_loop(EVALUATOR, wanted, np.array([64.0, 512.0]))
    four = np.array([4])
    prompts = ConfigurationBatch(
        wanted.layouts.take(np.array([0])), four, 500 * four, 0 * four, 500 * four, four
    )
    # An iteration has room for four of them.
    prefill = float(EVALUATOR.prefill(prompts).requests_per_s[0])
    assert state.requests_per_s == pytest.approx([prefill, prefill], rel=0.02)
    opened = open_loop(EVALUATOR, wanted, np.array([0.5 * prefill, 1.2 * prefill]))
    assert opened.sustained.tolist() == [True, False]
    assert opened.ttft_ms[0] > 1e3 / prefill


@pytest.mark.parametrize(
    ("input_tokens", "scheduling"),
    each_once(
        (128, 512, 2000, 20_000),
        (PLAIN, APART, replace(PLAIN, front_end=FrontEnd(160.0, 7.0))),
        pytest.mark.more,
    ),
)
def test_shorter_answers_never_serve_fewer_requests(scheduling: Scheduling, input_tokens: int) -> None:
    """Also where prompts come to fill every iteration: classifiers, scoring, ranking."""
    outputs = np.array([1, 2, 3, 4, 6, 8, 10, 12, 14, 16, 20, 24, 32, 48, 64, 100, 128, 256, 1024])
    for label in ("TP1", "PP2-TP2"):
        for batch in (1, 7, 32, 256, 1000):
            wanted = load(outputs.size, label, input_tokens, scheduling=scheduling)
            wanted = replace(wanted, output_tokens=outputs)
            found = full_batches(EVALUATOR, wanted, np.full(outputs.size, batch))
            # A queue of prompts that is about to form costs a little more than one that is there.
            assert (found.requests_per_s[:-1] >= 0.99 * found.requests_per_s[1:]).all(), (label, batch)


def test_one_more_place_is_no_step_down_where_two_prompts_need_a_second_iteration() -> None:
    """Prompts of 7,679 tokens under a budget of 8,192: most iterations with prompts hold one of them."""
    places = np.arange(105, 150, 5)
    frame = pd.DataFrame(
        {
            "case_id": places.astype(str),
            "model": "qwen3-32b",
            "hardware": "B300-SXM",
            "backend": "sglang",
            "weights": "bf16",
            "mode": "closed_loop",
            "tp": 2,
            "input_tokens": 7679,
            "output_tokens": 956,
            "concurrency": 2000,
            "max_sequences": places,
            "max_batched_tokens": 8192,
        }
    )
    rates = predict(frame)["requests_per_s"].to_numpy()
    # Before, five places more took 16 % of the rate; tables of decode attention have steps of 0.3 %.
    assert (rates[1:] > 0.995 * rates[:-1]).all(), rates
