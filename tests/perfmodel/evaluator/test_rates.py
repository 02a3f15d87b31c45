"""The identities between latencies and rates, on every row of the paper's Tables 6 to 8."""

import numpy as np
import pytest
from tests.perfmodel.paper_tables import (
    ACCELERATORS,
    CONTINUOUS_BATCHING,
    DISAGGREGATED,
    HETEROGENEOUS,
    OUTPUT_TOKENS,
    ContinuousBatching,
    Disaggregated,
    Heterogeneous,
)

from fleetplan.perfmodel.evaluator import (
    disaggregated_requests_per_s,
    on_accelerators,
    prefill_mix,
    prefill_to_decode_ratio,
)
from fleetplan.perfmodel.evaluator.rates import (
    continuous_batching_requests_per_s,
    continuous_batching_tpot_ms,
    decode_requests_per_s,
    prefill_requests_per_s,
)
from fleetplan.perfmodel.parallelism import parse_parallelism

# Printed figures are whole numbers: each may be off by half of its last digit.
HALF = 0.5


def one(value: float) -> np.ndarray:
    return np.array([value], dtype=np.float64)


def within(low: np.ndarray, printed: float, high: np.ndarray) -> bool:
    return bool(low[0] - HALF <= printed <= high[0] + HALF)


@pytest.mark.parametrize("row", DISAGGREGATED)
def test_prefill_rate_is_stages_times_batch_over_ttft(row: Disaggregated) -> None:
    layout = parse_parallelism(row.prefill)

    def rate(ttft_ms: float) -> np.ndarray:
        each = prefill_requests_per_s(one(layout.pp), one(1), one(ttft_ms))
        return on_accelerators(each, one(layout.accelerators), ACCELERATORS)

    assert within(rate(row.ttft_ms + HALF), row.prefill_requests_per_s, rate(row.ttft_ms - HALF))


@pytest.mark.parametrize("row", DISAGGREGATED)
def test_decode_rate_is_stages_times_batch_over_output_times_tpot(row: Disaggregated) -> None:
    layout = parse_parallelism(row.decode)

    def rate(tpot_ms: float) -> np.ndarray:
        output = one(OUTPUT_TOKENS[row.table])
        each = decode_requests_per_s(one(layout.pp), one(row.batch), output, one(tpot_ms))
        return on_accelerators(each, one(layout.accelerators), ACCELERATORS)

    assert within(rate(row.tpot_ms + HALF), row.decode_requests_per_s, rate(row.tpot_ms - HALF))


@pytest.mark.parametrize("row", DISAGGREGATED)
def test_disaggregated_rate_is_the_harmonic_sum(row: Disaggregated) -> None:
    prefill, decode = row.prefill_requests_per_s, row.decode_requests_per_s
    low = disaggregated_requests_per_s(one(prefill - HALF), one(decode - HALF))
    high = disaggregated_requests_per_s(one(prefill + HALF), one(decode + HALF))
    assert within(low, row.requests_per_s, high)


@pytest.mark.parametrize("row", HETEROGENEOUS)
def test_two_hardware_kinds_follow_the_same_sum_and_ratio(row: Heterogeneous) -> None:
    prefill, decode = row.prefill_requests_per_s, row.decode_requests_per_s
    low = disaggregated_requests_per_s(one(prefill - HALF), one(decode - HALF))
    high = disaggregated_requests_per_s(one(prefill + HALF), one(decode + HALF))
    assert within(low, row.requests_per_s, high)
    low = prefill_to_decode_ratio(one(prefill + HALF), one(decode - HALF))[0] - 0.005
    high = prefill_to_decode_ratio(one(prefill - HALF), one(decode + HALF))[0] + 0.005
    assert low <= row.decode_to_prefill_ratio <= high


@pytest.mark.parametrize("row", CONTINUOUS_BATCHING)
def test_continuous_batching_rate_counts_prefill_and_decode(row: ContinuousBatching) -> None:
    layout = parse_parallelism(row.setup)

    def rate(change_ms: float) -> np.ndarray:
        each = continuous_batching_requests_per_s(
            one(layout.pp),
            one(row.batch),
            one(OUTPUT_TOKENS[row.table]),
            one(row.ttft_ms + change_ms),
            one(row.tpot_ms + change_ms),
        )
        return on_accelerators(each, one(layout.accelerators), ACCELERATORS)

    assert within(rate(HALF), row.requests_per_s, rate(-HALF))


@pytest.mark.parametrize(
    ("model", "hardware"),
    [
        ("llama3-70b", "GPU-B"),
        ("llama3-70b", "NextGen"),
        ("llama3-405b", "GPU-B"),
        ("llama3-405b", "NextGen"),
    ],
)
def test_continuous_batching_tpot_mixes_two_kinds_of_iteration(model: str, hardware: str) -> None:
    """The offline rows with the same batch and setup for decode alone give t_decode."""
    alone = next(r for r in DISAGGREGATED if r[:3] == ("offline", model, hardware))
    mixed = next(r for r in CONTINUOUS_BATCHING if r[:3] == ("offline", model, hardware))
    assert (alone.batch, alone.decode) == (mixed.batch, mixed.setup)
    mix = prefill_mix(one(mixed.batch), one(OUTPUT_TOKENS["offline"]))
    assert (mix.fewer[0], mix.more[0], mix.more_share[0]) == (0, 1, 0.25)
    tpot = continuous_batching_tpot_ms(mix, one(alone.tpot_ms), one(mixed.ttft_ms))
    # 405B on GPU-B prints 1145 where its own latencies give 1147.25: 0.2 %.
    assert tpot[0] == pytest.approx(mixed.tpot_ms, rel=0.0025)


def test_iterations_carry_several_prompts_where_outputs_are_short() -> None:
    mix = prefill_mix(one(250), one(100))
    assert (mix.fewer[0], mix.more[0], mix.more_share[0]) == (2, 3, 0.5)
    whole_numbers = prefill_mix(one(200), one(100))
    assert (whole_numbers.fewer[0], whole_numbers.more[0], whole_numbers.more_share[0]) == (2, 2, 1.0)
