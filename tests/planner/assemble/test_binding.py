"""Binding budgets: those without room for the cheapest available lot."""

from __future__ import annotations

from tests.planner.builders import (
    HOURS_PER_QUARTER,
    buy_offer,
    candidate,
    fleet,
    hardware,
    owned_pool,
    rent_offer,
    service,
)
from tests.planner.solving import solve

from fleetplan.fleet.inventory import Offer
from fleetplan.planner.verify import verify

QUARTERS = ("2027Q1", "2027Q2")

WRITE_OFF_USD = 320_000 / 16 * len(QUARTERS)
"""Of a host of 320,000 USD within the horizon."""

SPENT_USD = 160_000 / 16 * len(QUARTERS)
"""Write-off of the host that stands."""


def binding_budgets(offers: list[Offer], **budget: object) -> set[str]:
    """Budgets that are named; one owned host serves everything, and nothing is bought."""
    built = fleet(
        services=[service("chat", 1.0, periods=QUARTERS)],
        hardware=[hardware("A", 8), hardware("B", 8)],
        pools=[owned_pool("old", 1, 160_000.0, hardware="A")],
        offers=offers,
        periods=QUARTERS,
        budget=budget,
    )
    solved = solve(built, [candidate("chat", "A", 1.0, accelerators=8)])
    assert solved.plan is not None
    assert verify(solved.problem, solved.plan) == []
    return {row.name for row in solved.plan.binding if row.family == "budgets"}


def buy(**changes: object) -> Offer:
    return buy_offer("buy", 320_000.0, hardware="B", periods=QUARTERS, **changes)  # type: ignore[arg-type]


def test_a_purchase_counts_against_the_tco_with_its_write_off() -> None:
    """Not with its price, most of which is charged after the horizon: a quarter of the budget is free."""
    assert binding_budgets([buy()], tco_usd=SPENT_USD + WRITE_OFF_USD) == set()
    # Ordered in the last period, a host is written off for one of them.
    assert binding_budgets([buy()], tco_usd=SPENT_USD + WRITE_OFF_USD / 2 - 1) == {"tco"}


def test_rent_uses_up_no_budget_of_purchases() -> None:
    rent = rent_offer("rent", 1.0, hardware="B", unit="host", per_unit=8, periods=QUARTERS)
    assert binding_budgets([rent], capex_usd=0.0) == set()
    assert binding_budgets([rent, buy()], capex_usd=319_999.0) == {"capex"}
    assert binding_budgets([rent, buy()], capex_usd=320_000.0) == set()


def test_what_can_be_had_no_more_uses_up_no_budget() -> None:
    assert binding_budgets([buy(maximum=0)], capex_usd=1.0, tco_usd=SPENT_USD + 1) == set()


def test_a_lot_counts_as_a_whole() -> None:
    usd = 8 * HOURS_PER_QUARTER
    rent = rent_offer("rent", 1.0, hardware="B", unit="host", per_unit=8, periods=QUARTERS)
    lots = Offer(**{**{name: getattr(rent, name) for name in rent.__slots__}, "lot_units": 3})
    assert binding_budgets([rent], opex_usd=2.0 * usd) == set()
    assert binding_budgets([lots], opex_usd=2.0 * usd) == {"opex"}


def test_an_operating_budget_is_used_up_by_what_could_not_be_rented() -> None:
    """An operating budget binds where the remainder cannot pay for one more rented card."""
    usd = 8 * HOURS_PER_QUARTER
    rent = rent_offer("rent", 1.0, hardware="B", unit="host", per_unit=8, periods=QUARTERS)
    assert binding_budgets([rent, buy()], opex_usd=usd - 1.0) == {"opex"}
    assert binding_budgets([rent, buy()], opex_usd=usd) == set()
    # Without rents, what hosts take to run counts: here nothing.
    assert binding_budgets([buy()], opex_usd=1.0) == set()
