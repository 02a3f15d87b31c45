"""The plan as a workbook for finance: prices in cells, and every cost as a formula of them.

A line of the bill is a price times a quantity; pools, placements and services add up lines. A changed price
changes the TCO as in the planner, for the same decisions. `plan solve` finds the best decisions at the other
price.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from fleetplan.fleet.errors import InputError, Issue
from fleetplan.fleet.figures import USD, rate_text, span
from fleetplan.planner.export.bill import FIRST_ROW, NOTHING, Bill, SumCell, bill_of
from fleetplan.planner.export.commitment_sheets import commitments_sheet, options_sheet
from fleetplan.planner.export.input_sheets import demand_sheet, inputs_sheet, purchases_sheet, sources_sheet
from fleetplan.planner.export.sheets import Cell, Formula, Sheet, head, write_sheets
from fleetplan.planner.plan import RUNNING_KINDS, Plan, currency_of, in_currency, rate_row

WORKBOOK_FILE: Final = "plan.xlsx"


def workbook(plan: Plan) -> bytes:
    """Return the workbook of a plan.

    Raises
    ------
    InputError
        A plan of format 1.0 states no prices.
    """
    if plan.inputs is None:
        message = f"states no prices: its format is {plan.format_version}, they came with 1.1"
        raise InputError([Issue("plan", 0, 0, "format_version", message, "solve it again")])
    currency = currency_of(plan)
    code = USD.code if currency is None else currency.code
    if currency is not None:
        plan = in_currency(plan, currency)
    assert plan.inputs is not None
    bill = bill_of(plan, plan.inputs, currency)
    sheets = (
        _summary(plan, bill),
        _prices(bill),
        _bill(bill),
        _pools(plan, bill),
        _placements(plan, bill),
        _services(plan, bill),
        purchases_sheet(plan),
        commitments_sheet(plan, bill),
        options_sheet(plan),
        inputs_sheet(plan.inputs),
        demand_sheet(plan.inputs),
        sources_sheet(plan),
    )
    stream = io.BytesIO()
    write_sheets(stream, [_in_code(sheet, code) for sheet in sheets])
    return stream.getvalue()


def _in_code(sheet: Sheet, code: str) -> Sheet:
    """Return a sheet with a currency in the titles of amounts; prices keep their own units."""
    head = tuple(title.replace(USD.code, code) for title in sheet.head)
    if sheet.name != "Summary":
        return replace(sheet, head=head)
    rows = [(str(first).replace(f"[{USD.code}]", f"[{code}]"), *rest) for first, *rest in sheet.rows]
    return replace(sheet, rows=rows)


def _summary(plan: Plan, bill: Bill) -> Sheet:
    total = f"SUM(Bill!H{FIRST_ROW}:H{FIRST_ROW + max(len(bill.lines), 1) - 1})"
    rows: list[Sequence[Cell]] = [
        ("fleet", plan.fleet),
        ("periods", ", ".join(plan.periods)),
        ("status", plan.status),
        ("TCO [USD], of the prices on the sheet Prices", Formula(total, plan.objective_usd)),
        ("TCO as planned [USD]", plan.objective_usd),
        ("change by the prices [USD]", Formula("B5-B6", 0.0)),
        (f"lower bound{plan.bound_scope}, at the planned prices [USD]", plan.bound_usd),
        ("gap", plan.gap),
        ("made", plan.provenance.created),
        *_extension(plan),
        *_after_tax(plan),
        *([("rate", rate_text(bill.currency))] if bill.currency is not None else []),
        ("how to use it", "change the marked cells of the sheet Prices; the decisions stay as they are"),
    ]
    return Sheet("Summary", ("", ""), rows, widths=(52, 60))


def _extension(plan: Plan) -> list[Sequence[Cell]]:
    """Return the planned cost of the stated periods, and of the extension of the horizon."""
    if not plan.extension_periods:
        return []
    return [
        (f"of it {span(plan.stated_periods)} as planned [USD]", plan.objective_usd - plan.extension_usd),
        (f"of it the extension {span(plan.extension_periods)} as planned [USD]", plan.extension_usd),
    ]


def _after_tax(plan: Plan) -> list[Sequence[Cell]]:
    """Return the TCO after income tax at the workbook's prices, with the rate and each period as cells."""
    tax = plan.income_tax
    if tax is None:
        return []
    rate = 11 + len(_extension(plan))
    rows: list[Sequence[Cell]] = [
        ("income tax, share of income", tax.rate),
        ("TCO after income tax [USD]", Formula(f"(1-B{rate})*B5", tax.usd)),
    ]
    rows += [
        (
            f"after income tax {period}, as planned [USD]",
            Formula(f"(1-B{rate})*{usd / (1 - tax.rate)!r}", usd),
        )
        for period, usd in tax.usd_by_period.items()
    ]
    return rows


def _prices(bill: Bill) -> Sheet:
    stated = [*bill.stated_prices, *([] if bill.currency is None else [rate_row(bill.currency)])]
    rows = [(each.name, each.subject, each.value, each.unit, each.as_of, each.source) for each in stated]
    names = head("price, of, value, unit, as of, source")
    return Sheet("Prices", names, rows, widths=(34, 24, 14, 26, 12, 70), marked=2)


def _bill(bill: Bill) -> Sheet:
    rows: list[Sequence[Cell]] = []
    for position, line in enumerate(bill.lines):
        row = position + FIRST_ROW
        price = _price(line.price, bill)
        usd = Formula(f"F{row}*G{row}", line.usd)
        what = line.service or line.item
        rows.append(
            (line.period, line.pool, what, line.kind, line.price, price, line.quantity, usd, line.unit)
        )
    names = head("period, pool, what, kind, price, value, quantity, USD, unit of the quantity")
    return Sheet("Bill", names, rows, widths=(10, 24, 30, 14, 34, 14, 16, 16, 40))


def _pools(plan: Plan, bill: Bill) -> Sheet:
    rows: list[Sequence[Cell]] = []
    for position, use in enumerate(plan.pools):
        row = position + FIRST_ROW
        capacity = bill.capacity.get((use.pool, use.period), NOTHING)
        leaving = bill.leaving.get((use.pool, use.period), NOTHING)
        part = use.retirement_usd / leaving.usd if leaving.usd else 0.0
        share = use.usd / capacity.usd if capacity.usd else 0.0
        used = use.used_accelerators / use.accelerators if use.accelerators else 0.0
        rows.append(
            (
                " ".join(part for part in use.moment_key if part),
                use.pool,
                use.region,
                use.hardware,
                use.accelerators,
                use.used_accelerators,
                use.reserve_accelerators,
                share,
                Formula(f"H{row}*{capacity.formula}", use.usd),
                Formula(f"I{row}*(1-IF(E{row}=0,0,F{row}/E{row}))", use.usd * (1 - used)),
                Formula(f"{part!r}*{leaving.formula}", use.retirement_usd),
                use.idle_energy_kwh,
            )
        )
    names = head(
        "period, pool, region, hardware, accelerators, used, reserve, share of the period, USD, idle USD, "
        "retirement USD, idle kWh"
    )
    return Sheet("Pools", names, rows, widths=(18, 24, 14, 18, 13, 10, 10, 20, 16, 16, 16, 16))


def _placements(plan: Plan, bill: Bill) -> Sheet:
    rows: list[Sequence[Cell]] = []
    for position, placed in enumerate(bill.placements):
        row = position + FIRST_ROW
        capacity = bill.capacity.get((placed.pool, placed.period), NOTHING)
        unpriced = (kind for kind in RUNNING_KINDS if kind not in ("energy", "transition"))
        other_usd = sum(getattr(placed, f"{kind}_usd") for kind in unpriced)
        shared_usd = placed.usd - placed.energy_usd - placed.transition_usd - other_usd
        share = shared_usd / capacity.usd if capacity.usd else 0.0
        tariff, kwh = _priced(
            bill.tariffs.get((placed.period, placed.pool, placed.service), ""), placed.energy_usd, bill
        )
        change, started = _priced("transition", placed.transition_usd, bill)
        rows.append(
            (
                " ".join(part for part in placed.moment_key if part),
                placed.service,
                placed.region,
                placed.pool,
                placed.phase,
                placed.config,
                placed.hardware,
                placed.replicas,
                placed.accelerators,
                placed.requests_per_s,
                share,
                Formula(f"K{row}*{capacity.formula}", shared_usd),
                kwh,
                Formula(f"M{row}*{tariff}", placed.energy_usd),
                started,
                Formula(f"O{row}*{change}", placed.transition_usd),
                other_usd,
                Formula(f"L{row}+N{row}+P{row}+Q{row}", placed.usd),
            )
        )
    names = head(
        "period, service, region, pool, phase, configuration, hardware, replicas, accelerators, "
        "requests/s, share of the pool, capacity USD, energy above idle kWh, energy above idle USD, "
        "accelerators that start, USD for that, day and data USD, USD"
    )
    widths = (18, 24, 14, 24, 12, 20, 18, 10, 13, 12, 17, 16, 14, 14, 22, 14, 16, 16)
    return Sheet("Placements", names, rows, widths=widths)


def _price(name: str, bill: Bill) -> Cell:
    """Return the cell of a price; one dollar for a line without a price."""
    if name:
        return Formula(bill.price_cells[name], bill.price_values[name])
    return bill.one_usd


def _priced(name: str, usd: float, bill: Bill) -> tuple[str, float]:
    """Return the cell and quantity of a cost; 1 and the cost without a price."""
    if name not in bill.price_values:
        return "1", usd
    return bill.price_cells[name], usd / bill.price_values[name]


def _services(plan: Plan, bill: Bill) -> Sheet:
    """Return the sheet of cost by service and period, idle capacity, and the unexplained rest."""
    width = len(plan.periods)
    names = list(dict.fromkeys(placed.service for placed in bill.placements))
    parts = [
        (name, [bill.by_service.get((name, period), NOTHING) for period in plan.periods]) for name in names
    ]
    parts.append(("idle capacity", [bill.idle.get(period, NOTHING) for period in plan.periods]))
    if bill.retirements:
        cells = [bill.retirements.get(period, NOTHING) for period in plan.periods]
        parts.append(("hosts that leave: book value less sale", cells))
    rows: list[Sequence[Cell]] = [_with_total(position, *part) for position, part in enumerate(parts)]
    end, total = len(rows) + FIRST_ROW - 1, len(rows) + FIRST_ROW + 1
    spent = [bill.by_period.get(period, NOTHING) for period in plan.periods]
    rest = [
        SumCell(
            f"{_column(q)}{total}-SUM({_column(q)}{FIRST_ROW}:{_column(q)}{end})",
            spent[q].usd - sum(cells[q].usd for _, cells in parts),
        )
        for q in range(width)
    ]
    rows.append(_with_total(len(rows), "not paid by a single service", rest))
    rows.append(_with_total(len(rows), "TCO", spent))
    left = bill.by_period.get("")
    if left is not None:
        rows.append(("not in a single period", *([None] * width), left.as_formula))
    return Sheet("Services", ("USD", *plan.periods, "horizon"), rows, widths=(34, *([16] * (width + 1))))


def _with_total(position: int, name: str, cells: Sequence[SumCell]) -> Sequence[Cell]:
    row = position + FIRST_ROW
    total = Formula(f"SUM({_column(0)}{row}:{_column(len(cells) - 1)}{row})", sum(cell.usd for cell in cells))
    return (name, *(cell.as_formula for cell in cells), total)


def _column(period: int) -> str:
    """Return the column letters of a period; the first column holds names."""
    from xlsxwriter.utility import xl_col_to_name  # noqa: PLC0415  (as in write_sheets)

    return str(xl_col_to_name(period + 1))
