"""Capacity of pools within a limit, and the lines below it."""

import numpy as np
import pytest

from fleetplan.perfmodel.queueing import CapacityLine, SojournLimit, capacity_lines
from fleetplan.perfmodel.queueing.capacity import utilisation_within, utilisation_without_wait
from fleetplan.perfmodel.queueing.pool import Variability, sojourn_percentile

SIZES = np.arange(1, 129)
POISSON = Variability(1.0, 0.0)

# Largest utilisation for a percentile of TTFT within k service times, from simulations of Poisson traffic
# with constant service, to two places.
SIMULATED = {
    (0.95, 2.0): [0.29, 0.53, 0.73, 0.85, 0.92, 0.95, 0.98],
    (0.99, 2.0): [0.14, 0.36, 0.60, 0.77, 0.88, 0.94, 0.97],
    (0.95, 3.0): [0.49, 0.71, 0.84, 0.91, 0.96, 0.98, 0.99],
    (0.99, 3.0): [0.32, 0.58, 0.77, 0.87, 0.93, 0.97, 0.99],
}


def loads(variability: Variability = POISSON, limit: SojournLimit | None = None) -> np.ndarray:
    limit = limit or SojournLimit(2.0, 0.95)
    return SIZES * utilisation_within(SIZES.astype(np.float64), variability, limit)


@pytest.mark.parametrize(("share", "service_times"), SIMULATED)
def test_the_margin_keeps_promises_below_simulations(share: float, service_times: float) -> None:
    servers = 2.0 ** np.arange(7)
    promised = utilisation_within(servers, POISSON, SojournLimit(service_times, share))
    simulated = np.array(SIMULATED[share, service_times])
    assert (promised <= simulated + 0.005).all()
    assert (simulated - promised).max() <= 0.05


def test_the_limit_is_reached_without_a_margin() -> None:
    traffic, limit = Variability(2.0, 0.4), SojournLimit(4.0, 0.95, 1.8)
    servers = np.array([3.0, 9.0, 40.0])
    found = utilisation_within(servers, traffic, limit, margin=0.0)
    assert sojourn_percentile(servers, found, traffic, 0.95, 1.8) == pytest.approx([4.0] * 3, rel=1e-4)


def test_a_limit_below_the_service_time_leaves_nothing() -> None:
    assert utilisation_within(np.array([1.0, 64.0]), POISSON, SojournLimit(0.9, 0.95)).tolist() == [0.0, 0.0]
    assert utilisation_within(np.array([4.0]), POISSON, SojournLimit(2.0, 0.95, 2.5))[0] == 0.0


def test_limits_on_means_are_wider() -> None:
    servers = np.array([1.0, 8.0])
    mean = utilisation_within(servers, POISSON, SojournLimit(2.0, None))
    assert (mean > utilisation_within(servers, POISSON, SojournLimit(2.0, 0.95))).all()
    # M/D/1 has a mean of two service times at rho / (2 (1 - rho)) = 1.
    assert mean[0] == pytest.approx(2 / 3 - 0.03, abs=1e-4)


@pytest.mark.parametrize("burstiness", [1.0, 4.0])
def test_lines_stay_below_and_touch(burstiness: float) -> None:
    values = loads(Variability(burstiness, 0.3))
    lines = capacity_lines(SIZES, values, [4, 16, 64])
    assert 1 <= len(lines) <= 3
    for line in lines:
        slack = values - (line.slope * SIZES - line.loss)
        assert slack.min() == pytest.approx(0.0, abs=1e-9)
        assert line.at(100) <= values[99]
        assert line.slope > 0
        assert line.loss > 0
    assert [line.slope for line in lines] == sorted(line.slope for line in lines)


def test_a_line_is_exact_at_its_knot_where_loads_bend_up() -> None:
    values = SIZES**2 / 100.0
    for knot in (2, 7, 40):
        (line,) = capacity_lines(SIZES, values, [knot])
        assert line.at(knot) == pytest.approx(values[knot - 1])


def test_bends_down_are_bridged() -> None:
    sizes, values = np.arange(1, 6), np.array([0.0, 1.0, 1.2, 3.0, 4.0])
    for knot in range(1, 6):
        for line in capacity_lines(sizes, values, [knot]):
            assert (line.slope * sizes - line.loss <= values + 1e-12).all()


def test_lines_run_through_neighbours_only() -> None:
    # A line through 4 and 9 would pass what 6 carries.
    sizes = np.array([1, 2, 4, 9, 10])
    (line,) = capacity_lines(sizes, sizes**2 / 10.0, [5])
    assert line.slope == pytest.approx((100 - 81) / 10.0) or line.slope == pytest.approx(0.3)
    assert all(line.at(n) <= n**2 / 10.0 + 1e-9 for n in range(1, 30))


def test_rows_of_limits_broadcast() -> None:
    servers = np.array([[2.0, 8.0, 32.0]])
    limit = SojournLimit(np.array([[2.0], [3.0]]), 0.95, np.array([[1.0], [1.5]]))
    together = utilisation_within(servers, Variability(1.0, np.array([[0.0], [0.3]])), limit)
    alone = utilisation_within(servers[0], Variability(1.0, 0.3), SojournLimit(3.0, 0.95, 1.5))
    assert together.shape == (2, 3)
    assert together[1] == pytest.approx(alone)


def test_few_requests_wait_for_one_of_many_places() -> None:
    servers = np.array([1.0, 64.0, 2048.0])
    found = utilisation_without_wait(servers, Variability(1.0, 1.0), 0.05, margin=0.0)
    # M/M/1: the share that waits is the utilisation.
    assert found[0] == pytest.approx(0.05)
    assert (np.diff(found) > 0).all()
    bursty = utilisation_without_wait(servers, Variability(4.0, 1.0), 0.05, margin=0.0)
    assert (bursty < found).all()


def test_a_line_carries_nothing_before_it_begins() -> None:
    assert CapacityLine(0.9, 2.0).at(1) == 0.0
    assert CapacityLine(0.9, 2.0).at(10) == pytest.approx(7.0)
    assert CapacityLine(0.9, 0.0, least=5).at(4) == 0.0


def test_pools_that_carry_nothing_have_no_line() -> None:
    assert capacity_lines(np.arange(1, 11), np.zeros(10), [5]) == ()
