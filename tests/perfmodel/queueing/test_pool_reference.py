"""The simulation that the formulas of pools are judged by."""

import numpy as np
import pytest
from benchmarks.queueing_bars import _ends, _ends_of_equal, simulated_pool
from tests.parts import each_once

from fleetplan.perfmodel.queueing import SojournLimit
from fleetplan.perfmodel.queueing.capacity import utilisation_within
from fleetplan.perfmodel.queueing.pool import Variability


@pytest.mark.parametrize("servers", [1, 3, 16])
def test_servers_taken_in_turn_end_as_those_that_are_free_first(servers: int) -> None:
    arrivals = np.cumsum(np.random.default_rng(1).exponential(1 / (0.9 * servers), 1001))
    assert _ends_of_equal(arrivals, servers) == pytest.approx(_ends(arrivals, np.ones(1001), servers))


def test_a_request_waits_for_the_server_that_is_free_first() -> None:
    arrivals, service = np.array([0.0, 0.0, 1.0, 1.0]), np.array([3.0, 1.5, 1.0, 1.0])
    assert _ends(arrivals, service, 2).tolist() == [3.0, 1.5, 2.5, 3.5]


@pytest.mark.parametrize(("spread", "expected"), [(0.0, 5.5), (1.0, 10.0)])
def test_a_sample_has_the_utilisation_it_is_asked_for(spread: float, expected: float) -> None:
    # M/D/1 and M/M/1 at 0.9: 1 + rho / (2 (1 - rho)) and 1 / (1 - rho). With these seeds samples that are not
    # scaled to their nominal means miss them by 5 %.
    means = [simulated_pool(1, 0.9, Variability(1.0, spread), 300_000, seed)[0].mean() for seed in (1, 2)]
    assert np.mean(means) == pytest.approx(expected, rel=0.035)


@pytest.mark.parametrize(("long_share", "servers"), each_once((0.02, 0.1, 0.5), (1, 4, 16), pytest.mark.more))
def test_classes_that_share_a_pool_keep_the_limit_of_the_worst_of_them(
    servers: int, long_share: float
) -> None:
    """What is in service is, in the mean, no more work than that of the longest class alone."""
    times, limit, share, count = np.array([1.0, 8.0]), 24.0, 0.95, 60_000
    alone = [
        utilisation_within(np.array([float(servers)]), Variability(), SojournLimit(limit / each, share))[0]
        for each in times
    ]
    random = np.random.default_rng(5)
    of_long = random.random(count) < long_share
    service = times[of_long.astype(int)]
    between = service.mean() / (min(alone) * servers)
    gaps = random.exponential(1.0, count)
    arrivals = np.cumsum(gaps * between / gaps.mean())
    sojourn = _ends(arrivals, service, servers) - arrivals
    assert np.quantile(sojourn, share) <= limit
    assert np.quantile(sojourn[of_long], share) <= limit
