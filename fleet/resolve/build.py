"""Build the fleet from a fleet file, with every mistake in one list."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

from fleetplan.fleet.catalog import accelerators
from fleetplan.fleet.document import Document, KeyPath
from fleetplan.fleet.errors import InputError, Issue
from fleetplan.fleet.inventory import Fleet, Hardware, Offer, Pool, Region, Service
from fleetplan.fleet.inventory.periods import DEFAULT_PERIOD
from fleetplan.fleet.resolve.calendar import calendar_of, check_periods, periods_of_extension
from fleetplan.fleet.resolve.catalogue_names import with_catalogue_names
from fleetplan.fleet.resolve.context import Context
from fleetplan.fleet.resolve.finance import resolve_finance
from fleetplan.fleet.resolve.network import (
    resolve_kv_links,
    resolve_kv_pairs,
    resolve_round_trips,
    with_home_preference,
    with_serving_regions,
)
from fleetplan.fleet.resolve.objectives import check_objective, first_objective
from fleetplan.fleet.resolve.policy import resolve_budget, resolve_policy
from fleetplan.fleet.resolve.services.defaults import with_service_defaults
from fleetplan.fleet.resolve.services.service import resolve_services
from fleetplan.fleet.resolve.slices_and_scenarios import (
    resolve_day_shapes,
    resolve_scenarios,
    resolve_slices,
    scenarios_that_differ,
)
from fleetplan.fleet.resolve.supply.hardware import resolve_hardware
from fleetplan.fleet.resolve.supply.offers import resolve_offers
from fleetplan.fleet.resolve.supply.pools import DEFAULT_REGION, resolve_pools, resolve_regions
from fleetplan.fleet.resolve.supply.prices import PriceBook
from fleetplan.fleet.resolve.thousands import warn_of_thousands
from fleetplan.fleet.schema import FleetSpec, Parsed, parse
from fleetplan.fleet.schema.fleet import ServiceSpec
from fleetplan.fleet.tables import once_per_table

if TYPE_CHECKING:
    import pandas as pd


class _Named(Protocol):
    @property
    def name(self) -> str: ...


_ItemT = TypeVar("_ItemT", bound=_Named)


def build_fleet(document: Document) -> Fleet:
    """Return the fleet of a document that already includes its scenarios.

    Raises
    ------
    InputError
        With every mistake of the document.
    """
    document = with_service_defaults(document)
    parsed = parse(document)
    if parsed.spec is None:
        raise InputError(_in_order(parsed.issues))
    spec = parsed.spec
    context = Context(
        document=document,
        periods=(DEFAULT_PERIOD,) if spec.horizon is None else tuple(dict.fromkeys(spec.horizon.periods)),
        calendar=calendar_of(spec.horizon),
        region_names=_names(document, "regions") or (DEFAULT_REGION,),
        hardware_names=tuple(dict.fromkeys((*accelerators(), *_names(document, "hardware")))),
    )
    check_periods(context, spec.horizon)
    if context.issues:
        # Without the periods, what names them is wrong as well, and its nearest match is none.
        raise InputError(_in_order([*parsed.issues, *context.issues]))
    _extend(context, spec)
    warn_of_thousands(context)
    fleet = _resolve(context, parsed, with_catalogue_names(context, spec))
    issues = [*parsed.issues, *(issue for issue in context.issues if not _follows(issue, parsed.issues))]
    if issues:
        raise InputError(_in_order(issues))
    return fleet


def _extend(context: Context, spec: FleetSpec) -> None:
    """Add the periods of an extension of the horizon."""
    extend = None if spec.horizon is None else spec.horizon.extend_quarters
    added = periods_of_extension(context, extend, spec.offers)
    if added and context.calendar.gap(context.periods) is None:
        names = tuple(context.calendar.after(context.periods, count + 1) for count in range(added))
        context.periods, context.extended_by = (*context.periods, *names), added


def _follows(issue: Issue, earlier: Sequence[Issue]) -> bool:
    """Whether an issue is about a value that is known to be invalid, or about a part of it."""
    around = f"{issue.key_path}."
    return any(f"{known.key_path}.".startswith(around) for known in earlier)


def _resolve(context: Context, parsed: Parsed, spec: FleetSpec) -> Fleet:
    document = context.document
    service_names = _item_names(document, "services")
    classes = [name for each in spec.services for name in _class_names(each)]
    slices, day_kinds = (
        (None, None) if spec.horizon is None else (spec.horizon.slices, spec.horizon.day_kinds)
    )
    context.slices = resolve_slices(context, slices, day_kinds, classes)
    first_hour = 0.0 if spec.horizon is None else spec.horizon.first_slice_utc_hour
    context.day_shapes = resolve_day_shapes(context, spec.day_shapes, spec.regions, first_hour)
    context.scenarios = resolve_scenarios(context, spec.uncertainty, service_names)
    regions = resolve_regions(context, spec.regions)
    hardware = resolve_hardware(context, spec.hardware)
    prices = PriceBook(context, spec.hardware)
    pools = resolve_pools(context, _numbered(context, parsed, "pools", spec.pools), hardware, prices)
    offers = resolve_offers(context, _numbered(context, parsed, "offers", spec.offers), hardware, prices)
    regions = resolve_round_trips(context, spec, regions)
    numbered = _numbered(context, parsed, "services", spec.services)
    services = with_serving_regions(context, numbered, regions, resolve_services(context, numbered))
    services = with_home_preference(context, numbered, spec.policy, services)
    scenarios = scenarios_that_differ(context, spec.uncertainty, services)
    _check_blocks(context)
    used = _used_hardware(hardware, pools, offers, services)
    calibration = None
    if spec.calibration is not None:
        calibration = context.readable_file(("calibration",), spec.calibration)
    _warn_of_lifecycles(context, used, offers)
    _warn_of_allowed_regions(context, spec, services)
    _check_power(context, regions, used, pools, offers, services)
    check_objective(context, spec, used, services)
    objective = first_objective(context, spec, bool(scenarios))
    # The fleet copies the warnings below.
    charged = resolve_finance(context, spec.finance)
    return Fleet(
        name=spec.name if spec.name is not None else document.path.stem,
        path=document.path,
        periods=context.periods,
        regions=regions,
        hardware=used,
        pools=pools,
        offers=offers,
        services=services,
        policy=replace(
            resolve_policy(context, spec.policy, service_names),
            kv_pairs=resolve_kv_pairs(context, spec, used),
        ),
        budget=resolve_budget(context, spec.budget),
        objective=objective,
        warnings=tuple(dict.fromkeys(context.warnings)),
        input_hashes=_relative({**document.hashes, **context.hashes}, document.path.parent),
        calibration=calibration,
        finance=charged,
        slices=context.slices,
        demand_scenarios=scenarios,
        demand_objective="expected-cost" if spec.uncertainty is None else spec.uncertainty.objective,
        kv_links=resolve_kv_links(context, spec, pools),
        extended_by=context.extended_by,
    )


def _check_blocks(context: Context) -> None:
    """Note empty blocks, and a file without hardware."""
    root = context.document.root
    for block in ("regions", "services"):
        written = root.child(block)
        if written is not None and not written.entries and not written.items:
            context.error((block,), "must not be empty")
    if not root.child("pools") and not root.child("offers"):
        context.error((), "there are no pools and no offers", "a service needs hardware to run on")


def _warn_of_allowed_regions(context: Context, spec: FleetSpec, services: Sequence[Service]) -> None:
    """Warn of `regions` that limit a service without effect."""
    for service in services:
        kept = service.name in spec.policy.survive_region_loss or service.serve_from
        if service.allowed_regions is not None and not kept:
            place: KeyPath = ("services", _position(context, "services", service.name), "regions")
            context.warn(place, "has no effect: neither serve_from nor policy.survive_region_loss moves it")


def _names(document: Document, block: str) -> tuple[str, ...]:
    node = document.root.child(block)
    return () if node is None else tuple(node.entries)


def _item_names(document: Document, block: str) -> tuple[str, ...]:
    """Return the names in a list of blocks, broken items included."""
    written = document.root.child(block)
    return () if written is None else tuple(item.name for item in written.items if item.name)


def _class_names(spec: ServiceSpec) -> tuple[str, ...]:
    return () if spec.workload is None else tuple(spec.workload.classes or ())


def _numbered(
    context: Context, parsed: Parsed, block: str, specs: Sequence[_ItemT]
) -> list[tuple[int, _ItemT]]:
    """Return the items with their positions in the file; note duplicate names."""
    numbered = list(zip(parsed.positions.get(block, ()), specs, strict=True))
    first: dict[str, int] = {}
    for position, item in numbered:
        if item.name in first:
            line = context.document.place((block, first[item.name])).line
            message = f"the name {item.name!r} is given twice in {block}"
            context.error((block, position, "name"), message, f"first given in line {line}")
        first.setdefault(item.name, position)
    return numbered


def _used_hardware(
    hardware: Mapping[str, Hardware],
    pools: Sequence[Pool],
    offers: Sequence[Offer],
    services: Sequence[Service],
) -> dict[str, Hardware]:
    names = [pool.hardware for pool in pools] + [offer.hardware for offer in offers]
    in_table = once_per_table(lambda table: [str(name) for name in table["hardware"]])
    for service in services:
        if service.engines is not None:
            names += in_table(service.engines)
        names += service.allowed_hardware or ()
    return {name: hardware[name] for name in dict.fromkeys(names) if name in hardware}


def _tables(services: Sequence[Service]) -> list[pd.DataFrame]:
    """Return the engine tables of services, each once: thousands may name the same one."""
    tables = (service.engines for service in services if service.engines is not None)
    return list({id(table): table for table in tables}.values())


def _warn_of_lifecycles(context: Context, hardware: Mapping[str, Hardware], offers: Sequence[Offer]) -> None:
    for offer in offers:
        part = hardware[offer.hardware].accelerator
        if part is not None and part.lifecycle != "stable":
            place = ("offers", _position(context, "offers", offer.name), "hardware")
            context.warn(place, f"{offer.hardware} is {part.lifecycle}")


def _check_power(
    context: Context,
    regions: Sequence[Region],
    hardware: Mapping[str, Hardware],
    pools: Sequence[Pool],
    offers: Sequence[Offer],
    services: Sequence[Service],
) -> None:
    """Reject hardware without a power figure if power, energy or carbon counts."""
    limited = {
        region.name
        for region in regions
        if region.power_kw is not None or region.grid_kg_co2_per_kwh is not None
    }
    charged = {
        region.name
        for region in regions
        if region.energy_usd_per_kwh is not None or region.hosting_usd_per_kw_month > 0
    }
    stated = {
        str(name)
        for table in _tables(services)
        for name, has_power in zip(table["hardware"], table["power_kw"].notna(), strict=True)
        if has_power
    }
    placed = [
        (
            "pools",
            pool.name,
            pool.hardware,
            {pool.region},
            pool.rented is not None and pool.rented.energy_included,
        )
        for pool in pools
    ]
    placed += [
        ("offers", offer.name, offer.hardware, set(offer.regions), offer.energy_included) for offer in offers
    ]
    reported: set[str] = set()
    for block, item, name, places, included in placed:
        metered = places & (limited if included else limited | charged)
        known = name in stated or name not in hardware or hardware[name].power_w_per_accelerator is not None
        if known or name in reported or not metered:
            continue
        reported.add(name)
        message = (
            f"{name} has no power figure, and power, energy or carbon counts in {', '.join(sorted(metered))}"
        )
        hint = f"give hardware.{name}.all_in_w"
        context.error((block, _position(context, block, item), "hardware"), message, hint)


def _position(context: Context, block: str, name: str) -> int:
    written = context.document.root.child(block)
    assert written is not None, "the item was read from this block"
    return [item.name for item in written.items].index(name)


def _relative(hashes: Mapping[str, str], folder: Path) -> dict[str, str]:
    return {Path(os.path.relpath(name, folder)).as_posix(): value for name, value in hashes.items()}


def _in_order(issues: Sequence[Issue]) -> list[Issue]:
    files = list(dict.fromkeys(issue.path for issue in issues))
    # A mistake in `service_defaults` occurs in every service that uses it; report it once.
    first: dict[tuple[object, ...], Issue] = {}
    for issue in issues:
        first.setdefault((issue.path, issue.line, issue.column, issue.message, issue.hint), issue)
    return sorted(first.values(), key=lambda issue: (files.index(issue.path), issue.line, issue.column))
