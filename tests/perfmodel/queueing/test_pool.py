"""Pools against textbook queues."""

import math

import numpy as np
import pytest

from fleetplan.perfmodel.queueing.pool import (
    Variability,
    erlang_c,
    fall_rate,
    sojourn_mean,
    sojourn_percentile,
    waiting,
)


def one(value: float) -> np.ndarray:
    return np.array([float(value)])


def textbook_erlang_c(servers: int, load: float) -> float:
    terms = [load**k / math.factorial(k) for k in range(servers)]
    last = load**servers / math.factorial(servers) / (1 - load / servers)
    return last / (sum(terms) + last)


@pytest.mark.parametrize("servers", [1, 2, 5, 20, 60])
@pytest.mark.parametrize("utilisation", [0.2, 0.6, 0.9, 0.98])
def test_m_m_n_is_exact(servers: int, utilisation: float) -> None:
    chance = textbook_erlang_c(servers, servers * utilisation)
    wait = waiting(one(servers), one(utilisation), Variability(1.0, 1.0))
    assert wait.chance[0] == pytest.approx(chance, rel=1e-9)
    assert wait.mean[0] == pytest.approx(chance / (servers * (1 - utilisation)), rel=1e-9)
    # The wait of those who wait is exponential.
    expected = math.log(max(1.0, chance / 0.05)) / (servers * (1 - utilisation))
    assert wait.percentile(0.95)[0] == pytest.approx(expected, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("utilisation", [0.1, 0.5, 0.8, 0.95])
@pytest.mark.parametrize("service", [0.0, 0.5, 3.0])
def test_one_server_has_the_mean_of_pollaczek_and_khinchine(utilisation: float, service: float) -> None:
    wait = waiting(one(1), one(utilisation), Variability(1.0, service)).mean[0]
    assert wait == pytest.approx(utilisation * (1 + service) / (2 * (1 - utilisation)), rel=1e-9)


# Percentiles of M/D/1's wait, in service times, from its exact distribution: P(W <= x) = (1 - rho)
# sum over k <= x of exp(-rho (k - x)) (rho (k - x))^k / k!
def exact_m_d_1(utilisation: float, x: float) -> float:
    terms = (
        math.exp(-utilisation * (k - x)) * (utilisation * (k - x)) ** k / math.factorial(k)
        for k in range(math.floor(x) + 1)
    )
    return (1 - utilisation) * sum(terms)


@pytest.mark.parametrize(("utilisation", "share"), [(0.5, 0.99), (0.7, 0.95), (0.7, 0.99), (0.8, 0.99)])
def test_m_d_1_percentiles_within_three_percent(utilisation: float, share: float) -> None:
    wait = waiting(one(1), one(utilisation), Variability(1.0, 0.0)).percentile(share)[0]
    assert exact_m_d_1(utilisation, wait * 1.03) > share > exact_m_d_1(utilisation, wait * 0.97)


def test_long_waits_of_m_d_1_fall_as_they_should() -> None:
    # exp(eta) = 1 + eta / rho.
    for utilisation in (0.3, 0.6, 0.9):
        rate = fall_rate(one(1), one(utilisation), Variability(1.0, 0.0))[0]
        assert math.exp(rate) == pytest.approx(1 + rate / utilisation, rel=1e-8)


def test_a_pool_of_n_falls_n_times_as_fast() -> None:
    traffic = Variability(3.0, 0.5)
    alone, eight = fall_rate(one(1), one(0.7), traffic)[0], fall_rate(one(8), one(0.7), traffic)[0]
    assert eight == pytest.approx(8 * alone)


def test_the_rate_of_fall_solves_its_equation() -> None:
    dice = np.random.default_rng(7)
    utilisation = dice.uniform(0.3, 0.999, 2000)
    arrivals, service = 10 ** dice.uniform(-3, 1.5, (2, 2000))
    rate = fall_rate(np.ones(2000), utilisation, Variability(arrivals, service))
    left = -np.log1p(-service * rate) / service - np.log1p(arrivals * rate / utilisation) / arrivals
    assert np.abs(left / rate).max() < 1e-6


def test_bursts_and_load_lengthen_and_servers_shorten() -> None:
    servers, load = one(8), one(0.8)
    plain = sojourn_percentile(servers, load, Variability(1.0, 0.5), 0.95)[0]
    assert sojourn_percentile(servers, load, Variability(4.0, 0.5), 0.95)[0] > plain
    assert sojourn_percentile(servers, one(0.9), Variability(1.0, 0.5), 0.95)[0] > plain
    assert sojourn_percentile(one(16), load, Variability(1.0, 0.5), 0.95)[0] < plain
    assert sojourn_percentile(servers, load, Variability(1.0, 0.5), 0.99)[0] > plain


def test_bursty_traffic_reads_the_row_of_a_smaller_pool() -> None:
    bursty = waiting(one(16), one(0.8), Variability(4.0, 0.0))
    small = waiting(one(4), one(0.8), Variability(1.0, 0.0))
    assert bursty.chance[0] == pytest.approx(small.chance[0])
    assert bursty.mean[0] == pytest.approx(small.mean[0])


def test_without_load_only_the_service_is_left() -> None:
    traffic = Variability(1.0, 1.0)
    assert sojourn_mean(one(4), one(1e-6), traffic)[0] == pytest.approx(1.0)
    found = sojourn_percentile(one(4), one(1e-6), traffic, 0.95, service_percentile=3.0)[0]
    assert found == pytest.approx(3.0)


def test_erlang_c_of_a_part_of_a_server_lies_between() -> None:
    # As a function of the servers at one utilisation it falls without a step.
    values = erlang_c(np.linspace(0.25, 4.0, 40), np.full(40, 0.7))
    assert (np.diff(values) < 0).all()
