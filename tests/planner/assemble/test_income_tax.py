"""Income tax against hand calculations: tax shield, changed decisions, and stated figures."""

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
    rent_offer,
    service,
)
from tests.planner.report.report_pages import ReportPage
from tests.planner.solving import solve

from fleetplan.fleet import tco
from fleetplan.fleet.inventory import Finance, IncomeTax
from fleetplan.fleet.inventory.periods import QUARTERS
from fleetplan.planner.export.workbook import workbook
from fleetplan.planner.plan import Plan
from fleetplan.planner.problem import Problem
from fleetplan.planner.report.console import print_plan
from fleetplan.planner.report.html.page import report_page
from fleetplan.planner.verify import verify

PERIODS = ("2027Q1", "2027Q2")
PRICE_USD = 320_000.0
DISCOUNT = 0.1
AT_ONCE = IncomeTax(0.4, (1.0,))
"""All of a purchase is deducted in its first quarter."""

RUNS = (candidate("chat", "B", 1.0, accelerators=8),)


def solved(tax: IncomeTax | None, rent: float = 5.0, discount: float = DISCOUNT) -> tuple[Problem, Plan]:
    """One host, bought and written off over 16 quarters, or rented."""
    hourly = rent_offer("hourly", rent, hardware="B", unit="host", per_unit=8, periods=PERIODS)
    built = fleet(
        services=[service("chat", 1.0, periods=PERIODS)],
        hardware=[hardware("B", 8)],
        pools=[],
        offers=[buy_offer("buy", PRICE_USD, hardware="B", periods=PERIODS), hourly],
        periods=PERIODS,
    )
    found = solve(replace(built, finance=Finance(discount_rate_per_year=discount, income_tax=tax)), RUNS)
    assert found.plan is not None
    assert verify(found.problem, found.plan) == []
    return found.problem, found.plan


def worth(quarters: int) -> float:
    return float((1 + DISCOUNT) ** (-quarters / 4))


def shield_ratio() -> float:
    """Return the pre-tax saving per dollar of write-off that is deducted in the first quarter."""
    of_plan = sum(worth(n) for n in range(1, 17)) / 16
    after_tax = of_plan - 0.4 * worth(1)
    return after_tax / 0.6 / of_plan - 1


def test_the_write_off_costs_less_by_the_worth_of_the_earlier_deduction() -> None:
    _, plan = solved(AT_ONCE)
    written_off = PRICE_USD / 16 * (worth(1) + worth(2))
    assert plan.cost_breakdown["depreciation"] == pytest.approx(written_off)
    assert shield_ratio() < -0.1
    assert plan.cost_breakdown["tax_deferral"] == pytest.approx(written_off * shield_ratio())
    assert plan.objective_usd == pytest.approx(written_off * (1 + shield_ratio()))


def test_the_cost_after_tax_is_what_the_deductions_leave() -> None:
    _, plan = solved(AT_ONCE)
    assert plan.income_tax is not None
    # Over its whole life the host costs its charges less the tax that is saved in the first quarter.
    whole = PRICE_USD * (sum(worth(n) for n in range(1, 17)) / 16 - 0.4 * worth(1))
    share = (worth(1) + worth(2)) / sum(worth(n) for n in range(1, 17))
    assert plan.income_tax.usd == pytest.approx(whole * share)
    assert sum(plan.income_tax.usd_by_period.values()) == pytest.approx(plan.income_tax.usd)
    assert set(plan.income_tax.usd_by_period) == set(PERIODS)


def test_a_faster_write_off_buys_what_would_be_rented() -> None:
    # A rent a little below the write-off, and above it after the shield.
    rent = 0.97 * PRICE_USD / 16 / (8 * HOURS_PER_QUARTER)
    assert {row.kind for row in solved(None, rent)[1].purchases} == {"rent"}
    assert {row.kind for row in solved(IncomeTax(0.4), rent)[1].purchases} == {"rent"}
    assert {row.kind for row in solved(AT_ONCE, rent)[1].purchases} == {"buy"}
    # When tax is paid does not count without interest.
    assert {row.kind for row in solved(AT_ONCE, rent, 0.0)[1].purchases} == {"rent"}


@pytest.mark.parametrize("tax", [IncomeTax(0.4), IncomeTax(0.4, (1 / 16,) * 16)])
def test_the_write_off_of_the_plan_scales_every_cost(tax: IncomeTax) -> None:
    _, plan = solved(tax)
    assert "tax_deferral" not in plan.cost_breakdown
    assert plan.objective_usd == pytest.approx(solved(None)[1].objective_usd)
    assert plan.income_tax is not None
    assert plan.income_tax.usd == pytest.approx(0.6 * plan.objective_usd)


def test_interest_of_an_annuity_is_not_deducted() -> None:
    offer = buy_offer("buy", PRICE_USD, hardware="B", periods=PERIODS)
    interest = tco.interest_per_period(DISCOUNT, QUARTERS)
    ratio = tco.tax_deferral_ratio(offer, IncomeTax(0.4), DISCOUNT, QUARTERS, interest)
    deducted = sum(worth(n) for n in range(1, 17)) / 16
    assert ratio == pytest.approx((1 - 0.4 * deducted) / 0.6 - 1)
    assert ratio > 0


def test_what_remains_is_never_deducted_and_no_write_off_is_below_nothing() -> None:
    offer = replace(buy_offer("buy", PRICE_USD, hardware="B", periods=PERIODS), residual_ratio=0.5)
    whole = replace(offer, residual_ratio=0.0)
    assert tco.tax_deferral_ratio(offer, AT_ONCE, DISCOUNT, QUARTERS) == pytest.approx(
        tco.tax_deferral_ratio(whole, AT_ONCE, DISCOUNT, QUARTERS)
    )
    assert tco.tax_deferral_ratio(offer, IncomeTax(0.9, (1.0,)), 1.0, QUARTERS) == -1
    assert tco.tax_deferral_ratio(replace(offer, residual_ratio=1.0), AT_ONCE, DISCOUNT, QUARTERS) == 0


def test_a_changed_tax_is_noticed() -> None:
    problem, plan = solved(AT_ONCE)
    assert plan.income_tax is not None
    for wrong in (
        None,
        plan.income_tax.model_copy(update={"usd": 0.9 * plan.income_tax.usd}),
        plan.income_tax.model_copy(update={"rate": 0.3}),
        plan.income_tax.model_copy(update={"usd_by_period": {"2027Q1": plan.income_tax.usd}}),
    ):
        assert "income tax" in str(verify(problem, plan.model_copy(update={"income_tax": wrong})))
    without = {kind: usd for kind, usd in plan.cost_breakdown.items() if kind != "tax_deferral"}
    assert "tax_deferral" in str(verify(problem, plan.model_copy(update={"cost_breakdown": without})))


def test_the_screen_and_the_page_say_it() -> None:
    _, plan = solved(AT_ONCE)
    stream = io.StringIO()
    print_plan(plan, Console(file=stream, width=400))
    page = " ".join(ReportPage(report_page(plan)).words.replace("\u00a0", " ").split())
    for text in (" ".join(stream.getvalue().split()), page):
        assert "Income tax: TCO $20" in text
        assert "after tax at 40%" in text
        assert "when purchases are deducted saves $" in text
    assert "Income tax" not in ReportPage(report_page(solved(None)[1])).words


def test_the_workbook_computes_it_from_the_prices() -> None:
    openpyxl = pytest.importorskip("openpyxl", reason="openpyxl is not installed")
    _, plan = solved(AT_ONCE)
    assert plan.income_tax is not None
    cells = openpyxl.load_workbook(io.BytesIO(workbook(plan)))["Summary"]
    rows = {row[0].value: (row[1].coordinate, row[1].value) for row in cells.iter_rows()}
    rate, _ = rows["income tax, share of income"]
    total = next(cell for name, (cell, _) in rows.items() if str(name).startswith("TCO [USD], of the prices"))
    assert rows["TCO after income tax [USD]"][1] == f"=(1-{rate})*{total}"
    values = openpyxl.load_workbook(io.BytesIO(workbook(plan)), data_only=True)["Summary"]
    shown = {row[0].value: row[1].value for row in values.iter_rows()}
    assert shown["TCO after income tax [USD]"] == pytest.approx(plan.income_tax.usd)
    assert shown["after income tax 2027Q1, as planned [USD]"] == pytest.approx(
        plan.income_tax.usd_by_period["2027Q1"]
    )
