"""Plans by the month: a year costs what its quarters cost, and the verifier agrees on every part."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import pytest
from tests.planner.builders import (
    buy_offer,
    candidate,
    fleet,
    hardware,
    owned_pool,
    region,
    rent_offer,
    service,
)
from tests.planner.solving import solve

from fleetplan.fleet.inventory import Finance, Fleet, Loan, Owned
from fleetplan.fleet.inventory.periods import QUARTERS, Calendar
from fleetplan.planner.plan import Plan
from fleetplan.planner.verify import verify

MONTHS = Calendar(months=1)
RUNS = tuple(
    candidate(name, part, 1.0, accelerators=8, power_kw=10.0)
    for name, part in (("on-bought", "A"), ("on-rented", "B"), ("on-owned", "C"))
)


def year_of(calendar: Calendar, **finance: object) -> Fleet:
    """A year with a bought, a rented and an owned host, the same by quarter and by month."""
    periods = tuple(f"2027Q{n}" for n in range(1, 5))
    if calendar.kind == "month":
        periods = tuple(f"2027-{n:02}" for n in range(1, 13))
    count, per_quarter = len(periods), calendar.per_quarter
    here = region(
        pue=1.2,
        energy_usd_per_kwh=(0.05,) * count,
        hosting_usd_per_kw_month=100.0,
        grid_kg_co2_per_kwh=(0.4,) * count,
    )
    buy = buy_offer("buy", 320_000.0, hardware="A", maximum=1, periods=periods)
    rent = rent_offer("rent", 2.5, hardware="B", unit="host", per_unit=8, periods=periods)
    owned = Owned(160_000.0, "2025Q1", 16 * per_quarter, 0.04)
    return replace(
        fleet(
            services=[service(name, 0.5, periods=periods) for name in ("on-bought", "on-rented", "on-owned")],
            hardware=[hardware(name, 8, 1500.0) for name in "ABC"],
            pools=[replace(owned_pool("old", 1, 160_000.0, hardware="C"), owned=owned)],
            offers=[
                replace(
                    buy,
                    life_periods=16 * per_quarter,
                    residual_ratio=0.1,
                    value_by_age=((4 * per_quarter, 0.6),),
                    maintenance_ratio_per_year=0.04,
                ),
                replace(rent, term_periods=6 * per_quarter),
            ],
            regions=[here],
            periods=periods,
        ),
        finance=replace(
            Finance(
                network_usd_per_host_quarter=1_000.0,
                software_usd_per_host_quarter=500.0,
                staff_usd_per_host_quarter=2_000.0,
                calendar=calendar,
            ),
            **finance,  # type: ignore[arg-type]
        ),
    )


def planned(question: Fleet) -> Plan:
    solved = solve(question, RUNS)
    assert solved.plan is not None
    assert not list(verify(solved.problem, solved.plan))
    return solved.plan


def test_a_year_of_months_costs_what_its_quarters_cost() -> None:
    by_quarter, by_month = planned(year_of(QUARTERS)), planned(year_of(MONTHS))
    assert len(by_month.periods) == 12
    assert by_month.cost_breakdown == pytest.approx(by_quarter.cost_breakdown)
    assert by_month.carbon_kg == pytest.approx(by_quarter.carbon_kg)
    assert sum(row.usd for row in by_month.commitments) == pytest.approx(
        sum(row.usd for row in by_quarter.commitments)
    )
    assert [row.age_quarters for row in by_month.remaining_values] == [12, 4]
    assert [row.book_usd for row in by_month.remaining_values] == pytest.approx(
        [row.book_usd for row in by_quarter.remaining_values]
    )


def test_what_is_owed_is_told_by_the_month() -> None:
    plan = planned(year_of(MONTHS))
    assert [row.quarter for row in plan.commitments] == [f"2028-{n:02}" for n in range(1, 7)]
    assert plan.inputs is not None
    assert plan.inputs.periods[-1].day_after == date(2028, 1, 1)


def test_a_loan_with_interest_and_a_discount_rate_hold_by_the_month() -> None:
    """Paid by the month, less interest accrues than by the quarter, and sooner paid counts for more."""
    given = {"loan": Loan(12, 0.08, 0.2), "discount_rate_per_year": 0.1, "property_tax_ratio_per_year": 0.02}
    by_quarter = planned(year_of(QUARTERS, **given))
    by_month = planned(year_of(MONTHS, **{**given, "loan": Loan(36, 0.08, 0.2)}))
    assert by_month.cost_breakdown["interest"] < by_quarter.cost_breakdown["interest"]
    assert by_month.cost_breakdown["rent"] > by_quarter.cost_breakdown["rent"]
    assert by_month.objective_usd == pytest.approx(by_quarter.objective_usd, rel=0.02)


def test_an_annuity_holds_by_the_month() -> None:
    planned(year_of(MONTHS, method="annuity", discount_rate_per_year=0.1))
