"""Family 7: owned hosts leave once, when that pays, and all of them at their end of life."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.oracles.highs import highs_usd
from tests.planner.builders import buy_offer, candidate, fleet, hardware, owned_pool, region, service
from tests.planner.families import solved_example
from tests.planner.solving import is_infeasible, solve

from fleetplan.fleet.inventory import Fleet, Owned
from fleetplan.planner.problem import build_problem
from fleetplan.planner.verify import verify

PERIODS = ("2027Q1", "2027Q2", "2027Q3")


def test_the_example_has_its_optimum() -> None:
    solved = solved_example("retirement")
    assert solved.plan is not None
    assert [(row.period, row.pool, row.hosts) for row in solved.plan.retirements] == [
        ("2027Q2", "old", 1),
        ("2027Q3", "oldest", 1),
    ]


def one_pool(hosts: int, rates: tuple[float, ...], **owned: object) -> Fleet:
    """Hosts of 16,000 $ a year old, 1,000 $ of write-off and 1,000 $ of maintenance a quarter each."""
    figures = Owned(16_000.0, "2026Q1", 16, 0.25, **owned)  # type: ignore[arg-type]
    demand = {("here", quarter, "all"): rate for quarter, rate in zip(PERIODS, rates, strict=True)}
    return fleet(
        services=[service("chat", demand, periods=PERIODS)],
        hardware=[hardware("A", 1)],
        pools=[replace(owned_pool("old", hosts, 16_000.0, hardware="A", per_host=1), owned=figures)],
        periods=PERIODS,
    )


RUNS = (candidate("chat", "A", 1.0),)


@pytest.mark.parametrize(
    ("resale", "usd", "left"),
    [
        # Leaving in the second quarter saves 4,000 $ and the books still hold 11,000 $.
        (8_000.0, 12_000 - 4_000 + 11_000 - 8_000, 1),
        (6_900.0, 12_000, 0),
    ],
)
def test_a_host_leaves_where_the_sale_beats_its_keep(resale: float, usd: float, left: int) -> None:
    asked = one_pool(2, (2.0, 1.0, 1.0), resale_usd_per_host=(resale,) * 3)
    solved = solve(asked, RUNS)
    assert solved.plan is not None
    assert solved.usd == pytest.approx(usd)
    assert sum(row.hosts for row in solved.plan.retirements) == left
    assert highs_usd(build_problem(asked, RUNS)) == pytest.approx(usd)


def test_idle_capacity_and_the_sale_of_what_left_are_stated_apart() -> None:
    asked = one_pool(3, (3.0, 1.0, 1.0), resale_usd_per_host=(0.0, 9_000.0, 0.0))
    solved = solve(asked, RUNS)
    assert solved.plan is not None
    # Two leave in the second quarter: the books still hold 11,000 $ each, and a sale brings 9,000 $.
    assert [(use.idle_usd, use.retirement_usd) for use in solved.plan.pools] == [
        (pytest.approx(0.0, abs=1e-6), 0.0),
        (pytest.approx(0.0, abs=1e-6), pytest.approx(4_000.0)),
        (pytest.approx(0.0, abs=1e-6), 0.0),
    ]
    # What runs pays for the hosts that stand, and for no sale.
    assert [row.usd for row in solved.plan.placements] == [pytest.approx(usd) for usd in (6e3, 2e3, 2e3)]
    (pool,) = [row for row in solved.plan.costs if row.scope == "pool"]
    assert (pool.usd, pool.retirement_usd) == (pytest.approx(14_000.0), pytest.approx(4_000.0))


def test_the_best_quarter_to_sell_in_is_found() -> None:
    # In the second: -4,000 + 11,000 - 9,000; in the third: -2,000 + 10,000 - 12,000.
    asked = one_pool(2, (2.0, 1.0, 1.0), resale_usd_per_host=(0.0, 9_000.0, 12_000.0))
    solved = solve(asked, RUNS)
    assert solved.plan is not None
    assert solved.usd == pytest.approx(12_000 - 4_000)
    assert [row.period for row in solved.plan.retirements] == ["2027Q3"]


def test_a_purchase_follows_the_end_of_life() -> None:
    ended = one_pool(1, (1.0, 1.0, 1.0), end_of_life="2027Q3")
    assert is_infeasible(ended, RUNS)
    offer = buy_offer("buy", 16_000, hardware="A", per_unit=1, lead=1, periods=PERIODS)
    solved = solve(replace(ended, offers=(offer,)), RUNS)
    # 2 * 2,000, then 10,000 in the books and no sale, and one new host for a quarter.
    assert solved.usd == pytest.approx(4_000 + 10_000 + 1_000)
    assert highs_usd(build_problem(replace(ended, offers=(offer,)), RUNS)) == pytest.approx(15_000)


def test_an_empty_pool_needs_no_reserve() -> None:
    asked = one_pool(2, (1.0, 1.0, 0.0), resale_usd_per_host=(16_000.0,) * 3)
    asked = replace(asked, policy=replace(asked.policy, reserve_hosts_per_pool=1))
    solved = solve(asked, RUNS)
    # Both stay for two quarters; then 2 * (-2,000 + 10,000 - 16,000) for the third.
    assert solved.usd == pytest.approx(12_000 - 16_000)
    assert highs_usd(build_problem(asked, RUNS)) == pytest.approx(-4_000)


def test_hosts_leave_a_region_without_demand() -> None:
    asked = one_pool(1, (1.0, 1.0, 1.0))
    idle = replace(
        owned_pool("idle", 1, 16_000.0, hardware="A", per_host=1, region="there"),
        owned=Owned(16_000.0, "2026Q1", 16, 0.25, end_of_life="2027Q2"),
    )
    two = replace(asked, regions=(region(), region("there")), pools=(*asked.pools, idle))
    solved = solve(two, RUNS)
    assert solved.usd == pytest.approx(6_000 + 2_000 + 11_000)


def test_what_leaves_is_no_operating_cost() -> None:
    asked = one_pool(2, (2.0, 1.0, 1.0), resale_usd_per_host=(8_000.0,) * 3)
    # Maintenance of four host quarters.
    enough = replace(asked.budget, opex_usd=4_000.0)
    assert solve(replace(asked, budget=enough), RUNS).usd == pytest.approx(11_000)
    assert is_infeasible(replace(asked, budget=replace(asked.budget, opex_usd=3_900.0)), RUNS)


@pytest.mark.parametrize(
    "change",
    [{"hosts": 3}, {"hosts": 0}, {"period": "2027Q9"}, {"pool": "new"}, {"usd": 1.0}],
)
def test_a_tampered_retirement_is_rejected(change: dict[str, object]) -> None:
    solved = solve(one_pool(2, (2.0, 1.0, 1.0), resale_usd_per_host=(8_000.0,) * 3), RUNS)
    assert solved.plan is not None
    row = solved.plan.retirements[0].model_copy(update=change)
    tampered = solved.plan.model_copy(update={"retirements": (row,)})
    assert "retirement" in {violation.family for violation in verify(solved.problem, tampered)}
