"""Resolve regions and pools: names, prices, and values by period."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from fleetplan.fleet.document import KeyPath
from fleetplan.fleet.inventory import Hardware, Owned, Pool, Region, Rented
from fleetplan.fleet.resolve.calendar import period_index, periods_of_quarters
from fleetplan.fleet.resolve.context import Context
from fleetplan.fleet.resolve.finance import resolve_residual
from fleetplan.fleet.resolve.supply.prices import PriceBook
from fleetplan.fleet.schema.supply import OwnedSpec, PoolSpec, RegionSpec, RentedSpec

# Default region of a file without regions.
DEFAULT_REGION: Final = "default"
# Default PUE, without effect unless power or energy counts.
PUE_WITHOUT_EFFECT: Final = 1.0


def resolve_regions(context: Context, block: Mapping[str, RegionSpec] | None) -> tuple[Region, ...]:
    """Return the regions in the order of the file."""
    if block is None:
        return (Region(DEFAULT_REGION, None, PUE_WITHOUT_EFFECT, None, 0.0),)
    return tuple(_region(context, ("regions", name), name, spec) for name, spec in block.items())


def _region(context: Context, key_path: KeyPath, name: str, spec: RegionSpec) -> Region:
    counting = (spec.power_kw, spec.energy_usd_per_kwh, spec.grid_kg_co2_per_kwh)
    if spec.pue is None and any(value is not None for value in counting):
        context.error(
            (*key_path, "pue"),
            "is required because power, energy or carbon counts here",
            "facility power over IT power, such as 1.15; 1.0 if both are metered at the hosts",
        )
    return Region(
        name=name,
        power_kw=context.numbers((*key_path, "power_kw"), spec.power_kw),
        pue=PUE_WITHOUT_EFFECT if spec.pue is None else spec.pue,
        energy_usd_per_kwh=context.numbers((*key_path, "energy_usd_per_kwh"), spec.energy_usd_per_kwh),
        hosting_usd_per_kw_month=spec.hosting_usd_per_kw_month,
        grid_kg_co2_per_kwh=context.numbers((*key_path, "grid_kg_co2_per_kwh"), spec.grid_kg_co2_per_kwh),
    )


def resolve_pools(
    context: Context,
    specs: Sequence[tuple[int, PoolSpec]],
    hardware: Mapping[str, Hardware],
    prices: PriceBook,
) -> tuple[Pool, ...]:
    """Return the valid pools; mistakes of the others go to the context."""
    pools = (_pool(context, ("pools", i), spec, hardware, prices) for i, spec in specs)
    return tuple(pool for pool in pools if pool is not None)


def _pool(
    context: Context, key_path: KeyPath, spec: PoolSpec, hardware: Mapping[str, Hardware], prices: PriceBook
) -> Pool | None:
    region = context.region(key_path, spec.region)
    known = context.check_hardware((*key_path, "hardware"), spec.hardware)
    if (spec.hosts is None) == (spec.accelerators is None):
        context.error(key_path, "needs exactly one of hosts, accelerators")
    if spec.owned is not None and spec.accelerators is not None:
        context.error(key_path, "an owned pool is counted in hosts", "give hosts instead of accelerators")
    for name in ("reserve_hosts", "reserve_percent"):
        if getattr(spec, name) is not None and spec.accelerators is not None:
            message = "cannot be combined with accelerators"
            context.error((*key_path, name), message, "single accelerators have no reserve")
    if spec.reserve_hosts is not None and spec.reserve_percent is not None:
        context.error(
            (*key_path, "reserve_percent"), "cannot be combined with reserve_hosts", "give one of the two"
        )
    if (spec.owned is None) == (spec.rented is None):
        message = "has no price" if spec.owned is None else "has two prices"
        hint = "exactly one of owned {capex_usd_per_host}, rented {usd_per_accelerator_hour}"
        context.error(key_path, f"{message}: needs {hint}", prices.hint(spec.hardware) if known else "")
    rented = (
        None
        if spec.rented is None
        else _rented(context, (*key_path, "rented"), spec.hardware, spec.rented, prices)
    )
    owned = None if spec.owned is None else _owned(context, (*key_path, "owned"), spec.owned)
    if region is None or spec.hardware not in hardware:
        return None
    by_host = spec.hosts is not None
    return Pool(
        name=spec.name,
        region=region,
        hardware=spec.hardware,
        hosts=spec.hosts if spec.hosts is not None else spec.accelerators or 0,
        accelerators_per_host=hardware[spec.hardware].accelerators_per_host if by_host else 1,
        owned=owned,
        rented=rented,
        maintenance_hosts=_maintenance(context, key_path, spec),
        # Single accelerators need no reserve, because the provider replaces them.
        reserve_hosts=spec.reserve_hosts if by_host else 0,
        reserve_percent=spec.reserve_percent if by_host else None,
    )


def _check_retirement(context: Context, key_path: KeyPath, spec: OwnedSpec) -> None:
    """Note retirements without a known book value, or after the horizon."""
    if spec.resale_usd_per_host is None and spec.end_of_life is None:
        return
    last = context.calendar.index(context.periods[-1])
    if last is None:
        place = "end_of_life" if spec.resale_usd_per_host is None else "resale_usd_per_host"
        context.error((*key_path, place), "needs quarters or months as periods, such as 2027Q1")
    elif spec.in_service is None:
        message = "is required for the book value of hosts that may retire"
        context.error((*key_path, "in_service"), message, "the first quarter in service, such as 2025Q3")
    end = period_index(context, (*key_path, "end_of_life"), spec.end_of_life)
    if end is not None and last is not None and end > last:
        context.warn((*key_path, "end_of_life"), f"{spec.end_of_life} is after the horizon")


def _maintenance(context: Context, key_path: KeyPath, spec: PoolSpec) -> tuple[int, ...]:
    """Return the hosts out of service by period; empty for none."""
    if not spec.maintenance_hosts:
        return ()
    here = (*key_path, "maintenance_hosts")
    context.check_periods(here, spec.maintenance_hosts)
    hosts = spec.hosts if spec.hosts is not None else spec.accelerators or 0
    for period, out in spec.maintenance_hosts.items():
        if out > hosts:
            context.error((*here, period), f"{out} of {hosts} are out of service", f"at most {hosts}")
    may_leave = spec.owned is not None and (
        spec.owned.resale_usd_per_host is not None or spec.owned.end_of_life
    )
    if may_leave or (spec.rented is not None and spec.rented.lease_end):
        hint = "split the pool: one part that may retire, one that is maintained"
        context.error(here, "cannot be combined with hosts that may retire", hint)
    return tuple(spec.maintenance_hosts.get(period, 0) for period in context.periods)


def _owned(context: Context, key_path: KeyPath, spec: OwnedSpec) -> Owned:
    _check_retirement(context, key_path, spec)
    if spec.in_service is not None:
        first = context.calendar.index(context.periods[0])
        start = period_index(context, (*key_path, "in_service"), spec.in_service)
        if first is None:
            message = f"the period {context.periods[0]!r} has no date, so every period is charged"
            context.warn((*key_path, "in_service"), message)
        elif start is not None and start > first:
            context.error(
                (*key_path, "in_service"),
                f"{spec.in_service} is after the first period {context.periods[0]}",
                "hardware that arrives later is an offer with a lead time",
            )
    here = (*key_path, "residual_ratio")
    residual_ratio, value_by_age = resolve_residual(context, here, spec.residual_ratio, spec.life_quarters)
    if value_by_age and spec.in_service is None:
        context.error((*key_path, "in_service"), "is required for values by age", "such as 2025Q3")
    return Owned(
        capex_usd_per_host=spec.capex_usd_per_host,
        in_service=spec.in_service,
        life_periods=periods_of_quarters(context, spec.life_quarters),
        maintenance_ratio_per_year=spec.maintenance_ratio_per_year,
        residual_ratio=residual_ratio,
        value_by_age=value_by_age,
        price_as_of=spec.price_as_of,
        resale_usd_per_host=context.numbers((*key_path, "resale_usd_per_host"), spec.resale_usd_per_host),
        end_of_life=spec.end_of_life,
    )


def _rented(
    context: Context, key_path: KeyPath, hardware: str, spec: RentedSpec, prices: PriceBook
) -> Rented | None:
    if (spec.usd_per_accelerator_hour is None) == (spec.price_book is None):
        message = "needs exactly one of usd_per_accelerator_hour, price_book"
        context.error(key_path, message, prices.hint(hardware))
        return None
    rent, source = prices.rent(
        (*key_path, "usd_per_accelerator_hour"), hardware, spec.usd_per_accelerator_hour, spec.price_book
    )
    _check_lease_end(context, (*key_path, "lease_end"), spec.lease_end)
    included = energy_included(spec.energy_included, spec.price_book)
    as_of = prices.as_of(context, key_path, hardware, spec.price_as_of, spec.price_book)
    return None if rent is None else Rented(rent, included, source, as_of, spec.lease_end)


def _check_lease_end(context: Context, key_path: KeyPath, lease_end: str | None) -> None:
    """Note a lease that ends before the horizon, or whose end has no place among its periods."""
    end = period_index(context, key_path, lease_end)
    if end is None:
        return
    first = context.calendar.index(context.periods[0])
    if first is None:
        context.error(key_path, "needs quarters or months as periods, such as 2027Q1")
    elif end <= first:
        message = f"{lease_end} is not after the first period {context.periods[0]}"
        context.error(key_path, message, "leave out a pool that is gone")


def energy_included(stated: bool | None, column: str | None) -> bool:
    """Return whether a rent includes energy and hosting.

    Parameters
    ----------
    stated : bool or None
        Value in the file.
    column : str or None
        Column of the price book with the rent.
    """
    # All columns of the price book include running costs; a rent in the file states whether it does.
    return stated if stated is not None else column is not None
