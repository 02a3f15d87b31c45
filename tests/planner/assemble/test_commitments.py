"""Obligations after the horizon, book values and break-evens, against hand calculations."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console
from tests.planner.builders import (
    HOURS_PER_QUARTER,
    buy_offer,
    candidate,
    fleet,
    hardware,
    owned_pool,
    rent_offer,
    rented_pool,
    service,
)
from tests.planner.solving import solve
from tests.planner.whole_fleet import whole_plan

from fleetplan.fleet.inventory import Finance, Fleet, Loan, Owned
from fleetplan.planner.assemble.commitments import commitments
from fleetplan.planner.formulation import Solution
from fleetplan.planner.plan import Plan, SupplyOption
from fleetplan.planner.report.beyond_horizon import beyond_the_horizon, break_even
from fleetplan.planner.report.console import print_plan
from fleetplan.planner.report.html.page import report_page
from fleetplan.planner.verify import verify

QUARTERS = ("2027Q1", "2027Q2")


def question(**changes: object) -> Fleet:
    """One host each: leased until 2027Q4, rented for a year, bought in the first quarter, and owned."""
    lease = rented_pool("lease", 1, 1.0, hardware="L", periods=QUARTERS)
    assert lease.rented is not None
    owned = Owned(160_000.0, "2026Q1", 16, 0.0, resale_usd_per_host=(1_000.0, 1_000.0))
    term = rent_offer("term", 2.0, hardware="T", unit="host", per_unit=8, periods=QUARTERS)
    hourly = rent_offer("hourly", 3.0, hardware="B", unit="host", per_unit=8, periods=QUARTERS)
    names = ("on-lease", "on-term", "on-bought", "on-owned")
    built = fleet(
        services=[service(name, 1.0, periods=QUARTERS) for name in names],
        hardware=[hardware(part, 8) for part in "LTBO"],
        pools=[
            replace(lease, rented=replace(lease.rented, lease_end="2027Q4")),
            replace(owned_pool("old", 1, 160_000.0, hardware="O"), owned=owned),
        ],
        offers=[
            replace(term, term_periods=4),
            buy_offer("buy", 320_000.0, hardware="B", periods=QUARTERS),
            hourly,
        ],
        periods=QUARTERS,
    )
    return replace(built, **changes)  # type: ignore[arg-type]


RUNS = tuple(
    candidate(name, part, 1.0, accelerators=8)
    for name, part in (("on-lease", "L"), ("on-term", "T"), ("on-bought", "B"), ("on-owned", "O"))
)


def plan_of(**changes: object) -> Plan:
    solved = solve(question(**changes), RUNS)
    assert solved.plan is not None
    assert verify(solved.problem, solved.plan) == []
    return solved.plan


def test_leases_terms_and_loans_are_owed_by_quarter() -> None:
    found = plan_of(finance=Finance(loan=Loan(4, 0.0, 0.25)))
    owed = {(row.quarter, row.kind): row.usd for row in found.commitments}
    host_hours = 8 * HOURS_PER_QUARTER
    assert owed == {
        ("2027Q3", "lease"): pytest.approx(1.0 * host_hours),
        ("2027Q3", "term"): pytest.approx(2.0 * host_hours),
        ("2027Q4", "term"): pytest.approx(2.0 * host_hours),
        # Three quarters of the price in four payments, of which two are beyond the horizon.
        ("2027Q3", "loan"): pytest.approx(0.75 * 320_000 / 4),
        ("2027Q4", "loan"): pytest.approx(0.75 * 320_000 / 4),
    }


def test_a_loan_is_paid_from_the_first_quarter_in_service() -> None:
    late = replace(buy_offer("buy", 320_000.0, hardware="B", periods=QUARTERS), lead_time_periods=3)
    built = question(finance=Finance(loan=Loan(2, 0.0)))
    others = [offer for offer in built.offers if offer.name != "buy"]
    problem = solve(replace(built, offers=(*others, late)), RUNS).problem
    place, number = next(
        (p, a)
        for p, pool in enumerate(problem.pools)
        for a, acquisition in enumerate(pool.acquisitions)
        if acquisition.offer.name == "buy"
    )
    owed = commitments(problem, Solution(acquired={(place, number, 0): 1}))
    paid = {row.quarter: row.usd for row in owed if row.kind == "loan"}
    assert paid == {"2027Q4": pytest.approx(160_000), "2028Q1": pytest.approx(160_000)}


def test_the_books_hold_what_was_not_written_off() -> None:
    values = {row.item: row for row in plan_of().remaining_values}
    old, bought = values["standing hosts"], values["buy 2027Q1"]
    assert (old.age_quarters, old.book_usd) == (6, pytest.approx(160_000 * 10 / 16))
    assert (bought.age_quarters, bought.book_usd) == (2, pytest.approx(320_000 * 14 / 16))


def test_hosts_of_unknown_age_have_no_book_value() -> None:
    pools = (owned_pool("old", 1, 160_000.0, hardware="O"), *question().pools[:1])
    found = plan_of(pools=pools)
    (old,) = [row for row in found.remaining_values if row.item == "standing hosts"]
    assert (old.age_quarters, old.book_usd) == (None, None)
    assert "without 1 host of unknown age" in beyond_the_horizon(found)
    alone = found.model_copy(update={"remaining_values": (old,)})
    assert (
        "the book value of 1 host of unknown age (in_service is not stated) is unknown"
        in beyond_the_horizon(alone)
    )


def test_an_age_is_unknown_in_periods_without_dates_too() -> None:
    """With `in_service` and periods without dates, the message names the periods, not the key."""
    pools = (owned_pool("old", 1, 160_000.0, hardware="O"), *question().pools[:1])
    found = plan_of(pools=pools).model_copy(update={"periods": ("now",)})
    assert "1 host of unknown age (the periods have no dates)" in beyond_the_horizon(found)


def options(found: Plan) -> dict[str, SupplyOption]:
    return {f"{row.option} {row.offer}".strip(): row for row in found.supply_options if row.hardware in "BO"}


def test_buying_breaks_even_after_the_quarters_that_rent_takes_to_cost_the_price() -> None:
    rows = options(plan_of())
    # 320,000 USD over 3 x 8 x 2,190 = 52,560 USD a quarter.
    assert (rows["buy buy"].against, rows["buy buy"].break_even_quarters) == ("hourly", 7)
    # 20,000 USD of write-off a quarter.
    assert rows["buy buy"].usd_per_accelerator_hour == pytest.approx(20_000 / (8 * HOURS_PER_QUARTER))
    assert rows["rent hourly"].usd_per_accelerator_hour == pytest.approx(3.0)
    assert (rows["buy buy"].units, rows["rent hourly"].units) == (1, 0)


def test_a_loan_delays_the_break_even_by_its_interest() -> None:
    # At 21.550625 % a year a quarter costs 5 %; 320,000 USD in four payments of 90,243.79 USD.
    found = plan_of(finance=Finance(loan=Loan(4, 1.05**4 - 1)))
    assert options(found)["buy buy"].break_even_quarters == 7
    (payment, _) = [row.usd for row in found.commitments if row.kind == "loan"]
    assert payment == pytest.approx(320_000 * 0.05 / (1 - 1.05**-4))
    # Interest on 320,000 USD, then on what the first payment leaves.
    interest = 16_000 + (320_000 + 16_000 - payment) * 0.05
    assert found.cost_breakdown["interest"] == pytest.approx(interest)


def test_retiring_saves_from_a_resale_price_on() -> None:
    rows = options(plan_of())
    # Worth 120,000 USD in the books at the start: the loss on them is what a sale must bring, less the
    # write-off of two quarters that ends, 20,000 USD.
    assert rows["retire"].break_even_resale_usd == pytest.approx(120_000 - 20_000)
    assert rows["keep"].usd_per_accelerator_hour == pytest.approx(10_000 / (8 * HOURS_PER_QUARTER))
    assert "pays from a sale of $100 k a host" in break_even(rows["retire"])


def test_a_host_that_leaves_in_any_case_saves_only_until_then() -> None:
    """Retiring a host early saves its cost until its end of life, not until the horizon's end."""
    asked = question()
    old = asked.pools[1]
    assert old.owned is not None
    owned = replace(old.owned, resale_usd_per_host=(115_000.0, 115_000.0), end_of_life="2027Q2")
    rows = options(plan_of(pools=(asked.pools[0], replace(old, owned=owned)), services=asked.services[:3]))
    # Of 160,000 USD the books hold 120,000 at the start and 110,000 a quarter later: to stay until then costs
    # 10,000 USD and gains 5,000 USD, to leave at once costs 5,000 USD.
    assert rows["retire"].break_even_resale_usd == pytest.approx(115_000)
    assert rows["retire"].usd_per_accelerator_hour == pytest.approx(0.0, abs=1e-9)


def test_property_tax_follows_the_book_value() -> None:
    found = plan_of(finance=Finance(property_tax_ratio_per_year=0.04))
    # A hundredth a quarter of the bought and of the old host.
    books = 320_000 + 300_000 + 120_000 + 110_000
    assert found.cost_breakdown["property_tax"] == pytest.approx(0.01 * books)


def test_a_lease_that_ends_within_the_horizon_is_replaced() -> None:
    asked = question()
    lease = asked.pools[0]
    assert lease.rented is not None
    ended = replace(lease, rented=replace(lease.rented, lease_end="2027Q2"))
    dear = rent_offer("dear", 5.0, hardware="L", unit="host", per_unit=8, periods=QUARTERS)
    found = plan_of(pools=(ended, *asked.pools[1:]), offers=(*asked.offers, dear))
    assert [(row.pool, row.period, row.hosts, row.resale_usd) for row in found.retirements] == [
        ("lease", "2027Q2", 1, 0.0)
    ]
    assert [(row.period, row.units) for row in found.purchases if row.offer == "dear"] == [("2027Q2", 1)]
    assert not [row for row in found.commitments if row.kind == "lease"]


@pytest.mark.usefixtures("plain_figures")
def test_what_is_owed_is_on_the_first_screen_and_in_the_report() -> None:
    found = plan_of(finance=Finance(loan=Loan(4, 0.0, 0.25)))
    text = beyond_the_horizon(found)
    assert text == (
        "$207.6 k owed for leases, rent terms, loans (2027Q3 $112.6 k, 2027Q4 $95.04 k); "
        "owned hosts are worth $380 k in the books"
    )
    stream = io.StringIO()
    print_plan(found, Console(file=stream, width=200))
    assert f"After 2027Q2: {text}" in stream.getvalue()
    assert "7 quarters of use against hourly" in stream.getvalue()
    page = report_page(found)
    assert 'id="commitments"' in page
    assert "7 quarters of use against hourly" in page


def test_the_whole_plan_owes_a_lease_and_a_loan() -> None:
    found = whole_plan().plan
    assert found is not None
    assert {row.kind for row in found.commitments} == {"lease", "loan"}
