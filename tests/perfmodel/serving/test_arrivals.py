"""Made-up traffic has the statistics that it was made from."""

import numpy as np
import pytest

from fleetplan.fleet.inventory import LengthBin, LengthHistogram
from fleetplan.perfmodel.serving import Regimes, RequestKind, regime_times_ms, renewal_times_ms, requests_of
from fleetplan.perfmodel.serving.arrivals import drawn_lengths

HISTOGRAM = LengthHistogram(
    (LengthBin(1, 101, 1, 11, 0.5), LengthBin(101, 1101, 1, 11, 0.25), LengthBin(101, 1101, 11, 211, 0.25))
)


@pytest.mark.parametrize("burstiness", [0.25, 1.0, 4.0])
def test_renewals_have_their_rate_and_burstiness(burstiness: float) -> None:
    times = renewal_times_ms(50.0, burstiness, 200_000, np.random.default_rng(1))
    gaps = np.diff(times)
    assert 1e3 / gaps.mean() == pytest.approx(50.0, rel=0.02)
    assert gaps.var() / gaps.mean() ** 2 == pytest.approx(burstiness, rel=0.05)


def test_regimes_keep_the_mean_and_add_bursts() -> None:
    regimes = Regimes(busy_ratio=3.0, busy_share=0.2, busy_s=10.0)
    times = regime_times_ms(50.0, regimes, 20_000.0, np.random.default_rng(2))
    assert times.size / 20_000.0 == pytest.approx(50.0, rel=0.05)
    assert (np.diff(times) >= 0).all()
    seconds = np.bincount((times // 1e3).astype(int))
    # 150 a second in a fifth of the time, 25 in the rest.
    assert (seconds > 100).mean() == pytest.approx(0.2, abs=0.04)
    assert seconds.var() / seconds.mean() > 20


def test_a_busy_regime_cannot_carry_more_than_all() -> None:
    with pytest.raises(ValueError, match="more than all requests"):
        Regimes(busy_ratio=6.0, busy_share=0.2)


def test_lengths_are_those_of_the_histogram_scaled_to_the_means() -> None:
    kind = RequestKind(650, 64, 0, HISTOGRAM)
    inputs, outputs = drawn_lengths(kind, 200_000, np.random.default_rng(3))
    assert inputs.mean() == pytest.approx(650, rel=0.01)
    assert outputs.mean() == pytest.approx(64, rel=0.01)
    assert outputs.var() / outputs.mean() ** 2 == pytest.approx(kind.output_variation, rel=0.03)
    for share in (0.25, 0.6, 0.9):
        expected = kind.input_quantiles(np.array([share]))[0]
        assert np.quantile(inputs, share) == pytest.approx(expected, rel=0.03)
    assert inputs.max() + outputs.max() <= kind.longest_tokens


def test_without_a_histogram_all_are_alike() -> None:
    kind = RequestKind(100, 10, 5)
    inputs, outputs = drawn_lengths(kind, 3, np.random.default_rng(3))
    assert (inputs.tolist(), outputs.tolist()) == ([100] * 3, [10] * 3)
    assert (kind.longest_tokens, kind.output_variation) == (115, 0.0)
    assert kind.input_quantiles(np.array([0.99])).tolist() == [100.0]


def test_classes_have_their_own_lengths() -> None:
    classes = np.array([0, 1, 0, 1])
    kinds = [RequestKind(10, 1), RequestKind(20, 2, 7)]
    found = requests_of(np.arange(4.0), kinds, classes, np.random.default_rng(1))
    assert found.input_tokens.tolist() == [10, 20, 10, 20]
    assert found.prefix_tokens.tolist() == [0, 7, 0, 7]
    assert found.classes.tolist() == classes.tolist()
