"""The CSV tables and the workbook of a plan against plan.json."""

from __future__ import annotations

import csv
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import openpyxl
from tests.oracles.shown.amounts import Money, other, unequal

LISTS: Final = (
    "placements", "purchases", "pools", "costs", "retirements", "commitments", "remaining_values",
    "supply_options", "unmet", "transitions", "demand_scenarios", "scenario_purchases", "wrong_forecasts",
    "tides", "offline_work", "region_losses", "kv_flows",
)  # fmt: skip
"""Lists of plan.json that are tables of the same name."""

INPUTS: Final = {"bill": "cost_lines", "prices": "prices", "demand": "demand"}
"""Tables of the inputs."""

FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")

Row = dict[str, Any]


def flat(row: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return a row with the keys of what it holds as `name.key`."""
    found: dict[str, Any] = {}
    for name, value in row.items():
        if isinstance(value, dict):
            found |= flat(value, f"{prefix}{name}.")
        else:
            found[prefix + name] = value
    return found


def table_faults(plan: Row, folder: Path, money: Money) -> Iterator[str]:
    """Yield what the CSV tables say otherwise than plan.json."""
    lists = {name: plan[name] for name in LISTS} | {n: plan["inputs"][own] for n, own in INPUTS.items()}
    for name, rows in lists.items():
        with (folder / f"{name}.csv").open(encoding="utf-8", newline="") as stream:
            read = list(csv.DictReader(stream))
        stated = [flat(row) for row in rows]
        if name == "prices" and money.code != "USD":
            rate = read.pop()
            yield from unequal("prices.csv: rate", float(rate["value"]), money.usd_per_unit)
        yield from unequal(f"{name}.csv: rows", len(read), len(stated))
        for number, (cells, row) in enumerate(zip(read, stated, strict=False)):
            yield from _row_faults(f"{name}.csv row {number}", cells, row, money, name == "prices")


def _row_faults(place: str, cells: Row, row: Row, money: Money, own_units: bool) -> Iterator[str]:
    left = dict(cells)
    for name, value in row.items():
        words = name.split(".")[0].split("_")
        amount = "usd" in words and not own_units
        title = name
        if amount and money.code != "USD":
            parts = [money.code.lower() if word == "usd" else word for word in words]
            title = "_".join(parts) + name[len("_".join(words)) :]
        cell = left.pop(title, None)
        if cell is None:
            yield f"{place}: no column {title}"
        elif value is None or isinstance(value, (str, bool)):
            text = cell[1:] if cell[:1] == "'" and cell[1:].startswith(FORMULA) else cell
            if text != ("" if value is None else str(value)) and "\\" not in text:
                yield f"{place} {title}: {cell!r}, the plan has {value!r}"
        elif not isinstance(value, list):
            expected = value / money.usd_per_unit if amount else value
            if cell == "" or abs(float(cell) - expected) > 1e-12 * abs(expected):
                yield f"{place} {title}: {cell}, the plan has {expected}"
    for title, cell in left.items():
        if cell not in ("", None):
            yield f"{place}: {title} is {cell}, the plan has none"


def _sheets(path: Path) -> dict[str, list[list[Any]]]:
    book = openpyxl.load_workbook(path, data_only=True)
    return {sheet.title: [list(row) for row in sheet.iter_rows(values_only=True)] for sheet in book}


def workbook_faults(plan: Row, path: Path, money: Money) -> Iterator[str]:
    """Yield what the workbook's stored values say otherwise than plan.json."""
    sheets = _sheets(path)
    rate = money.usd_per_unit
    yield from _summary(plan, sheets["Summary"], rate)
    for name, expected in _tables(plan, rate).items():
        rows = sheets[name][1:]
        yield from unequal(f"{name}: rows", len(rows), len(expected))
        for number, (row, values) in enumerate(zip(rows, expected, strict=False), start=2):
            for column, (cell, value) in enumerate(zip(row, values, strict=False)):
                if value is not Ellipsis and not _same(cell, value):
                    yield f"{name} {number}:{column}: {cell!r}, the plan has {value!r}"
    yield from _services(plan, sheets["Services"], rate)


def _same(cell: object, value: object) -> bool:
    if value is None or value == "":
        return cell is None or cell == ""
    if isinstance(value, str):
        return str(cell) == value or (isinstance(cell, str) and "\\" in cell)
    return isinstance(cell, (int, float)) and isinstance(value, (int, float)) and not other(cell, value)


def _summary(plan: Row, rows: list[list[Any]], rate: float) -> Iterator[str]:
    said = {re.sub(r" \[\w+\]|,.*", "", str(row[0] or "")): row[1] for row in rows}
    bound = next(value for name, value in said.items() if name.startswith("lower bound"))
    expected = {
        "fleet": plan["fleet"],
        "periods": ", ".join(plan["periods"]),
        "status": plan["status"],
        "TCO": plan["objective_usd"] / rate,
        "TCO as planned": plan["objective_usd"] / rate,
        "change by the prices": 0.0,
        "gap": plan["gap"],
    }
    for name, value in expected.items():
        if not _same(said.get(name), value):
            yield f"Summary {name}: {said.get(name)!r}, the plan has {value!r}"
    if not _same(bound, plan["bound_usd"] / rate):
        yield f"Summary lower bound: {bound!r}, the plan has {plan['bound_usd'] / rate!r}"
    if plan["income_tax"] and not _same(said.get("TCO after income tax"), plan["income_tax"]["usd"] / rate):
        yield f"Summary after tax: {said.get('TCO after income tax')!r}"


def _moment(row: Row) -> str:
    return " ".join(row[part] for part in ("period", "slice", "scenario") if row[part])


def _tables(plan: Row, rate: float) -> dict[str, list[Sequence[Any]]]:
    """Return the cells of sheets that plan.json states; `...` for other cells."""
    order = {period: number for number, period in enumerate((*plan["periods"], ""))}
    bill = sorted(
        plan["inputs"]["cost_lines"],
        key=lambda e: (order[e["period"]], e["pool"], e["service"], e["at_once"]),
    )
    placed = sorted(plan["placements"], key=lambda e: (order[e["period"]], e["service"]))
    orders: list[Sequence[Any]] = [
        (e["period"], e["kind"] + " (assumed)" * e["assumed"], e["offer"], e["region"], e["pool"],
         e["hardware"], e["units"], e["unit"], e["accelerators"], e["capex_usd"] / rate, e["usd"] / rate,
         e["price_source"], e["price_as_of"])
        for e in plan["purchases"]
    ]  # fmt: skip
    orders += [
        (e["period"], e["kind"] + " (assumed)" * e["assumed"], "", e["region"], e["pool"], e["hardware"],
         e["hosts"], e["unit"], None, None, e["usd"] / rate)
        for e in plan["retirements"]
    ]  # fmt: skip
    owed: list[Sequence[Any]] = [
        (e["quarter"], e["pool"], e["item"], e["kind"], ..., ..., e["usd"] / rate)
        for e in plan["commitments"]
    ]
    owed += [
        (..., e["pool"], e["item"], ..., ..., ..., None if e["book_usd"] is None else e["book_usd"] / rate)
        for e in plan["remaining_values"]
    ]
    return {
        "Bill": [
            (e["period"], e["pool"], e["service"] or e["item"], e["kind"], e["price"], ..., e["quantity"]
             if e["price"] else ..., e["usd"] / rate, e["unit"])
            for e in bill
        ],
        "Pools": [
            (_moment(e), e["pool"], e["region"], e["hardware"], e["accelerators"], e["used_accelerators"],
             e["reserve_accelerators"], ..., e["usd"] / rate, e["idle_usd"] / rate,
             e["retirement_usd"] / rate, e["idle_energy_kwh"])
            for e in plan["pools"]
        ],
        "Placements": [
            (_moment(e), e["service"], e["region"], e["pool"], e["phase"], e["config"], e["hardware"],
             e["replicas"], e["accelerators"], e["requests_per_s"], ..., ..., ..., e["energy_usd"] / rate,
             ..., e["transition_usd"] / rate, (e["tidal_usd"] + e["data_usd"]) / rate, e["usd"] / rate)
            for e in placed
        ],
        "Purchases": orders,
        "Commitments": owed,
        "Buy or rent": [
            (e["pool"], e["region"], e["hardware"], e["option"], e["offer"], e["period"], e["units"],
             e["usd_per_accelerator_hour"] / rate, e["against"], e["break_even_quarters"],
             None if e["break_even_resale_usd"] is None else e["break_even_resale_usd"] / rate)
            for e in plan["supply_options"]
        ],
        "Demand": [
            (e["service"], e["region"], e["period"], e["slice"], e["scenario"], e["request_class"],
             e["requests_per_s"])
            for e in plan["inputs"]["demand"]
        ],
    }  # fmt: skip


def _services(plan: Row, rows: list[list[Any]], rate: float) -> Iterator[str]:
    periods = [str(each) for each in rows[0][1:-1]]
    yield from unequal("Services: periods", periods, plan["periods"])
    said = {row[0]: row[1:] for row in rows[1:]}
    usd: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for row in plan["placements"]:
        usd[row["service"]][row["period"]] += row["usd"]
    for use in plan["pools"]:
        usd["idle capacity"][use["period"]] += use["idle_usd"]
        if plan["retirements"]:
            usd["hosts that leave: book value less sale"][use["period"]] += use["retirement_usd"]
    for cost in plan["costs"]:
        if cost["scope"] == "period":
            usd["TCO"][cost["name"]] = cost["usd"]
    for name, by_period in usd.items():
        expected = [by_period[period] / rate for period in plan["periods"]]
        yield from _series(name, said.get(name), [*expected, sum(expected)])
    rest = [0.0 if cell is None else cell for cell in said["not paid by a single service"]]
    parts: list[Iterable[float]] = [values for name, values in said.items() if name in usd and name != "TCO"]
    whole = [sum(column) for column in zip(*parts, rest, strict=True)]
    yield from _series("TCO as the sum of its rows", said["TCO"], whole)


def _series(name: str, cells: Sequence[Any] | None, expected: Sequence[float]) -> Iterator[str]:
    if cells is None:
        yield f"Services: no row {name}"
        return
    for column, (cell, value) in enumerate(zip(cells, expected, strict=True)):
        if not _same(cell, value):
            yield f"Services {name} {column}: {cell!r}, the plan has {value!r}"
