"""Convert SkyPilot's catalogue of machines to offers of a fleet file.

Input is a file of 2026 (skypilot-org/skypilot-catalog, catalogs/v8/CLOUD/vms.csv) with InstanceType,
AcceleratorName, AcceleratorCount, Price and SpotPrice of a machine [USD/h], Region, AvailabilityZone and
GpuInfo. Clouds differ:

* Google Cloud has separate rows for a machine and for the accelerators of a zone; the price is their sum. A
  slice of TPUs (tpu-v6e-8) is a row without a machine.
* RunPod writes gigabytes instead of MiB, and the form factor of a card only in GpuInfo ('A100 PCIe').
* Verda writes GpuInfo as JSON, the others as a Python literal.
* Vast writes 0.00 for a missing spot price.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from fleetplan.fleet.catalog import accelerators
from fleetplan.fleet.catalog.hardware_names import (
    instance_type,
    instance_types,
    other_part,
    part_called,
    tpu_slice,
)
from fleetplan.fleet.document.headers import check_header
from fleetplan.fleet.document.records import Table
from fleetplan.fleet.figures import counted
from fleetplan.planner.importing.fragments import ImportedSupply, SupplyFragment, check_characters
from fleetplan.planner.importing.offers import MachinePrice, OfferOptions, take_prices
from fleetplan.planner.importing.records import (
    Record,
    RejectedRowError,
    count,
    known_hardware,
    number,
    stripped,
)

SKYPILOT_COLUMNS: Final = ("InstanceType", "AcceleratorName", "AcceleratorCount", "Price", "Region")

MEMORY_RATIO: Final = 0.1
"""Tolerance on the memory of a card against the catalogue: data sheets and drivers differ by up to 7 %."""
UNKNOWN_TPU_USD: Final = 700.0
"""Placeholder in Google Cloud's file for slices without a public price. [USD/h]"""
_LEAST_MEMORY: Final = "-40GB"
"""An A100 without stated memory is the 40 GB version here; the other is A100-80GB."""
_PCIE: Final = re.compile("pcie", re.IGNORECASE)
_CARD: Final = re.compile(r"['\"]Name['\"]: ?['\"]([^'\"]{1,60})['\"]")
_MEMORY: Final = re.compile(r"['\"]SizeInMiB['\"]: ?(\d{1,9})")
_MIB_PER_GIB: Final = 1024
_WORDS: Final = re.compile("[a-z]{2,}")
_WITHOUT_MACHINE: Final = "is a price of accelerators without their machine"


@dataclass(frozen=True, slots=True)
class _CatalogueRow:
    """A selected row, with the machine or accelerators it names.

    `usd` contains the price and the spot price, if known. [USD/h]
    """

    line: int
    machine: str
    kind: str
    card: str
    memory_gib: float | None
    number: object
    zone: str
    region: str
    usd: tuple[float | None, float | None]


def skypilot_offers(table: Table, path: str, options: OfferOptions) -> ImportedSupply:
    """Return the offers of SkyPilot's catalogue: one per machine and price, with its regions.

    Raises
    ------
    InputError
        A column is missing.
    """
    check_header(path, table.columns, SKYPILOT_COLUMNS)
    fragment = SupplyFragment(path)
    prices: list[MachinePrice] = []
    hosts: list[_CatalogueRow] = []
    cards: dict[str, list[_CatalogueRow]] = {}
    for line, record in table.records:
        try:
            row = _row(fragment, line, stripped(record), options)
            if row is None:
                continue
            if not row.kind and instance_type(row.machine) is not None:
                hosts.append(row)
            elif row.kind and not row.machine and tpu_slice(row.kind) is None:
                if str(row.number or "").strip():
                    count(row.number, "AcceleratorCount")
                cards.setdefault(row.zone, []).append(row)
            else:
                prices += _priced(fragment, row, *_part(row), options)
        except RejectedRowError as reason:
            fragment.reject(f"line {line}", str(reason))
    prices += _with_cards(fragment, hosts, cards, options)
    wanted = len({row for each in prices for row in each.rows})
    fragment.says.append(
        f"SkyPilot's catalogue, {options.as_of}: {counted(wanted, 'row')} with selected accelerators."
    )
    take_prices(fragment, prices, options)
    return fragment.done()


def _row(fragment: SupplyFragment, line: int, record: Record, options: OfferOptions) -> _CatalogueRow | None:
    """Return a row; None if its region is not selected."""
    kind = str(record.get("AcceleratorName") or "")
    machine = str(record.get("InstanceType") or "")
    if not kind and instance_type(machine) is None:
        raise RejectedRowError("has no accelerators")
    region = options.region(fragment, str(record.get("Region") or ""))
    if region is None:
        return None
    info = str(record.get("GpuInfo") or "")
    card, memory = _CARD.search(info), _MEMORY.search(info)
    size = None if memory is None else float(memory[1])
    # No card has less than 1 GiB: smaller figures are in gigabytes.
    gib = None if size is None else size if size < _MIB_PER_GIB else size / _MIB_PER_GIB
    read = (_price(record, "Price", kind), _price(record, "SpotPrice", kind))
    zone = str(record.get("AvailabilityZone") or record.get("Region") or "")
    name = "" if card is None else card[1]
    return _CatalogueRow(line, machine, kind, name, gib, record.get("AcceleratorCount"), zone, region, read)


def _price(record: Record, column: str, kind: str) -> float | None:
    if record.get(column) in (None, ""):
        return None
    usd = number(record[column], column)
    unknown = usd == UNKNOWN_TPU_USD and tpu_slice(kind) is not None
    return None if unknown or usd <= 0 else usd


def _part(row: _CatalogueRow) -> tuple[str, int]:
    """Return hardware and accelerators of a row with its own accelerators."""
    known, piece = instance_type(row.machine), tpu_slice(row.kind)
    if known is not None:
        return known.hardware, known.accelerators
    if piece is not None:
        hardware, chips = known_hardware(row.kind), piece[1]
        machines = instance_types().values()
        if not any(each.hardware == hardware and each.accelerators == chips for each in machines):
            raise RejectedRowError(f"{row.kind} is a slice of several hosts or of a part of one")
        return hardware, chips
    hardware = part_called(row.card) or known_hardware(row.kind)
    if other_part(row.card) is not None:
        raise RejectedRowError(f"{row.card} is {other_part(row.card)}: not in the catalogue")
    if _PCIE.search(row.machine) or (_PCIE.search(row.card) and part_called(row.card) is None):
        raise RejectedRowError(f"{row.kind} of {row.machine} is a PCIe card, which differs from {hardware}")
    wanted = accelerators()[hardware].hbm_gib
    if row.memory_gib is not None and abs(row.memory_gib - wanted) > MEMORY_RATIO * wanted:
        raise RejectedRowError(f"{row.kind} has {row.memory_gib:.0f} GiB, but {hardware} has {wanted:.0f}")
    return hardware, count(row.number, "AcceleratorCount")


def _with_cards(
    fragment: SupplyFragment,
    hosts: list[_CatalogueRow],
    cards: dict[str, list[_CatalogueRow]],
    options: OfferOptions,
) -> Iterator[MachinePrice]:
    """Yield the prices of machines listed separately from their accelerators, as sums."""
    used: set[int] = set()
    for host in hosts:
        known = instance_type(host.machine)
        assert known is not None
        fitting = [
            each
            for each in cards.get(host.zone, ())
            if _fits(each, host.machine, known.hardware, known.accelerators)
        ]
        # Between H100 and H100-MEGA, choose the one whose words occur in the machine: a3-megagpu-8g.
        best = max(fitting, key=lambda each: len(each.kind), default=None)
        if best is None:
            fragment.reject(f"line {host.line}", "its accelerators have no price in its zone")
            continue
        used.add(best.line)
        usd, spot_usd = (
            None if mine is None or its is None else mine + its
            for mine, its in zip(host.usd, best.usd, strict=True)
        )
        try:
            whole = replace(host, usd=(usd, spot_usd))
            rows = (host.line, best.line)
            yield from _priced(fragment, whole, known.hardware, known.accelerators, options, rows)
        except RejectedRowError as reason:
            fragment.reject(f"line {host.line}", str(reason))
    for card in (each for rows in cards.values() for each in rows if each.line not in used):
        fragment.reject(f"line {card.line}", _WITHOUT_MACHINE)


def _fits(card: _CatalogueRow, machine: str, hardware: str, number_each: int) -> bool:
    """Return whether a row of accelerators belongs to a machine with a number of a kind."""
    if str(card.number or "").strip() == "" or number(card.number, "AcceleratorCount") != number_each:
        return False
    named = part_called(card.kind) or part_called(f"{card.kind}{_LEAST_MEMORY}")
    words = _WORDS.findall(card.kind.lower().partition("-")[2])
    return named == hardware and all(word in ("gb", "sxm") or word in machine for word in words)


def _priced(
    fragment: SupplyFragment,
    row: _CatalogueRow,
    hardware: str,
    number_each: int,
    options: OfferOptions,
    rows: tuple[int, ...] = (),
) -> list[MachinePrice]:
    """Return the prices of a row, or of a machine's two rows; empty if its hardware is not selected."""
    rows = rows or (row.line,)
    if not options.wants(fragment, hardware, len(rows)):
        return []
    machine = row.machine or row.kind
    check_characters([("InstanceType", machine), ("Region", row.region)])
    usd, spot_usd = row.usd
    known = instance_type(machine)
    if options.spot_max_share is None:
        spot_usd = None
    found = [
        MachinePrice(machine, hardware, number_each, row.region, each, spot, rows=rows)
        for spot, each in ((False, usd), (True, spot_usd))
        if each is not None and (spot or known is None or not known.spot_only)
    ]
    if not found:
        alone = usd is not None and known is not None and known.spot_only
        raise RejectedRowError(
            "only starts as spot capacity: give --spot-max-share" if alone else "has no price"
        )
    return found
