"""Resolve offers: names, prices, and values by period."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fleetplan.fleet.document import KeyPath
from fleetplan.fleet.inventory import Hardware, Offer
from fleetplan.fleet.resolve.calendar import periods_of_quarters, stated_periods
from fleetplan.fleet.resolve.context import Context
from fleetplan.fleet.resolve.finance import resolve_residual
from fleetplan.fleet.resolve.supply.pools import energy_included
from fleetplan.fleet.resolve.supply.prices import PriceBook
from fleetplan.fleet.schema.supply import OfferSpec


def resolve_offers(
    context: Context,
    specs: Sequence[tuple[int, OfferSpec]],
    hardware: Mapping[str, Hardware],
    prices: PriceBook,
) -> tuple[Offer, ...]:
    """Return the valid offers; mistakes of the others go to the context."""
    offers = (_offer(context, ("offers", i), spec, hardware, prices) for i, spec in specs)
    return tuple(offer for offer in offers if offer is not None)


def _offer(
    context: Context, key_path: KeyPath, spec: OfferSpec, hardware: Mapping[str, Hardware], prices: PriceBook
) -> Offer | None:
    known = context.check_hardware((*key_path, "hardware"), spec.hardware)
    regions = _offer_regions(context, key_path, spec)
    _check_rental(context, key_path, spec)
    rent, source = _offer_price(context, key_path, spec, prices, known=known)
    if spec.capex_usd_per_host is not None and spec.energy_included:
        context.error((*key_path, "energy_included"), "applies to rent, not to a purchase", "leave it out")
    if spec.capex_usd_per_host is None and spec.residual_ratio:
        context.error((*key_path, "residual_ratio"), "applies to a purchase, not to rent", "leave it out")
    lead_key = "lead_time_quarters" if spec.lead_time_months is None else "lead_time_months"
    lead_time = stated_periods(
        context, key_path, "lead_time", spec.lead_time_quarters, spec.lead_time_months, up=True
    )
    term = stated_periods(context, key_path, "term", spec.term_quarters, spec.term_months, up=False)
    if (lead_time or 0) >= len(context.periods):
        context.warn((*key_path, lead_key), "nothing ordered arrives within the horizon")
    max_units = _max_units(context, key_path, spec)
    if spec.hardware not in hardware:
        return None
    part = hardware[spec.hardware]
    residual_ratio, value_by_age = resolve_residual(
        context, (*key_path, "residual_ratio"), spec.residual_ratio, spec.life_quarters
    )
    return Offer(
        name=spec.name,
        hardware=spec.hardware,
        regions=regions,
        unit=spec.per,
        accelerators_per_unit=part.accelerators_per_host if spec.per == "host" else 1,
        capex_usd_per_host=spec.capex_usd_per_host,
        rent_usd_per_accelerator_hour=rent,
        energy_included=rent is not None and energy_included(spec.energy_included, spec.price_book),
        lead_time_periods=lead_time or 0,
        max_units=max_units,
        life_periods=periods_of_quarters(context, spec.life_quarters),
        maintenance_ratio_per_year=spec.maintenance_ratio_per_year,
        price_source=source,
        residual_ratio=residual_ratio,
        value_by_age=value_by_age,
        price_as_of=prices.as_of(context, key_path, spec.hardware, spec.price_as_of, spec.price_book),
        term_periods=term or 1,
        lot_units=(spec.lot_hosts if spec.per == "host" else spec.lot_accelerators) or 1,
        spot_max_share=spec.max_share if spec.spot else None,
    )


def _check_rental(context: Context, key_path: KeyPath, spec: OfferSpec) -> None:
    """Note keys that do not apply to the kind of offer."""
    if spec.capex_usd_per_host is not None:
        given = {
            "term_quarters": spec.term_quarters,
            "term_months": spec.term_months,
            "spot": spec.spot or None,
        }
        for key, value in given.items():
            if value is not None:
                context.error((*key_path, key), "applies to rent, not to a purchase", "leave it out")
    wrong, lot = (
        ("lot_accelerators", spec.lot_accelerators) if spec.per == "host" else ("lot_hosts", spec.lot_hosts)
    )
    if lot is not None:
        context.error(
            (*key_path, wrong), f"cannot be combined with `per: {spec.per}`", f"use lot_{spec.per}s"
        )
    if spec.spot and spec.max_share is None:
        hint = "largest share of a service that may be lost at once, such as 0.3"
        context.error(
            (*key_path, "max_share"), "is required for spot capacity, which the provider may reclaim", hint
        )
    if spec.max_share is not None and not spec.spot:
        context.error((*key_path, "max_share"), "applies to spot capacity only", "add spot: true")
    for key, term in (("term_quarters", spec.term_quarters), ("term_months", spec.term_months)):
        if spec.spot and (term or 1) > 1:
            context.error((*key_path, key), "cannot be combined with spot", "leave it out")


def _offer_regions(context: Context, key_path: KeyPath, spec: OfferSpec) -> tuple[str, ...]:
    if spec.regions is None:
        region = context.region(key_path, None, "regions")
        return () if region is None else (region,)
    for i, name in enumerate(spec.regions):
        here = (*key_path, "regions", i)
        if context.check_name(here, "region", name, context.region_names) and name in spec.regions[:i]:
            context.error(here, f"the region {name!r} is given twice")
    return tuple(spec.regions)


def _offer_price(
    context: Context, key_path: KeyPath, spec: OfferSpec, prices: PriceBook, *, known: bool
) -> tuple[tuple[float, ...] | None, str]:
    given = {
        "capex_usd_per_host": spec.capex_usd_per_host,
        "rent_usd_per_accelerator_hour": spec.rent_usd_per_accelerator_hour,
        "price_book": spec.price_book,
    }
    named = [key for key, value in given.items() if value is not None]
    if len(named) != 1:
        message = "has no price" if not named else f"has {len(named)} prices ({', '.join(named)})"
        hint = prices.hint(spec.hardware) if known else ""
        context.error(key_path, f"{message}: needs exactly one of {', '.join(given)}", hint)
        return None, ""
    if spec.capex_usd_per_host is not None:
        if spec.per == "accelerator":
            context.error(
                (*key_path, "capex_usd_per_host"), "a purchase is counted in hosts", "leave out `per`"
            )
        return None, context.source((*key_path, "capex_usd_per_host"))
    if not known:
        return None, ""
    return prices.rent(
        (*key_path, "rent_usd_per_accelerator_hour"),
        spec.hardware,
        spec.rent_usd_per_accelerator_hour,
        spec.price_book,
    )


def _max_units(context: Context, key_path: KeyPath, spec: OfferSpec) -> tuple[int | None, ...]:
    by_host = spec.per == "host"
    key, value = ("max_hosts", spec.max_hosts) if by_host else ("max_accelerators", spec.max_accelerators)
    wrong_key, wrong = (
        ("max_accelerators", spec.max_accelerators) if by_host else ("max_hosts", spec.max_hosts)
    )
    if wrong is not None:
        message = f"cannot be combined with `per: {spec.per}`"
        context.error((*key_path, wrong_key), message, f"use {key}", at_key=True)
    if value is None or isinstance(value, int):
        return (value,) * len(context.periods)
    context.check_periods((*key_path, key), value)
    without = [period for period in context.stated if period not in value]
    if without:
        context.warn((*key_path, key), f"has no value for {', '.join(without)}: no supply there")
    return context.extended([value.get(period, 0) for period in context.stated])
