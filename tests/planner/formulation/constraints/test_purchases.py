"""Family 7: offers bring what they may, when they can."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.planner.builders import (
    buy_offer,
    candidate,
    fleet,
    hardware,
    region,
    rent_offer,
    rented_pool,
    service,
)
from tests.planner.solving import is_infeasible, solve


def test_an_offer_has_one_maximum_over_all_regions() -> None:
    places = ("east", "west")
    offer = rent_offer("A", 1.0, regions=places, maximum=2)
    question = fleet(
        services=[service("chat", 1.0, regions=places)],
        hardware=[hardware("A", 1)],
        offers=[offer],
        regions=[region(place) for place in places],
    )
    runs = [candidate("chat", "A", 1.0)]
    assert solve(question, runs).usd == pytest.approx(2 * 2190.0)
    assert is_infeasible(replace(question, offers=(replace(offer, max_units=(1,)),)), runs)


def test_a_purchase_that_would_arrive_after_the_horizon_brings_nothing() -> None:
    question = fleet(
        services=[service("chat", 1.0)],
        hardware=[hardware("A", 1)],
        offers=[buy_offer("buy", 16_000, hardware="A", per_unit=1, lead=1)],
    )
    assert is_infeasible(question, [candidate("chat", "A", 1.0)])


def test_rent_is_given_back_and_purchases_stay() -> None:
    periods = ("2026Q1", "2026Q2", "2026Q3", "2026Q4")
    peak = dict(zip(periods, (1.0, 3.0, 1.0, 1.0), strict=True))
    question = fleet(
        services=[service("chat", {("here", q, "all"): rate for q, rate in peak.items()}, periods=periods)],
        hardware=[hardware("A", 1)],
        offers=[
            buy_offer("buy", 16_000, hardware="A", per_unit=1, periods=periods),
            rent_offer("rent", 1.0, hardware="A", periods=periods),
        ],
        periods=periods,
    )
    solved = solve(question, [candidate("chat", "A", 1.0)])
    # One bought for four quarters; for the peak of one quarter, 2190 $ of rent beat 3000 $ of purchase.
    assert solved.usd == pytest.approx(4 * 1000.0 + 2 * 2190.0)
    assert solved.plan is not None
    assert [(p.offer, p.period, p.units) for p in solved.plan.purchases] == [
        ("buy", "2026Q1", 1),
        ("rent", "2026Q2", 2),
    ]


def test_a_purchase_is_ordered_its_lead_time_ahead() -> None:
    periods = ("2026Q1", "2026Q2", "2026Q3", "2026Q4")
    demand = {("here", "2026Q4", "all"): 1.0}
    question = fleet(
        services=[service("chat", demand, periods=periods)],
        hardware=[hardware("A", 1)],
        offers=[buy_offer("buy", 16_000, hardware="A", per_unit=1, lead=2, periods=periods)],
        periods=periods,
    )
    solved = solve(question, [candidate("chat", "A", 1.0)])
    assert solved.plan is not None
    assert [(p.period, p.usd, p.capex_usd) for p in solved.plan.purchases] == [("2026Q2", 1000.0, 16_000.0)]


def test_a_written_off_host_still_serves() -> None:
    periods = ("2026Q1", "2026Q2", "2026Q3")
    question = fleet(
        services=[service("chat", 1.0, periods=periods)],
        hardware=[hardware("A", 1)],
        offers=[buy_offer("buy", 1_000, hardware="A", per_unit=1, life=2, periods=periods)],
        periods=periods,
    )
    assert solve(question, [candidate("chat", "A", 1.0)]).usd == pytest.approx(1_000.0)


@pytest.mark.parametrize("first", ["kept", "free"])
def test_the_order_of_pools_that_an_offer_may_join_is_of_no_account(first: str) -> None:
    """An offer joins the pool that needs fewer units, in either order of the file."""
    kept = replace(rented_pool("kept", 1, 1.0, hardware="A", per_host=1), reserve_hosts=2)
    free = rented_pool("free", 1, 1.0, hardware="A", per_host=1)
    asked = fleet(
        services=[service("chat", 3.0)],
        hardware=[hardware("A", 1)],
        pools=[kept, free] if first == "kept" else [free, kept],
        offers=[rent_offer("A", 2.0)],
    )
    solved = solve(asked, [candidate("chat", "A", 1.0)])
    assert solved.plan is not None
    assert [(row.pool, row.units) for row in solved.plan.purchases] == [("free", 2)]
