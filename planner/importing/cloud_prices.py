"""Convert price lists of AWS, Azure and Google Cloud to offers of a fleet file.

Supported documents (November 2026):

* aws: the price list of AmazonEC2, an offer file (CSV or JSON) or the output of `aws pricing get-products`.
  Linux on shared tenancy, no capacity blocks; terms are standard reservations without upfront payment.
* azure: pages of the Retail Prices API (prices.azure.com/api/retail/prices) with `Items`. Prices of
  reservations cover the whole term, those of savings plans (`savingsPlan` of the preview version) one hour.
  Non-primary meters are never billed.
* gcp: pages of the Cloud Billing Catalog API with `skus` of Compute Engine. Google Cloud prices most machines
  by their parts, listed in cloud_prices.yaml. Local SSDs are not included.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, Final

from fleetplan.fleet.catalog.hardware_names import InstanceType, instance_type
from fleetplan.fleet.document.headers import check_header
from fleetplan.fleet.document.plain import read_yaml
from fleetplan.fleet.document.records import NumberedRecord, Table
from fleetplan.fleet.units import HOURS_PER_QUARTER, QUARTERS_PER_YEAR
from fleetplan.planner.importing.aws_products import product_rows, publication_date
from fleetplan.planner.importing.fragments import ImportedSupply, SupplyFragment, check_characters
from fleetplan.planner.importing.offers import MachinePrice, OfferOptions, take_prices
from fleetplan.planner.importing.records import Record, RejectedRowError, at, number, rows_of

NANO: Final = 1e-9

AWS_FIRST_COLUMN: Final = "SKU"
"""First column of the header of an offer file, which follows lines of metadata."""

AWS_COLUMNS: Final = ("TermType", "Unit", "PricePerUnit", "Currency", "Instance Type", "Region Code")
_AWS_SOLD: Final = {
    "Operating System": "Linux",
    "Tenancy": "Shared",
    "Pre Installed S/W": "NA",
    "CapacityStatus": "Used",
    "MarketOption": "OnDemand",
}
_SAVINGS_PLAN: Final = "SavingsPlan"
_YEARS: Final = {"1yr": 1, "3yr": 3, "1 Year": 1, "3 Years": 3, "5 Years": 5}


def aws_table_offers(table: Table, path: str, options: OfferOptions) -> ImportedSupply:
    """Return the offers of a CSV offer file of AmazonEC2.

    Raises
    ------
    InputError
        A column is missing.
    """
    check_header(path, table.columns, AWS_COLUMNS)
    dated = options.published(table.above.get("Publication Date"))
    return _offers(table.records, path, dated, _aws, "Price list of Amazon EC2")


def aws_offers(document: object, path: str, options: OfferOptions) -> ImportedSupply:
    """Return the offers of a JSON offer file, or of the output of `aws pricing get-products`."""
    dated = options.published(publication_date(document))
    return _offers(product_rows(document), path, dated, _aws, "Price list of Amazon EC2")


def azure_offers(document: object, path: str, options: OfferOptions) -> ImportedSupply:
    """Return the offers of pages of Azure's Retail Prices API."""
    return _offers(_azure_rows(document), path, options, _azure, "Retail prices of Azure")


def gcp_offers(document: object, path: str, options: OfferOptions) -> ImportedSupply:
    """Return the offers of pages of Google's Cloud Billing Catalog API."""
    fragment = SupplyFragment(path)
    parts: dict[_Part, tuple[float, int]] = {}
    for line, record in _pages(document, "skus"):
        try:
            for part, usd in _gcp_parts(record):
                parts[part] = usd, line
        except RejectedRowError as reason:
            fragment.reject(f"row {line}", str(reason))
    fragment.says.append(
        f"Cloud Billing Catalog of Google Cloud, {options.as_of}; without local SSDs; only spot prices "
        "for machines that only start as spot capacity (fleet/catalog/hardware_names.yaml)."
    )
    take_prices(fragment, _gcp_machines(parts, fragment, options), options)
    return fragment.done()


_Part = tuple[str, str, str, bool]
"""Machine family, part (accelerator, core or ram), region, and whether it is spot capacity."""

_Price = tuple[str, str, float, bool, int | None]
"""Machine, region, price [USD/h], whether it is spot capacity, and the term in quarters."""


def _offers(
    records: Iterator[NumberedRecord],
    path: str,
    options: OfferOptions,
    read: Callable[[Record], _Price],
    what: str,
) -> ImportedSupply:
    """Return the offers of rows that each state the price of a machine."""
    fragment = SupplyFragment(path)
    prices = []
    for line, record in records:
        try:
            machine, region, usd, spot, term = read(record)
            known, place = _instance(machine), options.region(fragment, region)
            if place is None or not options.wants(fragment, known.hardware):
                continue
            check_characters([("region", place)])
            if spot and options.spot_max_share is None:
                raise RejectedRowError("is spot capacity: give --spot-max-share")
            if term is not None and not options.terms:
                raise RejectedRowError("commits to a term: give --terms")
            size = known.hardware, known.accelerators
            prices.append(MachinePrice(machine, *size, place, usd, spot, term, (line,)))
        except RejectedRowError as reason:
            fragment.reject(f"row {line}", str(reason))
    fragment.says.append(f"{what}, {options.as_of}.")
    take_prices(fragment, prices, options)
    return fragment.done()


def _instance(machine: str) -> InstanceType:
    known = instance_type(machine)
    if known is None:
        raise RejectedRowError("is not an instance type with accelerators in the catalogue")
    return known


def _aws(record: Record) -> _Price:
    machine = str(record.get("Instance Type") or "")
    _instance(machine)
    for column, sold in _AWS_SOLD.items():
        if column in record and record[column] != sold:
            raise RejectedRowError(f"{column} is {record[column]}: only {sold} is accepted")
    _dollars(record.get("Currency"))
    term = None
    if record.get("TermType") == "Reserved":
        kind = f"{record.get('PurchaseOption')} {record.get('OfferingClass')}"
        if kind != "No Upfront standard":
            raise RejectedRowError(
                f"is a reservation of the kind {kind}: only No Upfront standard is accepted"
            )
        term = _term(record.get("LeaseContractLength"))
    if record.get("Unit") != "Hrs":
        raise RejectedRowError(f"is a price by {record.get('Unit')}, not by the hour")
    return (
        machine,
        str(record.get("Region Code") or ""),
        _positive(record.get("PricePerUnit"), "PricePerUnit"),
        False,
        term,
    )


def _azure(record: Record) -> _Price:
    machine = str(record.get("armSkuName") or "")
    _instance(machine)
    product, sku = str(record.get("productName") or ""), str(record.get("skuName") or "")
    if "Virtual Machines" not in product or "Windows" in product:
        raise RejectedRowError(
            f"{product or 'a product without a name'}: only virtual machines with Linux are accepted"
        )
    if record.get("isPrimaryMeterRegion") is False:
        raise RejectedRowError("belongs to a non-primary meter, which is never billed")
    _dollars(record.get("currencyCode"))
    if record.get("unitOfMeasure") != "1 Hour":
        raise RejectedRowError(f"is a price by {record.get('unitOfMeasure')}, not by the hour")
    usd, kind = _positive(record.get("retailPrice"), "retailPrice"), record.get("type")
    region, meter = str(record.get("armRegionName") or ""), str(record.get("meterName") or "")
    if kind == "Reservation":
        term = _term(record.get("reservationTerm"))
        return machine, region, usd / (term * HOURS_PER_QUARTER), False, term
    if kind == _SAVINGS_PLAN:
        return machine, region, usd, False, _term(record.get("term"))
    if kind != "Consumption" or any(name.endswith("Low Priority") for name in (sku, meter)):
        raise RejectedRowError(
            f"is a price of the kind {kind} {sku}: only consumption, spot and reservations are accepted"
        )
    return machine, region, usd, any(name.endswith("Spot") for name in (sku, meter)), None


def _azure_rows(document: object) -> Iterator[NumberedRecord]:
    """Yield the rows of all pages; each rate listed in the savings plan of a row becomes a row."""
    for position, record in _pages(document, "Items"):
        yield position, record
        plans = record.get("savingsPlan")
        for plan in plans if isinstance(plans, list) else []:
            if isinstance(plan, Mapping):
                yield position, {**record, **plan, "type": _SAVINGS_PLAN}


@cache
def _gcp_table() -> Mapping[str, Any]:
    text = (files("fleetplan.planner.importing") / "cloud_prices.yaml").read_text("utf-8")
    found: dict[str, Any] = read_yaml(text)
    return found


def _gcp_parts(record: Record) -> list[tuple[_Part, float]]:
    """Return the machine part of a SKU with its price, for each of its regions."""
    said, usage = str(record.get("description") or ""), at(record, "category", "usageType")
    if usage not in {"OnDemand", "Preemptible"}:
        raise RejectedRowError(f"has the usage type {usage}: only OnDemand and Preemptible are accepted")
    name = said.split(" running in ", maxsplit=1)[0].removesuffix(" attached to Spot Preemptible VMs")
    spot = (
        usage == "Preemptible"
        or name != said.split(" running in ", maxsplit=1)[0]
        or name.startswith("Spot Preemptible ")
    )
    name = name.removeprefix("Spot Preemptible ")
    places = [(family, part) for family, parts in _gcp_table().items()
              for part in ("accelerator", "core", "ram") if name in parts.get(part, ())]  # fmt: skip
    if not places:
        raise RejectedRowError("is not a part of a known machine with accelerators")
    price = at(record, "pricingInfo")
    expression = at(price[-1], "pricingExpression") if isinstance(price, list) and price else None
    rates = at(expression, "tieredRates") if isinstance(expression, Mapping) else None
    if not isinstance(rates, list) or not rates:
        raise RejectedRowError("has no tieredRates")
    unit = at(rates[-1], "unitPrice")
    if not isinstance(unit, Mapping):
        raise RejectedRowError("has no unitPrice")
    _dollars(unit.get("currencyCode"))
    usd = number(unit.get("units") or 0, "units") + NANO * number(unit.get("nanos") or 0, "nanos")
    regions = record.get("serviceRegions")
    return [((family, part, str(region), spot), usd) for family, part in places
            for region in (regions if isinstance(regions, list) else [])]  # fmt: skip


def _gcp_machines(
    parts: Mapping[_Part, tuple[float, int]], fragment: SupplyFragment, options: OfferOptions
) -> Iterator[MachinePrice]:
    """Yield the machines whose parts all have a price."""
    for (family, part, region, spot), (usd, line) in parts.items():
        if part != "accelerator":
            continue
        rule = _gcp_table()[family]
        known = [parts.get((family, name, region, spot)) for name in ("core", "ram") if name in rule]
        others = [each for each in known if each is not None]
        place = f"{rule['accelerator'][0]} in {region}"
        if len(others) < len(known):
            fragment.reject(place, "has no price for the cores or the memory of its machine")
            continue
        if spot and options.spot_max_share is None:
            fragment.reject(place, "is spot capacity: give --spot-max-share")
            continue
        amounts = [rule[name] for name in ("cores", "ram_gib") if name in rule]
        by_each = usd + sum(amount * price for amount, (price, _) in zip(amounts, others, strict=True))
        rows = (line, *(row for _, row in others))
        machines = [_instance(machine) for machine in rule["machines"]]
        named = options.region(fragment, region, len(rows))
        if named is None or not options.wants(fragment, machines[0].hardware, len(rows)):
            continue
        check_characters([("region", named)])
        for each in machines:
            if spot or not each.spot_only:
                size = each.hardware, each.accelerators
                yield MachinePrice(each.name, *size, named, by_each * each.accelerators, spot, None, rows)


def _documents(document: object) -> Sequence[object]:
    """Return the pages of a file: one, or a list of several."""
    return document if isinstance(document, list) else [document]


def _pages(document: object, key: str) -> Iterator[NumberedRecord]:
    """Yield the rows of all pages, numbered consecutively."""
    position = 0
    for page in _documents(document):
        for row in rows_of(page, (key,)):
            position += 1
            yield position, row if isinstance(row, Mapping) else {}


def _dollars(currency: object) -> None:
    if currency != "USD":
        raise RejectedRowError(f"is a price in {currency}, not in USD")


def _positive(value: object, what: str) -> float:
    found = number(value, what)
    if found == 0:
        raise RejectedRowError(f"{what} is 0: not a price")
    return found


def _term(length: object) -> int:
    if str(length) not in _YEARS:
        raise RejectedRowError(f"is for a term of {length}: {', '.join(_YEARS)} are known")
    return QUARTERS_PER_YEAR * _YEARS[str(length)]
