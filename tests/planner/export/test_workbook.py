"""The workbook, recomputed by a formula engine, has the planner's costs."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tests.planner.assemble.test_bill import dearer_fleets, with_prices
from tests.planner.report.test_currency import plan as in_euros
from tests.planner.whole_fleet import EVIL, FORMULA, PERIODS, whole_fleet, whole_plan

from fleetplan.fleet.errors import InputError
from fleetplan.planner.export.workbook import workbook
from fleetplan.planner.plan import Plan

openpyxl = pytest.importorskip("openpyxl", reason="openpyxl is not installed")


def plan() -> Plan:
    found = whole_plan().plan
    assert found is not None
    return found


@cache
def written(planned: Callable[[], Plan]) -> bytes:
    """A plan's workbook, for all tests."""
    return workbook(planned())


def book(planned: Callable[[], Plan] = plan, **options: bool) -> Any:
    """The workbook as openpyxl reads it; tests change nothing in it."""
    return openpyxl.load_workbook(io.BytesIO(written(planned)), **options)


@cache
def compiled(planned: Callable[[], Plan]) -> Any:
    """The formulas of a plan's workbook, which take two seconds to read, for all tests."""
    formulas = pytest.importorskip("formulas", reason="formulas is not installed")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "plan.xlsx"
        path.write_bytes(written(planned))
        return formulas.ExcelModel().loads(str(path)).finish()


def recomputed(planned: Callable[[], Plan], changed: Mapping[str, float] | None = None) -> dict[str, float]:
    """Values of all cells by `Sheet!A1`, formulas computed anew after cells of the prices were changed."""
    inputs = {f"'[plan.xlsx]PRICES'!{cell}": value for cell, value in (changed or {}).items()}
    solution = compiled(planned).calculate(inputs=inputs)
    assert set(inputs) <= set(solution)
    values = {}
    for name, ranges in solution.items():
        # Names read '[plan.xlsx]SUMMARY'!B5; ranges of several cells are parts of formulas.
        if isinstance(name, str) and "]" in name and ":" not in name and hasattr(ranges, "value"):
            sheet, cell = name.split("]")[1].split("'!")
            values[f"{sheet.title()}!{cell}"] = ranges.value[0, 0]
    return values


def test_a_changed_price_changes_the_tco_as_the_planner_does() -> None:
    prices = {row[0].value: row[2] for row in book()["Prices"].iter_rows(min_row=2)}
    dearer = dearer_fleets(whole_fleet())
    for name in ("old purchase", "hired rent", "more rent 2027Q2", "energy here 2027Q3"):
        values = recomputed(plan, {prices[name].coordinate: prices[name].value * 1.1})
        at_that_price = with_prices(dearer[name])
        assert values["Summary!B5"] == pytest.approx(at_that_price.objective_usd, rel=1e-9), name
        assert values["Summary!B7"] == pytest.approx(at_that_price.objective_usd - plan().objective_usd)
        for q, period in enumerate(PERIODS):
            column = "BCD"[q]
            (stated,) = [c.usd for c in at_that_price.costs if (c.scope, c.name) == ("period", period)]
            assert values[f"Services!{column}7"] == pytest.approx(stated), period
            idle = sum(use.idle_usd for use in at_that_price.pools if use.period == period)
            assert values[f"Services!{column}4"] == pytest.approx(idle), period
            leaving = sum(use.retirement_usd for use in at_that_price.pools if use.period == period)
            assert values[f"Services!{column}5"] == pytest.approx(leaving), period
        for row, service in ((2, EVIL), (3, FORMULA)):
            (stated,) = [c.usd for c in at_that_price.costs if (c.scope, c.name) == ("service", service)]
            assert values[f"Services!E{row}"] == pytest.approx(stated, rel=1e-9), service


@pytest.mark.parametrize("planned", [plan, in_euros], ids=["USD", "EUR"])
def test_every_formula_has_the_value_that_the_planner_computed(planned: Callable[[], Plan]) -> None:
    stored = book(planned, data_only=True)
    formulas = book(planned)
    values = recomputed(planned)
    compared = 0
    for sheet in formulas.worksheets:
        for row in sheet.iter_rows():
            for cell in row:
                if cell.data_type == "f":
                    shown = stored[sheet.title][cell.coordinate].value
                    found = values[f"{sheet.title}!{cell.coordinate}"]
                    assert found == pytest.approx(shown, rel=1e-9, abs=1e-6), (sheet.title, cell.coordinate)
                    compared += 1
    assert compared > 100


def test_a_changed_rate_changes_the_tco() -> None:
    own = book(in_euros)
    (rate,) = [row[2] for row in own["Prices"].iter_rows() if row[0].value == "rate of EUR"]
    values = recomputed(in_euros, {rate.coordinate: 2.0})
    assert values["Summary!B5"] == pytest.approx(plan().objective_usd / 2)


def test_services_and_idle_capacity_are_the_whole_cost() -> None:
    rows = list(book(data_only=True)["Services"].values)
    named = {row[0]: row[1:] for row in rows[1:]}
    assert set(named) == {
        EVIL,
        FORMULA,
        "idle capacity",
        "hosts that leave: book value less sale",
        "not paid by a single service",
        "TCO",
    }
    for column in range(len(PERIODS) + 1):
        parts = [values[column] for name, values in named.items() if name != "TCO"]
        assert sum(parts) == pytest.approx(named["TCO"][column])
    assert named["TCO"][-1] == pytest.approx(plan().objective_usd)


def test_names_are_text_and_no_formula_holds_one() -> None:
    texts, formulas = [], []
    for sheet in book().worksheets:
        for row in sheet.iter_rows():
            for cell in row:
                (formulas if cell.data_type == "f" else texts).append(cell)
    assert FORMULA in [cell.value for cell in texts]
    assert all(cell.data_type == "s" for cell in texts if cell.value == FORMULA)
    assert not [cell for cell in formulas if "HYPERLINK" in cell.value or "http" in cell.value]
    assert not [cell for cell in texts if cell.hyperlink]


def test_a_plan_without_prices_is_refused() -> None:
    with pytest.raises(InputError, match="states no prices"):
        workbook(plan().model_copy(update={"inputs": None, "format_version": "1.0"}))
