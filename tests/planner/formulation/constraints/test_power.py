"""Family 5: what runs in a region stays within its power."""

from __future__ import annotations

from dataclasses import replace

from tests.planner.builders import candidate, fleet, hardware, region, rent_offer, rented_pool, service
from tests.planner.solving import is_infeasible, solve

from fleetplan.planner.verify import verify


def test_the_limit_is_on_facility_power() -> None:
    here = region(power_kw=(3.0,), pue=1.5)
    question = fleet(
        services=[service("chat", 2.0)],
        hardware=[hardware("A", 1)],
        offers=[rent_offer("A", 1.0)],
        regions=[here],
    )
    runs = [candidate("chat", "A", 1.0, power_kw=1.0)]
    assert solve(question, runs).plan is not None
    assert is_infeasible(replace(question, regions=(replace(here, power_kw=(2.99,)),)), runs)


def test_a_cap_counts_in_what_is_used_of_the_limit() -> None:
    """A power limit counts a capped part at its cap."""
    capped = replace(hardware("A", 1, 1000.0), uncapped_w_per_accelerator=1600.0)
    question = fleet(
        services=[service("chat", 3.0)],
        hardware=[capped],
        offers=[rent_offer("A", 1.0)],
        regions=[region(power_kw=(3.5,), pue=1.0)],
    )
    solved = solve(question, [replace(candidate("chat", "A", 1.0, power_kw=1.0), uncapped_kw=1.6)])
    assert solved.plan is not None
    assert verify(solved.problem, solved.plan) == []
    assert [(row.used, row.limit) for row in solved.plan.binding if row.family == "power"] == [(3.0, 3.5)]


def test_each_period_has_its_own_limit() -> None:
    periods = ("2026Q1", "2026Q2")
    question = fleet(
        services=[service("chat", 2.0, periods=periods)],
        hardware=[hardware("A", 1), hardware("cool", 1)],
        offers=[rent_offer("A", 1.0, periods=periods), rent_offer("cool", 2.0, periods=periods)],
        regions=[region(power_kw=(2.0, 1.0))],
        periods=periods,
    )
    runs = [candidate("chat", "A", 1.0, power_kw=1.0), candidate("chat", "cool", 1.0, power_kw=0.5)]
    solved = solve(question, runs)
    assert {(row.period, row.hardware) for row in solved.rows()} == {("2026Q1", "A"), ("2026Q2", "cool")}


def test_hosts_that_stand_idle_take_their_part_of_the_limit() -> None:
    # Two rented hosts of 4 accelerators draw 8 * 0.1 kW idle; a replica on one of them 0.9 kW more.
    here = region(power_kw=(2.6,), pue=1.0)
    question = fleet(
        services=[service("chat", 2.0)],
        hardware=[hardware("A", 4, 1000.0, 100.0)],
        pools=[rented_pool("pool", 2, 1.0, hardware="A", per_host=4)],
        regions=[here],
    )
    runs = [candidate("chat", "A", 1.0, power_kw=1.0)]
    assert solve(question, runs).plan is not None
    limited = (replace(here, power_kw=(2.599,)),)
    assert is_infeasible(replace(question, regions=limited), runs)
    off = replace(question, hardware={"A": hardware("A", 4, 1000.0)}, regions=limited)
    assert solve(off, runs).plan is not None


def test_the_least_that_can_be_bought_counts_as_it_stands() -> None:
    # One host of 8 for one replica: 1 kW and seven times 0.2 kW idle.
    here = region(power_kw=(2.4,))
    question = fleet(
        services=[service("chat", 1.0)],
        hardware=[hardware("A", 8, 1000.0, 200.0)],
        offers=[rent_offer("A", 1.0, unit="host", per_unit=8)],
        regions=[here],
    )
    runs = [candidate("chat", "A", 1.0, power_kw=1.0)]
    assert solve(question, runs).plan is not None
    assert is_infeasible(replace(question, regions=(replace(here, power_kw=(2.39,)),)), runs)
    kept = {"reserve_hosts_per_pool": 1}
    spare = fleet(
        services=question.services,
        hardware=list(question.hardware.values()),
        offers=question.offers,
        regions=[replace(here, power_kw=(4.0,))],
        policy=kept,
    )
    assert solve(spare, runs).plan is not None
    assert is_infeasible(replace(spare, regions=(replace(here, power_kw=(3.99,)),)), runs)


def test_idle_hosts_of_a_region_without_demand_count() -> None:
    there = region("there", power_kw=(0.3,))
    question = fleet(
        services=[service("chat", 1.0)],
        hardware=[hardware("A", 4, 1000.0, 100.0)],
        pools=[
            rented_pool("used", 1, 1.0, hardware="A", per_host=4),
            rented_pool("idle", 1, 1.0, hardware="A", per_host=4, region="there"),
        ],
        regions=[region(), there],
    )
    runs = [candidate("chat", "A", 1.0, power_kw=1.0)]
    assert is_infeasible(question, runs)
    enough = replace(question, regions=(region(), replace(there, power_kw=(0.4,))))
    assert solve(enough, runs).plan is not None
