import numpy as np
import pytest
from tests.perfmodel.fakes import WorkSource, accelerator, dense_model, layouts, whole

from fleetplan.fleet.inventory import Precision
from fleetplan.perfmodel.evaluator import Evaluator
from fleetplan.perfmodel.serving import PREFILL_TOKENS_LIMIT, Load, SteadyState, closed_loop, open_loop
from fleetplan.perfmodel.serving.replica_load import iterations

BF16 = Precision("bf16", "bf16")
EVALUATOR = Evaluator(dense_model(layers=16), accelerator(), WorkSource(), BF16)


def load(n_configs: int, label: str = "TP2", input_tokens: int = 1000, output_tokens: int = 200) -> Load:
    def filled(value: int) -> np.ndarray:
        return np.full(n_configs, value)

    return Load(layouts(*[label] * n_configs), filled(input_tokens), filled(0), filled(output_tokens))


def closed(
    *concurrency: float, framework: str = "vllm", label: str = "TP2", tokens: int = 1000
) -> SteadyState:
    return closed_loop(EVALUATOR, framework, load(len(concurrency), label, tokens), np.array(concurrency))


@pytest.mark.parametrize("framework", ["vllm", "sglang"])
def test_closed_loop_is_a_fixed_point(framework: str) -> None:
    concurrency = np.array([16.0, 64.0, 512.0])
    state = closed(*concurrency, framework=framework)
    decoding = 200 * state.tpot_ms
    expected = concurrency * decoding / (decoding + state.ttft_ms)
    assert np.abs(state.batch - expected).max() <= 1.0
    assert state.requests_per_s == pytest.approx(concurrency / (decoding + state.ttft_ms) * 1e3)


def test_one_request_at_a_time_is_a_batch_of_one() -> None:
    state = closed(1.0)
    assert state.batch.tolist() == [1]


def test_more_concurrency_is_never_faster_and_never_less_throughput() -> None:
    state = closed(1, 2, 4, 8, 16, 32, 64, 128, 256)
    assert (np.diff(state.tpot_ms) >= 0).all()
    assert (np.diff(state.requests_per_s) >= 0).all()


def test_the_cache_limits_the_batch_and_the_rest_waits() -> None:
    small = Evaluator(dense_model(layers=16), accelerator(hbm_gib=0.8), WorkSource(), BF16)
    state = closed_loop(small, "vllm", load(1), np.array([2000.0]))
    assert state.batch[0] < 1000
    assert state.fits.all()
    in_service = state.requests_per_s / 1e3 * (200 * state.tpot_ms + state.ttft_ms)
    assert in_service == pytest.approx([2000.0])


def test_ranks_and_micro_batches_share_the_requests() -> None:
    alone, shared = closed(8.0), closed(64.0, label="PP2-TP2DP4-TP8")
    assert shared.batch[0] <= 8
    assert alone.batch[0] <= 8
    assert shared.requests_per_s[0] > alone.requests_per_s[0]


def test_prompts_beyond_an_iteration_come_in_chunks() -> None:
    short = iterations(EVALUATOR, "vllm", load(1, input_tokens=PREFILL_TOKENS_LIMIT), whole(4))
    long = iterations(EVALUATOR, "vllm", load(1, input_tokens=3 * PREFILL_TOKENS_LIMIT), whole(4))
    assert long.ttft_ms[0] > 3 * short.ttft_ms[0]


def test_prompts_first_delays_every_iteration_fused_prompts_replace_some() -> None:
    fused = iterations(EVALUATOR, "vllm", load(1), whole(64))
    apart = iterations(EVALUATOR, "sglang", load(1), whole(64))
    assert apart.tpot_ms[0] > fused.tpot_ms[0]
    assert apart.ttft_ms[0] < fused.ttft_ms[0]


def test_open_loop_serves_the_given_rate() -> None:
    served = closed(64.0)
    state = open_loop(EVALUATOR, "vllm", load(1), served.requests_per_s)
    assert state.sustained.all()
    assert state.requests_per_s == pytest.approx(served.requests_per_s)
    # The batch that this rate keeps busy is the one that the closed loop settled at.
    assert abs(int(state.batch[0]) - int(served.batch[0])) <= 2
    assert state.tpot_ms == pytest.approx(served.tpot_ms, rel=0.05)


def test_a_rate_beyond_all_batches_is_not_sustained() -> None:
    state = open_loop(EVALUATOR, "vllm", load(2), np.array([1.0, 1e9]))
    assert state.sustained.tolist() == [True, False]
    assert 1.0 < state.requests_per_s[1] < 1e9
