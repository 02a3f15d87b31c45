"""An extended horizon changes the plan, which states the parts separately."""

from __future__ import annotations

import io
import json
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

from fleetplan.fleet.inventory import Fleet
from fleetplan.planner.export.launch.terraform import purchase_changes
from fleetplan.planner.export.workbook import workbook
from fleetplan.planner.plan import Plan
from fleetplan.planner.problem import Problem
from fleetplan.planner.report.console import print_plan
from fleetplan.planner.report.html.page import report_page
from fleetplan.planner.verify import verify

QUARTERS = ("2027Q1", "2027Q2", "2027Q3", "2027Q4", "2028Q1")
HOST_HOURS = 8 * HOURS_PER_QUARTER
RUNS = (candidate("chat", "T", 1.0, accelerators=8),)


def question(stated: int, periods: tuple[str, ...] = QUARTERS) -> Fleet:
    """One host: by the quarter at 3 USD and then 1.5 USD an hour, or for a year at 2 USD."""
    hourly = rent_offer("hourly", 1.5, hardware="T", unit="host", per_unit=8, periods=periods)
    year = rent_offer("year", 2.0, hardware="T", unit="host", per_unit=8, periods=periods)
    rents = (3.0, *(1.5 for _ in periods[1:]))
    built = fleet(
        services=[service("chat", 1.0, periods=periods)],
        hardware=[hardware("T", 8)],
        pools=[],
        offers=[replace(hourly, rent_usd_per_accelerator_hour=rents), replace(year, term_periods=4)],
        periods=periods,
    )
    return replace(built, extended_by=len(periods) - stated)


def solved(asked: Fleet) -> tuple[Problem, Plan]:
    found = solve(asked, RUNS)
    assert found.plan is not None
    assert verify(found.problem, found.plan) == []
    return found.problem, found.plan


def extended() -> tuple[Problem, Plan]:
    return solved(question(2))


def test_the_periods_alone_take_the_term_and_its_whole_life_does_not() -> None:
    _, alone = solved(question(2, QUARTERS[:2]))
    assert {row.offer for row in alone.purchases} == {"year"}
    assert alone.objective_usd == pytest.approx(2 * 2.0 * HOST_HOURS)
    _, whole = extended()
    assert {row.offer for row in whole.purchases} == {"hourly"}
    assert whole.objective_usd == pytest.approx((3.0 + 4 * 1.5) * HOST_HOURS)


def test_the_extension_is_told_apart() -> None:
    _, plan = extended()
    assert (plan.stated_periods, plan.extension_periods) == (QUARTERS[:2], QUARTERS[2:])
    assert plan.extension_usd == pytest.approx(3 * 1.5 * HOST_HOURS)
    assert [(row.period, row.assumed) for row in plan.purchases] == [(q, q > "2027Q2") for q in QUARTERS]
    _, alone = solved(question(2, QUARTERS[:2]))
    assert (alone.extension_periods, alone.extension_usd) == ((), 0)


def test_what_is_owed_and_what_is_compared_belongs_to_stated_periods() -> None:
    asked = question(2)
    hourly, year = asked.offers
    cheap = replace(year, rent_usd_per_accelerator_hour=(1.0,) * 5)
    buy = buy_offer("buy", 4_000_000.0, hardware="T", periods=QUARTERS)
    _, plan = solved(replace(asked, offers=(hourly, cheap, buy)))
    terms = [row.period for row in plan.purchases if row.offer == "year"]
    assert terms[0] in QUARTERS[:2]
    owed = {row.quarter: row.usd for row in plan.commitments}
    assert set(owed) <= {"2027Q3", "2027Q4", "2028Q1"}
    assert "2027Q3" in owed
    assert all(usd == pytest.approx(1.0 * HOST_HOURS) for usd in owed.values())
    assert {row.period for row in plan.supply_options} <= set(QUARTERS[:2])
    # The last stated period has the falling price; all five quarters are compared.
    (rented,) = [row for row in plan.supply_options if row.offer == "hourly"]
    assert (rented.period, rented.usd_per_accelerator_hour) == ("2027Q2", pytest.approx(1.5))


def test_a_changed_extension_is_noticed() -> None:
    problem, plan = extended()
    wrong = plan.model_copy(update={"extension_periods": ()})
    assert "extension_periods" in str(verify(problem, wrong))
    rows = tuple(row.model_copy(update={"assumed": False}) for row in plan.purchases)
    assert "assumed" in str(verify(problem, plan.model_copy(update={"purchases": rows})))


@pytest.mark.usefixtures("plain_figures")
def test_the_screen_the_page_and_the_files_say_what_is_assumed() -> None:
    _, plan = extended()
    stream = io.StringIO()
    print_plan(plan, Console(file=stream, width=400))
    text = " ".join(stream.getvalue().split())
    page = " ".join(ReportPage(report_page(plan)).words.replace("\u00a0", " ").split())
    said = (
        "2027Q1 to 2027Q2 cost $78.84 k; 2027Q3 to 2028Q1 repeat 2027Q2 and cost $78.84 k of the TCO; "
        "3 orders assumed there ($78.84 k)"
    )
    assert f"Extension: {said}" in text
    assert f"Extension of the horizon: {said}" in page
    assert (
        "Decision: rent 1 host T in here 2027Q1, rent 1 host T in here 2027Q2: $78.84 k of $157.7 k" in text
    )
    assert page.count("(assumed)") == 3
    ordered = json.loads(purchase_changes(plan))["resource_changes"]
    assert [each["change"]["after"]["period"] for each in ordered] == ["2027Q1", "2027Q2"]


def test_the_workbook_has_the_cost_of_both_parts() -> None:
    openpyxl = pytest.importorskip("openpyxl", reason="openpyxl is not installed")
    _, plan = extended()
    book = openpyxl.load_workbook(io.BytesIO(workbook(plan)), data_only=True)
    summary = {row[0]: row[1] for row in book["Summary"].iter_rows(values_only=True)}
    assert summary["of it 2027Q1 to 2027Q2 as planned [USD]"] == pytest.approx(4.5 * HOST_HOURS)
    assert summary["of it the extension 2027Q3 to 2028Q1 as planned [USD]"] == pytest.approx(4.5 * HOST_HOURS)
    kinds = [row[1] for row in book["Purchases"].iter_rows(min_row=2, values_only=True)]
    assert kinds == ["rent", "rent", "rent (assumed)", "rent (assumed)", "rent (assumed)"]
