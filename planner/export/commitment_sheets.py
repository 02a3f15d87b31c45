"""Workbook sheets on obligations after the horizon, and on supply options."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from fleetplan.planner.export.bill import Bill
from fleetplan.planner.export.sheets import Cell, Formula, Sheet
from fleetplan.planner.plan import Plan

PRICED_BY: Final = {"lease": "rent", "term": "rent", "loan": "depreciation"}
"""Kind of bill line with the price of a commitment, by kind of commitment."""


def commitments_sheet(plan: Plan, bill: Bill) -> Sheet:
    """Return the sheet of amounts owed by quarter and book values of owned hosts, as formulas of prices."""
    head = ("quarter", "pool", "what", "kind", "price", "quantity", "USD, not discounted")
    rows: list[Sequence[Cell]] = []
    for row in plan.commitments:
        price = _price(bill, row.pool, row.item, PRICED_BY[row.kind])
        rows.append((row.quarter, row.pool, row.item, row.kind, *_product(bill, price, row.usd)))
    after = f"after {plan.stated_periods[-1]}"
    for value in plan.remaining_values:
        if value.book_usd is None:
            rows.append((after, value.pool, value.item, "book value, age unknown"))
            continue
        price = _price(bill, value.pool, value.item, "depreciation")
        rows.append((after, value.pool, value.item, "book value", *_product(bill, price, value.book_usd)))
    return Sheet("Commitments", head, rows, widths=(14, 24, 30, 24, 34, 16, 20))


def _price(bill: Bill, pool: str, item: str, kind: str) -> str:
    """Return the name of the price of the last matching line of the bill; empty without one."""
    named = [line.price for line in bill.lines if (line.pool, line.item, line.kind) == (pool, item, kind)]
    return named[-1] if named else ""


def _product(bill: Bill, price: str, usd: float) -> tuple[str, float, Formula | float]:
    """Return price, quantity and their product as a formula; without a price, a plain number."""
    if not price:
        return "", usd, usd
    quantity = usd / bill.price_values[price]
    return price, quantity, Formula(f"{quantity!r}*{bill.price_cells[price]}", usd)


def options_sheet(plan: Plan) -> Sheet:
    """Return the sheet of supply options with their cost at the planned prices."""
    head = (
        "pool", "region", "hardware", "option", "offer", "cheapest period", "units in the plan",
        "planned USD an accelerator-hour", "against", "break-even, quarters of use",
        "break-even, resale USD a host",
    )  # fmt: skip
    rows = [
        (
            row.pool, row.region, row.hardware, row.option, row.offer, row.period, row.units,
            row.usd_per_accelerator_hour, row.against, row.break_even_quarters, row.break_even_resale_usd,
        )
        for row in plan.supply_options
    ]  # fmt: skip
    return Sheet("Buy or rent", head, rows, widths=(24, 14, 18, 10, 22, 16, 16, 30, 22, 26, 28))
