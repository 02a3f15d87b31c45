"""Console, page, workbook and CSV files use one currency and state its rate once."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pandas as pd
import pytest
from rich.console import Console
from tests.planner.report.report_pages import FRONTIER, ReportPage
from tests.planner.report.report_pages import plan as in_usd
from tests.planner.whole_fleet import whole_plan

from fleetplan.fleet.figures import currency_code, money, shown_in
from fleetplan.fleet.inventory import Currency
from fleetplan.planner.export.files import plan_tables, write_plan
from fleetplan.planner.export.launch.terraform import purchase_changes
from fleetplan.planner.export.workbook import workbook
from fleetplan.planner.plan import Plan, currency_of, in_currency, is_amount
from fleetplan.planner.plan.inputs import CurrencyInput
from fleetplan.planner.report.console import print_plan
from fleetplan.planner.report.html.page import report_page
from fleetplan.planner.verify import verify

RATE = 1.25
EURO = CurrencyInput(code="EUR", usd_per_unit=RATE, as_of="2026-11-01", source="ECB <reference>")


def plan() -> Plan:
    """The plan whose report is in euros."""
    found = in_usd()
    assert found.inputs is not None
    return found.model_copy(update={"inputs": found.inputs.model_copy(update={"currency": EURO})})


def screen(shown: Plan) -> str:
    stream = io.StringIO()
    print_plan(shown, Console(file=stream, width=400), full=True)
    return stream.getvalue()


def test_amounts_are_converted_at_one_rate_within_a_block_alone() -> None:
    assert (money(1250.0), currency_code()) == ("$1.25 k", "USD")
    with shown_in(Currency("EUR", RATE)):
        assert (money(1250.0), money(-2.5e6), money(0.0)) == ("EUR 1 k", "-EUR 2 M", "EUR 0")
        assert currency_code() == "EUR"
        with shown_in(None):
            assert money(1250.0) == "$1.25 k"
    assert money(1250.0) == "$1.25 k"


def test_the_screen_says_the_rate_once_and_no_dollar() -> None:
    text = screen(plan())
    assert text.count("1 EUR = 1.25 USD (2026-11-01, ECB <reference>)") == 1
    assert "$" not in text.replace("$y$", "")
    with shown_in(currency_of(plan())):
        assert f"TCO {money(plan().objective_usd)}" in text
    assert f"{plan().objective_usd / RATE / 1e3:.4g} k" in text
    assert "EUR/accelerator-h" in text
    assert "Currency" not in screen(in_usd())


def test_the_page_says_the_rate_once_and_no_dollar() -> None:
    words = " ".join(ReportPage(report_page(plan(), FRONTIER)).words.replace("\u00a0", " ").split())
    assert words.count("1 EUR = 1.25 USD (2026-11-01, ECB <reference>)") == 1
    assert "$" not in words.replace("$y$", "")
    assert f"EUR {plan().objective_usd / RATE / 1e3:.4g} k total cost of ownership" in words
    # Prices stay as the fleet file has them.
    assert "USD a host" in words
    assert "EUR" not in ReportPage(report_page(in_usd(), FRONTIER)).words


def test_tables_name_the_currency_and_json_stays_in_usd(tmp_path: Path) -> None:
    write_plan(plan(), tmp_path)
    pools, costs = (pd.read_csv(tmp_path / f"{name}.csv") for name in ("pools", "costs"))
    assert pools["idle_eur"].sum() == pytest.approx(sum(use.idle_usd for use in plan().pools) / RATE)
    assert not [name for name in (*pools.columns, *costs.columns) if "usd" in name]
    assert "eur_by_kind.rent" in costs.columns
    rate = pd.read_csv(tmp_path / "prices.csv").iloc[-1]
    assert (rate["name"], rate["value"], rate["unit"]) == ("rate of EUR", RATE, "USD a EUR")
    assert (rate["as_of"], rate["source"]) == ("2026-11-01", "ECB <reference>")
    stated = json.loads((tmp_path / "plan.json").read_text(encoding="utf-8"))
    assert stated["objective_usd"] == plan().objective_usd
    assert stated["inputs"]["currency"]["code"] == "EUR"
    # Names of columns without a currency are a contract.
    assert "idle_usd" in plan_tables(plan())["pools"].columns


def test_purchases_for_policies_are_in_the_currency() -> None:
    stated = json.loads(purchase_changes(plan()))
    assert stated["currency"] == EURO.model_dump()
    created = [each["values"] for each in stated["planned_values"]["root_module"]["resources"]]
    assert [each["capex_eur"] for each in created] == [row.capex_usd / RATE for row in plan().purchases]
    assert [each["eur"] for each in created] == [row.usd / RATE for row in plan().purchases]
    gone = [each["change"]["before"] for each in stated["resource_changes"] if each["change"]["before"]]
    assert [each["resale_eur"] for each in gone] == [row.resale_usd / RATE for row in plan().retirements]
    assert not [name for each in (*created, *gone) for name in each if is_amount(name)]
    # Policies on plans in USD read the names that they always had.
    in_dollars = json.loads(purchase_changes(in_usd()))
    assert "currency" not in in_dollars
    values = in_dollars["planned_values"]["root_module"]["resources"][0]["values"]
    assert values["capex_usd"] == in_usd().purchases[0].capex_usd


def test_every_field_named_after_usd_is_converted() -> None:
    before, after = plan().model_dump(), in_currency(plan(), Currency("EUR", RATE)).model_dump()
    compared = _compare(before, after)
    assert compared > 100
    assert after["cost_breakdown"]["rent"] == pytest.approx(before["cost_breakdown"]["rent"] / RATE)
    assert after["inputs"]["prices"] == before["inputs"]["prices"]
    assert is_amount("usd_by_kind.rent")
    assert not is_amount("usdc")
    assert not is_amount("name.usd")


def _compare(before: object, after: object, amount: bool = False) -> int:
    """Compare two dumps; the number of amounts that were found."""
    if isinstance(before, dict):
        assert isinstance(after, dict)
        return sum(
            _compare(value, after[key], amount or is_amount(key))
            for key, value in before.items()
            if key not in ("cost_breakdown", "currency")
        )
    if isinstance(before, (list, tuple)):
        assert isinstance(after, (list, tuple))
        return sum(_compare(*pair, amount) for pair in zip(before, after, strict=True))
    if amount and before is not None:
        assert isinstance(before, float)
        assert after == pytest.approx(before / RATE)
        return 1
    assert after == before
    return 0


def test_the_workbook_has_the_rate_in_a_cell() -> None:
    openpyxl = pytest.importorskip("openpyxl", reason="openpyxl is not installed")
    book = openpyxl.load_workbook(io.BytesIO(workbook(plan())), data_only=True)
    *_, rate = book["Prices"].iter_rows(values_only=True)
    assert rate[:1] + rate[2:] == ("rate of EUR", RATE, "USD a EUR", "2026-11-01", "ECB <reference>")
    summary = {row[0]: row[1] for row in book["Summary"].iter_rows(values_only=True)}
    assert summary["TCO as planned [EUR]"] == pytest.approx(plan().objective_usd / RATE)
    assert summary["rate"].startswith("1 EUR = 1.25 USD (2026-11-01")
    heads = [str(cell.value) for sheet in book.worksheets for cell in sheet[1]]
    assert "idle EUR" in heads
    assert not [head for head in heads if "USD" in head]


def test_a_currency_that_the_fleet_does_not_state_is_noticed() -> None:
    found = [each for each in verify(whole_plan().problem, plan()) if "currency" in str(each)]
    assert len(found) == 1
