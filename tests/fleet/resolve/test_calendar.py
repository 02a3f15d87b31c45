"""Months and fiscal quarters as periods: names, dates, durations, and those that do not fit."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from fleetplan.fleet.errors import InputError
from fleetplan.fleet.inventory import Fleet
from fleetplan.fleet.inventory.periods import QUARTERS, Calendar, FiscalYear, is_like_a_date
from fleetplan.scenarios.load import load_fleet

FILE = """\
version: 1
horizon: {horizon}
pools:
- {{name: p, hardware: H100-SXM, hosts: 1, owned: {{capex_usd_per_host: 1, in_service: {since}}}}}
offers:
- {{name: buy, hardware: H100-SXM, capex_usd_per_host: 1, {buy}}}
- {{name: rent, hardware: H100-SXM, rent_usd_per_accelerator_hour: 1, {rent}}}
services:
- name: s
  model: llama3-8b
  workload: {{input_tokens: 300, output_tokens: 100}}
  demand: 100
  growth: 10 %/quarter
"""
MONTHS = "{periods: [2027-01, 2027-02, 2027-03, 2027-04]}"
FISCAL = "{periods: [FY27-Q4, FY28-Q1], fiscal_year: {first_month: 2}}"


def loaded(
    tmp_path: Path,
    horizon: str,
    since: str = "2026-08",
    buy: str = "lead_time_quarters: 0",
    rent: str = "per: host",
) -> Fleet:
    path = tmp_path / "fleet.yaml"
    path.write_text(FILE.format(horizon=horizon, since=since, buy=buy, rent=rent), encoding="utf-8")
    return load_fleet(path)


def refused(tmp_path: Path, horizon: str, since: str = "2026-08", buy: str = "", rent: str = "") -> str:
    given = {"buy": buy or "lead_time_quarters: 0", "rent": rent or "per: host"}
    with pytest.raises(InputError) as error:
        loaded(tmp_path, horizon, since, **given)
    return str(error.value)


def test_durations_are_counted_in_months_where_periods_are_months(tmp_path: Path) -> None:
    fleet = loaded(tmp_path, MONTHS, buy="lead_time_quarters: 1, life_quarters: 4", rent="term_months: 2")
    buy, rent = fleet.offers
    assert (fleet.calendar.kind, fleet.calendar.hours) == ("month", 730.0)
    assert (buy.lead_time_periods, buy.life_periods, rent.term_periods) == (3, 12, 2)
    assert loaded(tmp_path, MONTHS, buy="lead_time_months: 2").offers[0].lead_time_periods == 2


def test_demand_grows_by_the_month(tmp_path: Path) -> None:
    rates = loaded(tmp_path, MONTHS).services[0].demand.peak
    assert [rates["default", f"2027-0{n}", "all"] for n in (1, 2, 3, 4)] == pytest.approx(
        [100 * 1.1 ** (n / 3) for n in range(4)]
    )


def test_values_by_age_are_counted_in_months(tmp_path: Path) -> None:
    fleet = loaded(tmp_path, MONTHS, buy="residual_ratio: {4: 0.6, 16: 0.1}")
    assert (fleet.offers[0].value_by_age, fleet.offers[0].residual_ratio) == (((12, 0.6),), 0.1)


def test_a_lead_time_in_months_ends_with_a_period(tmp_path: Path) -> None:
    """Hardware that arrives within a quarter serves from the next one on."""
    fleet = loaded(tmp_path, "{periods: [2027Q1, 2027Q2]}", "2025Q3", "lead_time_months: 2", "term_months: 6")
    assert fleet.offers[0].lead_time_periods == 1
    assert fleet.offers[1].term_periods == 2


def test_fiscal_quarters_begin_with_their_fiscal_year(tmp_path: Path) -> None:
    fleet = loaded(tmp_path, FISCAL, "FY25-Q1")
    assert fleet.calendar.dates("FY27-Q4") == (date(2026, 11, 1), date(2027, 2, 1))
    assert fleet.calendar.index("FY27-Q4") == fleet.calendar.index("2026-11")
    assert fleet.calendar.after(fleet.periods, 4) == "FY29-Q1"
    assert fleet.calendar.period_of(date(2027, 4, 30)) == "FY28-Q1"


@pytest.mark.parametrize(
    ("fiscal", "name", "first"),
    [
        (FiscalYear(2), "FY27-Q1", date(2026, 2, 1)),
        (FiscalYear(4, "start"), "FY26-Q1", date(2026, 4, 1)),
        (FiscalYear(1), "FY27-Q2", date(2027, 4, 1)),
        (FiscalYear(10), "FY27-Q2", date(2027, 1, 1)),
    ],
)
def test_names_of_fiscal_quarters_and_back(fiscal: FiscalYear, name: str, first: date) -> None:
    calendar = Calendar(3, fiscal, names_fiscal=True)
    dates = calendar.dates(name)
    assert dates is not None
    assert dates[0] == first
    index = calendar.index(name)
    assert index is not None
    assert calendar.name(index) == name == calendar.period_of(first)


def test_names_of_months_and_quarters_and_back() -> None:
    months = Calendar(1)
    december = months.index("2026-12")
    assert december is not None
    assert months.name(december + 1) == "2027-01" == months.after(("2026-11", "2026-12"), 1)
    assert months.gap(["2026-11", "2026-12", "2027-02"]) == (2, "2027-01")
    assert QUARTERS.index("2027-02") is None, "it begins within a quarter"
    assert QUARTERS.after(("now",), 2) == "now+2"


@pytest.mark.parametrize(
    ("horizon", "since", "said"),
    [
        ("{periods: [2027-01, 2027-03]}", "2026-08", "2027-03 does not follow 2027-01"),
        ("{periods: [FY27-Q4,FY28-Q2],fiscal_year: {first_month: 2}}", "2026-08", "next quarter is FY28-Q1"),
        ("{periods: [2027Q1, 2027-04]}", "2026-08", "not 2027Q1 (a quarter) and 2027-04 (a month)"),
        ("{periods: [2027Q1, spring]}", "2025Q3", "2027Q1 (a quarter) and spring (a name without a date)"),
        ("{periods: [FY27-Q4]}", "2026-08", "the start of the fiscal year of FY27-Q4 is missing"),
        ("{periods: [2027Q1], period: month}", "2025Q3", "is month, and 2027Q1 is a quarter"),
        ("{periods: [2027Q1]}", "2026-08", "2026-08 begins within a quarter; 2026Q3 or 2026Q4"),
        ("{periods: [2027Q1]}", "FY26-Q1", "the start of the fiscal year of FY26-Q1 is missing"),
        (FISCAL, "2025Q3", "2025Q3 begins within a quarter; FY26-Q2 or FY26-Q3"),
        (FISCAL.replace("2}", "13}"), "2026-08", "must be at most 12, not 13"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_refused(tmp_path: Path, horizon: str, since: str, said: str) -> None:
    assert said in refused(tmp_path, horizon, since)


def test_durations_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    quarters = "{periods: [2027Q1, 2027Q2]}"
    assert "4 months are no whole quarters; 3 or 6 months" in refused(
        tmp_path, quarters, "2025Q3", rent="term_months: 4"
    )
    both = "lead_time_quarters: 1, lead_time_months: 2"
    assert "keep one of the two" in refused(tmp_path, quarters, "2025Q3", both)
    assert "cannot be combined with spot" in refused(
        tmp_path, MONTHS, rent="spot: true, max_share: 0.5, term_months: 2"
    )


def test_names_without_a_date_may_be_months(tmp_path: Path) -> None:
    fleet = loaded(tmp_path, "{periods: [first, second], period: month}", "2025Q3")
    assert fleet.calendar.hours == 730.0


@pytest.mark.parametrize(
    ("names", "meant"),
    [
        (
            "2027-Q1 2027q1 2027/Q1 2027Q5 2027-13 2027-1 2027-01-01 2027H1 2027 +2027Q1 FY27Q1 FY2027",
            True,
        ),
        ("2027Q1 2027-01 FY27-Q1 now one winter-2027 2027Q1-draft phase1 now+1", False),
    ],
)
def test_names_that_were_meant_as_dates_are_told_from_others(names: str, meant: bool) -> None:
    """Names without a date are quarters: a half-year would cost as much as three months."""
    assert {name: is_like_a_date(name) for name in names.split()} == dict.fromkeys(names.split(), meant)
