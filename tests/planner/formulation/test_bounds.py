"""Bounds of variables must never cut off a plan."""

from __future__ import annotations

import pytest
from tests.planner.builders import (
    HOURS_PER_QUARTER,
    buy_offer,
    candidate,
    fleet,
    hardware,
    rent_offer,
    rented_pool,
    service,
)
from tests.planner.solving import solve

from fleetplan.fleet import tco
from fleetplan.fleet.inventory.periods import QUARTERS
from fleetplan.planner.problem import build_problem
from fleetplan.planner.search.result import SolveStatus


def test_enough_hosts_may_be_bought_where_replicas_do_not_fill_them() -> None:
    # Ten replicas of 5 accelerators need ten hosts of 8, though 50 accelerators would fit in seven.
    question = fleet(
        services=[service("chat", 10.0)],
        hardware=[hardware("H")],
        offers=[buy_offer("buy", 160_000, hardware="H")],
    )
    solved = solve(question, [candidate("chat", "H", 1.0, accelerators=5)])
    assert solved.usd == pytest.approx(10 * 160_000 / 16)


def test_enough_hosts_may_be_bought_for_classes_that_need_configurations_of_their_own() -> None:
    question = fleet(
        services=[service("chat", 20.0, classes={"short": 0.5, "long": 0.5})],
        hardware=[hardware("H", per_host=1)],
        offers=[buy_offer("buy", 16_000, hardware="H", per_unit=1)],
    )
    configurations = [
        candidate("chat", "H", (1.0, 0.0), config="short"),
        candidate("chat", "H", (0.0, 1.0), config="long"),
    ]
    assert solve(question, configurations).usd == pytest.approx(20 * 1000)


def test_traffic_in_both_runtimes_keeps_to_its_replicas_under_headroom() -> None:
    # 15 requests/s with headroom: 12 on the aggregated host, 3 through both phases.
    question = fleet(
        services=[service("chat", 10.0, headroom=0.5)],
        hardware=[hardware("A", 1), hardware("P", 1), hardware("D", 1)],
        pools=[
            rented_pool("A", 1, 1.0, per_host=1),
            rented_pool("P", 1, 1.0, per_host=1),
            rented_pool("D", 1, 1.0, per_host=1),
        ],
    )
    configurations = [
        candidate("chat", "A", 12.0),
        candidate("chat", "P", 3.0, phase="prefill"),
        candidate("chat", "D", 3.0, phase="decode"),
    ]
    solved = solve(question, configurations)
    assert solved.rows(phase="aggregated")[0].requests_per_s == pytest.approx(8.0)
    assert solved.rows(phase="prefill")[0].requests_per_s == pytest.approx(2.0)
    assert solved.rows(phase="decode")[0].requests_per_s == pytest.approx(2.0)


def test_hosts_do_not_join_a_pool_of_single_accelerators() -> None:
    question = fleet(
        services=[service("chat", 12.0)],
        hardware=[hardware("H")],
        pools=[rented_pool("cards", 4, 1.0, hardware="H", per_host=1)],
        offers=[buy_offer("buy", 160_000, hardware="H"), rent_offer("rent", 9.0, hardware="H")],
    )
    problem = build_problem(question, [])
    joined = {pool.name: [a.offer.name for a in pool.acquisitions] for pool in problem.pools}
    assert joined == {"cards": ["rent"], "here/buy": ["buy"]}
    solved = solve(question, [candidate("chat", "H", 1.0)])
    assert solved.usd == pytest.approx(tco.rent_usd(1.0, 4, QUARTERS) + 160_000 / 16)


def test_a_service_far_smaller_than_one_replica_stays_within_64_bits() -> None:
    question = fleet(
        services=[service("dev", 0.0003, classes={"short": 0.7, "long": 0.3})],
        hardware=[hardware("H")],
        offers=[rent_offer("rent", 2.0, hardware="H")],
    )
    configurations = [
        candidate("dev", "H", (900.0 + i, 300.0 + i), accelerators=1, config=f"c{i}") for i in range(60)
    ]
    solved = solve(question, configurations)
    assert solved.result.status is SolveStatus.OPTIMAL
    assert solved.usd == pytest.approx(2.0 * HOURS_PER_QUARTER)


def test_rates_that_are_decimal_multiples_of_the_demand_are_exact() -> None:
    question = fleet(
        services=[service("chat", 14.6)],
        hardware=[hardware("H", 1)],
        offers=[rent_offer("rent", 1.0, hardware="H", maximum=2)],
    )
    assert solve(question, [candidate("chat", "H", 7.3)]).usd == pytest.approx(2 * HOURS_PER_QUARTER)
