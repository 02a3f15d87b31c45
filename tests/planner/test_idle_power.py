"""Power of installed hardware: idle power at all times, more with the load."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.planner.builders import (
    HOURS_PER_QUARTER,
    buy_offer,
    candidate,
    fleet,
    hardware,
    owned_pool,
    region,
    rent_offer,
    rented_pool,
    service,
)
from tests.planner.solving import Solved, solve

from fleetplan.fleet.inventory import Fleet, Slice
from fleetplan.planner.problem import Candidate
from fleetplan.planner.verify import verify

PERIODS = ("2027Q1", "2027Q2")
PUE, TARIFF, GRID = 1.25, 0.1, 0.4
RUNS = (candidate("chat", "A", 1.0, power_kw=1.0),)


def _day(idle_w: float) -> Fleet:
    """Eight accelerators, of which a day of 14 hours needs four at half load, and a night none."""
    demand = {("here", "now", "all"): 2.0}
    chat = service("chat", demand, headroom=1.0, ratios={("night", None): dict.fromkeys(demand, 0.0)})
    return replace(
        fleet(
            services=[chat],
            hardware=[hardware("A", 4, 1000.0, idle_w)],
            pools=[rented_pool("pool", 2, 0.0, hardware="A", per_host=4)],
            regions=[region(pue=PUE, energy_usd_per_kwh=(TARIFF,), grid_kg_co2_per_kwh=(GRID,))],
        ),
        slices=(Slice("day", 14.0), Slice("night", 10.0)),
    )


def test_cost_energy_and_carbon_by_hand() -> None:
    found = solve(_day(100.0), RUNS).plan
    assert found is not None
    hours = HOURS_PER_QUARTER
    idle_kwh = 8 * 0.1 * PUE * hours
    # Two replicas' worth of load for 14 of 24 hours, at 0.9 kW above idle.
    load_kwh = 2 * 0.9 * PUE * hours * 14 / 24
    assert found.cost_breakdown == pytest.approx(
        {"idle_energy": idle_kwh * TARIFF, "energy": load_kwh * TARIFF}, rel=1e-6
    )
    assert found.carbon_kg == pytest.approx((idle_kwh + load_kwh) * GRID)
    by_slice = {use.slice: use for use in found.pools}
    # By day four accelerators run nothing, by night all eight.
    assert by_slice["day"].idle_energy_kwh == pytest.approx(4 * 0.1 * PUE * hours * 14 / 24)
    assert by_slice["night"].idle_energy_kwh == pytest.approx(8 * 0.1 * PUE * hours * 10 / 24)
    # What a region must carry counts replicas at full load.
    assert by_slice["day"].power_kw == pytest.approx((8 * 0.1 + 4 * 0.9) * PUE)
    assert by_slice["night"].power_kw == pytest.approx(8 * 0.1 * PUE)
    idle_usd = sum(use.idle_energy_kwh for use in found.pools) * TARIFF
    assert sum(use.idle_usd for use in found.pools) == pytest.approx(idle_usd)


def test_without_idle_power_only_the_load_draws() -> None:
    found = solve(_day(0.0), RUNS).plan
    assert found is not None
    load_kwh = 2 * 1.0 * PUE * HOURS_PER_QUARTER * 14 / 24
    assert found.cost_breakdown == pytest.approx({"energy": load_kwh * TARIFF}, rel=1e-6)
    assert found.carbon_kg == pytest.approx(load_kwh * GRID)


def test_a_rent_that_includes_energy_pays_for_idle_power() -> None:
    asked = _day(100.0)
    pool = asked.pools[0]
    assert pool.rented is not None
    included = replace(pool, rented=replace(pool.rented, energy_included=True))
    found = solve(replace(asked, pools=(included,)), RUNS).plan
    assert found is not None
    assert found.objective_usd == 0
    assert found.carbon_kg == pytest.approx((8 * 0.1 + 2 * 0.9 * 14 / 24) * PUE * HOURS_PER_QUARTER * GRID)


def test_hosts_are_sold_that_cost_more_idle_than_they_bring() -> None:
    """Two owned hosts, one of them idle: its energy of two quarters is worth a sale for nothing."""

    def kept(idle_w: float) -> int:
        old = owned_pool("old", 2, 0.0, hardware="A", per_host=4)
        assert old.owned is not None
        sold = replace(old, owned=replace(old.owned, resale_usd_per_host=(0.0, 0.0)))
        asked = fleet(
            services=[service("chat", 2.0, periods=PERIODS)],
            hardware=[hardware("A", 4, 1000.0, idle_w)],
            pools=[sold],
            offers=[rent_offer("hired", 9.0, hardware="A", periods=PERIODS)],
            regions=[region(energy_usd_per_kwh=(TARIFF, TARIFF))],
            periods=PERIODS,
        )
        found = solve(asked, RUNS).plan
        assert found is not None
        return 2 - sum(row.hosts for row in found.retirements)

    assert kept(500.0) == 1


@pytest.mark.parametrize("objective", ["energy", "carbon"])
def test_energy_is_least_where_less_stands_idle(objective: str) -> None:
    """A host of eight draws less at full load than single cards, and more with what it leaves idle."""

    def solved(idle_w: float) -> Solved:
        asked = fleet(
            services=[service("chat", 2.0)],
            hardware=[hardware("host", 8, 700.0, idle_w), hardware("card", 1, 1000.0, 100.0)],
            offers=[
                buy_offer("host", 1000.0, per_unit=8),
                rent_offer("card", 3.0),
            ],
            regions=[region(pue=PUE, energy_usd_per_kwh=(TARIFF,), grid_kg_co2_per_kwh=(GRID,))],
        )
        runs = (candidate("chat", "host", 1.0, power_kw=0.7), candidate("chat", "card", 1.0, power_kw=1.0))
        return solve(replace(asked, objective=objective), runs)

    for idle_w, part, kw in (
        (0.0, "host", 2 * 0.7),
        (50.0, "host", 2 * 0.7 + 6 * 0.05),
        (150.0, "card", 2.0),
    ):
        plan = solved(idle_w).plan
        assert plan is not None
        assert plan.goal is not None
        assert {row.hardware for row in plan.placements} == {part}
        per_kwh = GRID if objective == "carbon" else 1.0
        assert plan.goal.value == pytest.approx(kw * PUE * HOURS_PER_QUARTER * per_kwh)
        assert plan.goal.bound == pytest.approx(plan.goal.value, rel=1e-4)


def test_a_replica_that_draws_less_than_idle_draws_idle() -> None:
    asked = replace(_day(600.0), slices=())
    low: Candidate = replace(RUNS[0], power_kw=0.5)
    plain = service("chat", 2.0)
    found = solve(replace(asked, services=(plain,)), (low,)).plan
    assert found is not None
    assert found.cost_breakdown == pytest.approx({"idle_energy": 8 * 0.6 * PUE * HOURS_PER_QUARTER * TARIFF})


@pytest.mark.parametrize("factor", [0.0, 0.9, 1.1])
def test_the_verifier_knows_what_stands_idle(factor: float) -> None:
    solved = solve(_day(100.0), RUNS)
    assert solved.plan is not None
    assert verify(solved.problem, solved.plan) == []
    first, *others = solved.plan.pools
    wrong = first.model_copy(update={"idle_energy_kwh": first.idle_energy_kwh * factor})
    told = verify(solved.problem, solved.plan.model_copy(update={"pools": (wrong, *others)}))
    assert any("idle_energy_kwh" in each.message for each in told)
    wrong = first.model_copy(update={"power_kw": first.power_kw * factor})
    told = verify(solved.problem, solved.plan.model_copy(update={"pools": (wrong, *others)}))
    assert any("power_kw" in each.message for each in told)
    cheaper = dict(solved.plan.cost_breakdown)
    cheaper["idle_energy"] *= factor
    told = verify(solved.problem, solved.plan.model_copy(update={"cost_breakdown": cheaper}))
    assert any("idle_energy" in each.message for each in told)
