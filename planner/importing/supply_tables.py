"""Convert inventory and price lists to blocks of a fleet file: pools and offers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Final

from fleetplan.fleet.catalog import accelerators
from fleetplan.fleet.catalog.hardware_names import instance_type
from fleetplan.fleet.document.number_hints import decimal_comma, points_between_thousands
from fleetplan.fleet.document.text_tables import TextRow, TextTable, read_text_table
from fleetplan.fleet.errors import InputError, Issue
from fleetplan.fleet.units import HOURS_PER_MONTH
from fleetplan.planner.importing.fragments import Block, ImportedSupply, SupplyFragment, check_characters
from fleetplan.planner.importing.records import RejectedRowError, count, known_hardware, number

RENTS: Final[Mapping[str, Callable[[float, int], float]]] = {
    "rent_usd_per_accelerator_hour": lambda usd, _: usd,
    "rent_usd_per_host_hour": lambda usd, accelerators_per_host: usd / accelerators_per_host,
    "rent_usd_per_accelerator_month": lambda usd, _: usd / HOURS_PER_MONTH,
    "rent_usd_per_host_month": lambda usd, accelerators_per_host: (
        usd / accelerators_per_host / HOURS_PER_MONTH
    ),
}
"""Columns of rents, and their conversion to accelerator-hours."""

_NUMBERS: Final = frozenset({"hosts", "capex_usd_per_host", *RENTS})
_POINT_HINT: Final = "use a decimal point and no thousands separators; here 300.000 would be 300"

INVENTORY_COLUMNS: Final = (
    "name", "region", "hardware", "hosts", "capex_usd_per_host", "in_service", "life_quarters", "price_as_of",
    "energy_included", *RENTS,
)  # fmt: skip

PRICE_COLUMNS: Final = (
    "name", "hardware", "regions", "per", "capex_usd_per_host", "lead_time_quarters", "max_hosts",
    "max_accelerators", "term_quarters", "price_as_of", "energy_included", *RENTS,
)  # fmt: skip


def import_inventory(path: Path) -> ImportedSupply:
    """Return the pools of an inventory: a CSV file with `INVENTORY_COLUMNS`, in which cells may be empty.

    Other columns are ignored with a note, unless they look like misspelt ones.

    Raises
    ------
    InputError
        The file is unreadable, a column is misspelt, or `name`, `hardware` or `hosts` is missing.
    """
    return _imported(path, "pools", INVENTORY_COLUMNS, ("name", "hardware", "hosts"), _pool)


def import_prices(path: Path) -> ImportedSupply:
    """Return the offers of a price list; as `import_inventory`, with `name` and `hardware` required."""
    return _imported(path, "offers", PRICE_COLUMNS, ("name", "hardware"), _offer)


_Row = Mapping[str, str]


def _imported(
    path: Path,
    block: Block,
    columns: tuple[str, ...],
    needed: tuple[str, ...],
    read: Callable[[_Row, SupplyFragment], dict[str, object]],
) -> ImportedSupply:
    table = read_text_table(path, columns, needed, more=True)
    _refuse_commas(table)
    faults = {issue.line: issue.message for issue in table.issues}

    def checked(row: TextRow) -> dict[str, object]:
        check_characters([(name, cell) for name, cell in row.cells.items() if name in columns])
        if row.line in faults:
            raise RejectedRowError(faults[row.line])
        return read(row.cells, fragment)

    fragment = SupplyFragment(str(path))
    if table.unread:
        fragment.notes.append(f"ignored columns: {', '.join(map(repr, table.unread))}")
    for row in table.rows:
        fragment.take(block, f"line {row.line}", partial(checked, row))
    return fragment.done()


def _refuse_commas(table: TextTable) -> None:
    """Raise an error for a table with decimal commas, in which points are thousands separators.

    Raises
    ------
    InputError
        Lists the numbers that show it.
    """
    what = "has a decimal comma or points between thousands"
    told = [
        Issue(table.path, row.line, 1, column, f"{value!r} {what}", _POINT_HINT)
        for row in table.rows
        for column, value in row.cells.items()
        if column in _NUMBERS and (decimal_comma(value) or points_between_thousands(value))
    ]
    if told:
        raise InputError(told)


def _pool(row: _Row, fragment: SupplyFragment) -> dict[str, object]:
    pool: dict[str, object] = {"name": _needed(row, "name")}
    if "region" in row:
        pool["region"] = row["region"]
    hardware, accelerators_each = _hardware(row)
    kind = fragment.host_kind(hardware, accelerators_each)
    pool |= {"hardware": kind, "hosts": count(row.get("hosts"), "hosts")}
    if "capex_usd_per_host" in row:
        _refuse_both(row)
        owned: dict[str, object] = {
            "capex_usd_per_host": number(row["capex_usd_per_host"], "capex_usd_per_host")
        }
        if "in_service" in row:
            owned["in_service"] = row["in_service"]
        if "life_quarters" in row:
            owned["life_quarters"] = count(row["life_quarters"], "life_quarters")
        pool["owned"] = _dated(owned, row)
    else:
        rented: dict[str, object] = {"usd_per_accelerator_hour": _rent(row, accelerators_each)}
        pool["rented"] = _dated(_with_energy(rented, row), row)
    return pool


def _offer(row: _Row, fragment: SupplyFragment) -> dict[str, object]:
    hardware, accelerators_each = _hardware(row)
    kind = fragment.host_kind(hardware, accelerators_each)
    offer: dict[str, object] = {"name": _needed(row, "name"), "hardware": kind}
    if "regions" in row:
        offer["regions"] = [part.strip() for part in row["regions"].split(";") if part.strip()]
    if "per" in row:
        if row["per"] not in {"host", "accelerator"}:
            raise RejectedRowError(f"per is {row['per']!r}, not host or accelerator")
        offer["per"] = row["per"]
    if "capex_usd_per_host" in row:
        _refuse_both(row)
        offer["capex_usd_per_host"] = number(row["capex_usd_per_host"], "capex_usd_per_host")
    else:
        offer["rent_usd_per_accelerator_hour"] = _rent(row, accelerators_each)
        offer = _with_energy(offer, row)
    for name in ("lead_time_quarters", "max_hosts", "max_accelerators"):
        if name in row:
            value = number(row[name], name)
            if value != round(value):
                raise RejectedRowError(f"{name} is {row[name]!r}, not a whole number")
            offer[name] = int(value)
    if "term_quarters" in row:
        offer["term_quarters"] = count(row["term_quarters"], "term_quarters")
    return _dated(offer, row)


def _needed(row: _Row, name: str) -> str:
    if name not in row:
        raise RejectedRowError(f"{name} is empty")
    return row[name]


def _hardware(row: _Row) -> tuple[str, int]:
    """Return the hardware and its number per host, by the instance type if one is named."""
    name = _needed(row, "hardware")
    hardware, machine = known_hardware(name), instance_type(name)
    size = accelerators()[hardware].accelerators_per_host if machine is None else machine.accelerators
    return hardware, size


def _refuse_both(row: _Row) -> None:
    rents = [name for name in RENTS if name in row]
    if rents:
        raise RejectedRowError(f"capex_usd_per_host and {rents[0]}: hosts are bought or rented, not both")


def _rent(row: _Row, accelerators_each: int) -> float:
    given = [name for name in RENTS if name in row]
    if len(given) != 1:
        said = ", ".join(given) or "no price"
        raise RejectedRowError(f"{said}: one of capex_usd_per_host, {', '.join(RENTS)} is needed")
    usd = number(row[given[0]], given[0])
    return round(RENTS[given[0]](usd, accelerators_each), 6)


def _with_energy(block: dict[str, object], row: _Row) -> dict[str, object]:
    if "energy_included" in row:
        if row["energy_included"] not in {"true", "false"}:
            raise RejectedRowError(f"energy_included is {row['energy_included']!r}, not true or false")
        block["energy_included"] = row["energy_included"] == "true"
    return block


def _dated(block: dict[str, object], row: _Row) -> dict[str, object]:
    return block | ({"price_as_of": row["price_as_of"]} if "price_as_of" in row else {})
