"""Convert FOCUS billing exports to offers and pools of a fleet file.

Supported exports (November 2026): FOCUS 1.0 to 1.2 (focus.finops.org), CSV or Parquet, with usage in hours
and its effective cost, by instance type, region and pricing category. Standard prices become offers;
commitments become rented pools with the mean number of running hosts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Final

from fleetplan.fleet.catalog.hardware_names import InstanceType, instance_type
from fleetplan.fleet.document.headers import check_header
from fleetplan.fleet.document.records import Table
from fleetplan.planner.importing.fragments import (
    ImportedSupply,
    SupplyFragment,
    check_characters,
    plain_name,
)
from fleetplan.planner.importing.offers import OfferOptions, named, offer
from fleetplan.planner.importing.records import Record, RejectedRowError, number, stripped

FOCUS_COLUMNS: Final = ("ChargeCategory", "EffectiveCost", "ChargePeriodStart", "ChargePeriodEnd", "RegionId")
_NULLS: Final = frozenset({"", "NULL", "\\N"})
_BESIDE_MACHINES: Final = "EBSOptimized"
"""Suffix of an Amazon EC2 usage type that names a machine type but counts none of its hours."""
_WORDS: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]+")
_HOURS_PER_UNIT: Final = {"hours": 1.0, "hour": 1.0, "hrs": 1.0, "h": 1.0, "instancehours": 1.0,
                          "seconds": 1 / 3600, "second": 1 / 3600, "minutes": 1 / 60}  # fmt: skip
_QUANTITIES: Final = (
    ("ConsumedQuantity", "ConsumedUnit"),
    ("PricingQuantity", "PricingUnit"),
    ("CommitmentDiscountQuantity", "CommitmentDiscountUnit"),
)
"""Columns that may contain hours. Unused commitments have no usage, but the last column since FOCUS 1.1."""
_INSTANCE_COLUMNS: Final = (
    "SkuPriceDetails", "x_InstanceType", "x_UsageType", "x_SkuDetails", "SkuMeter", "x_SkuMeterName",
    "ResourceType", "ChargeDescription", "x_SkuDescription",
)  # fmt: skip
"""Columns that may name an instance type: a property since FOCUS 1.2, before it columns of providers."""


@dataclass(slots=True)
class _Usage:
    """Payments for one kind of instance in one region and pricing category."""

    usd: float = 0.0
    hours: float = 0.0
    rows: int = 0


def focus_supply(table: Table, path: str, options: OfferOptions) -> ImportedSupply:
    """Return offers and rented pools of a FOCUS billing export.

    Raises
    ------
    InputError
        A column is missing, or costs are not in USD.
    """
    check_header(path, table.columns, FOCUS_COLUMNS)
    fragment = SupplyFragment(path)
    usage: dict[tuple[InstanceType, str, str], _Usage] = {}
    span: list[datetime] = []
    for line, written in table.records:
        record = without_nulls(written)
        try:
            instance, region, category, usd, hours = usage_of(record)
            start, end = charged_time(record, "ChargePeriodStart"), charged_time(record, "ChargePeriodEnd")
        except RejectedRowError as reason:
            fragment.reject(f"row {line}", str(reason))
            continue
        span = [min(start, *span[:1] or [start]), max(end, *span[1:] or [end])]
        wanted = options.region(fragment, region)
        if wanted is None or not options.wants(fragment, instance.hardware):
            continue
        found = usage.setdefault((instance, wanted, category), _Usage())
        found.usd, found.hours, found.rows = found.usd + usd, found.hours + hours, found.rows + 1
    if span:
        window_hours = (span[1] - span[0]).total_seconds() / 3600
        day = span[1].date().isoformat()
        fragment.says.append(f"FOCUS billing export, {span[0].date()} to {day} ({window_hours:,.0f} hours).")
        dated = OfferOptions(day, options.regions, options.hardware, options.spot_max_share)
        for key, paid in sorted(usage.items(), key=lambda each: str(each[0])):
            _take_usage(fragment, key, paid, window_hours, dated)
    return fragment.done()


def _take_usage(
    fragment: SupplyFragment,
    key: tuple[InstanceType, str, str],
    paid: _Usage,
    window_hours: float,
    options: OfferOptions,
) -> None:
    instance, region, category = key
    place = f"{instance.name} in {region} ({category.lower()})"
    if paid.usd <= 0 or paid.hours <= 0 or window_hours <= 0:
        fragment.reject(place, "has no hourly cost: credits, or a cost without usage")
        return
    usd = paid.usd / paid.hours / instance.accelerators
    spot = category == "Dynamic"
    if spot and options.spot_max_share is None:
        fragment.reject(place, "is spot capacity: give --spot-max-share")
        return
    if category != "Committed":
        kind = (instance.hardware, instance.accelerators)
        read = partial(offer, fragment, kind, [region], usd, options, spot=spot)
        name = plain_name(instance.name, "spot" if spot else "", region)
        fragment.take("offers", place, partial(named, name, read), paid.rows)
        return
    hosts = max(1, round(paid.hours / window_hours))
    pool: dict[str, object] = {
        "name": plain_name(instance.name, "committed", region),
        "region": region,
        "hardware": fragment.host_kind(instance.hardware, instance.accelerators),
        "hosts": hosts,
        "rented": {
            "usd_per_accelerator_hour": round(usd, 6),
            "energy_included": True,
            "price_as_of": options.as_of,
        },
    }
    fragment.take("pools", place, lambda: pool, paid.rows)


def without_nulls(written: Record) -> Record:
    """Return the non-empty cells of a row, without blanks around their texts."""
    return {name: value for name, value in stripped(written).items() if not _is_null(value)}


def usage_of(record: Record) -> tuple[InstanceType, str, str, float, float]:
    """Return instance type, region, pricing category, cost [USD] and hours of a usage row."""
    if record.get("ChargeCategory") != "Usage":
        raise RejectedRowError(f"charge category {record.get('ChargeCategory')}: is not usage")
    if record.get("ChargeClass") is not None:
        raise RejectedRowError(f"charge class {record['ChargeClass']}: belongs to an earlier bill")
    instance = _instance(record)
    currency = record.get("BillingCurrency", "USD")
    if currency != "USD":
        raise RejectedRowError(f"costs are in {currency}, not in USD")
    missing: list[str] = []
    for quantity, unit in _QUANTITIES:
        many, plain = _unit(record.get(unit))
        if plain not in _HOURS_PER_UNIT:
            continue
        missing.append(quantity)
        if quantity in record:
            hours = number(record[quantity], quantity) * many * _HOURS_PER_UNIT[plain]
            break
    else:
        if missing:
            raise RejectedRowError(f"{missing[0]} is missing")
        raise RejectedRowError(f"usage is in {record.get('ConsumedUnit', 'no unit')!r}, not in hours")
    if "RegionId" not in record:
        raise RejectedRowError("RegionId is missing")
    region = str(record["RegionId"])
    check_characters([("RegionId", region)])
    category = str(record.get("PricingCategory", "Standard"))
    if category not in {"Standard", "Committed", "Dynamic"}:
        raise RejectedRowError(f"pricing category {category}: not Standard, Committed or Dynamic")
    return instance, region, category, number(record.get("EffectiveCost"), "EffectiveCost"), hours


def _is_null(value: object) -> bool:
    """Return whether a cell is empty: FOCUS writes NULL, databases and spreadsheets other marks."""
    return value is None or str(value).strip().upper() in _NULLS


def _unit(value: object) -> tuple[float, str]:
    """Return the factor of a unit and its plain name: FOCUS allows `100 Hours`."""
    text = str(value or "").strip().lower()
    many = re.match(r"\d{1,9}(?=\s)", text)
    return float(many[0]) if many else 1.0, re.sub("[^a-z]", "", text)


def _instance(record: Record) -> InstanceType:
    for name in _INSTANCE_COLUMNS:
        words = list(_words(record.get(name)))
        if any(word.endswith(_BESIDE_MACHINES) for word in words):
            raise RejectedRowError("is an extra of a machine, not its hours (EBSOptimized)")
        for word in words:
            if (found := instance_type(word)) is not None:
                return found
    raise RejectedRowError("names no instance type with accelerators in the catalogue")


def _words(value: object) -> Iterator[str]:
    yield from _WORDS.findall(str(value or "")[:2000])


def charged_time(record: Record, name: str) -> datetime:
    """Return the time in a column of a row."""
    value = record.get(name)
    # BigQuery, which holds Google Cloud's bill, exports `2026-10-01 00:00:00 UTC`.
    text = str(value).strip().removesuffix(" UTC")
    try:
        found = value if isinstance(value, datetime) else datetime.fromisoformat(text)
    except ValueError as error:
        # Leave out the value, which differs between rows, so that they are reported together.
        raise RejectedRowError(f"{name} is not a time such as 2026-10-01T00:00:00Z") from error
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)
