"""What capacity and energy cost in each period of a plan, by kind, from the formulas in fleet/tco.py.

Kinds are depreciation, rent, hosting and maintenance; energy follows the traffic and is priced apart.
Where a rent includes energy it includes hosting too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fleetplan.fleet import tco
from fleetplan.fleet.inventory import Hardware, Offer, Pool, Region

CostKinds = Mapping[str, tuple[float, ...]]
"""USD by kind of cost; one figure a period."""


def existing_pool_usd(pool: Pool, hardware: Hardware, region: Region, periods: Sequence[str]) -> CostKinds:
    """Cost of what stands in a pool already, by kind and period, used or not. [USD]"""
    every = range(len(periods))
    if pool.rented is not None:
        rent = tuple(tco.rent_usd(pool.rented.usd_per_accelerator_hour[q], pool.accelerators) for q in every)
        charged = 0.0 if pool.rented.energy_included else _hosting_usd(hardware, region, pool.accelerators)
        return {"rent": rent, "hosting": tuple(charged for _ in every)}
    if pool.owned is None:
        raise ValueError(f"pool {pool.name!r} has no price")
    write_off = tco.owned_write_off_usd(pool.owned, periods)
    yearly = pool.owned.maintenance_ratio_per_year
    maintenance = pool.hosts * tco.maintenance_usd(pool.owned.capex_usd_per_host, yearly)
    hosting = _hosting_usd(hardware, region, pool.accelerators)
    return {
        "depreciation": tuple(pool.hosts * usd for usd in write_off),
        "hosting": tuple(hosting for _ in every),
        "maintenance": tuple(maintenance for _ in every),
    }


def acquisition_usd(offer: Offer, hardware: Hardware, region: Region, periods: Sequence[str]) -> CostKinds:
    """Cost of one unit over the horizon, by kind and by the period of its order or use. [USD]

    A purchase costs its write-off, hosting and maintenance in every period from its arrival to the end of
    the horizon; rent costs the one period that it is held for.
    """
    every = range(len(periods))
    cards = offer.accelerators_per_unit
    hosting = 0.0 if offer.energy_included else _hosting_usd(hardware, region, cards)
    if offer.rent_usd_per_accelerator_hour is not None:
        rent = tuple(tco.rent_usd(offer.rent_usd_per_accelerator_hour[q], cards) for q in every)
        return {"rent": rent, "hosting": tuple(hosting for _ in every)}
    if offer.capex_usd_per_host is None:
        raise ValueError(f"offer {offer.name!r} has no price")
    maintenance = tco.maintenance_usd(offer.capex_usd_per_host, offer.maintenance_ratio_per_year)
    in_service = [max(0, len(periods) - q - offer.lead_time_quarters) for q in every]
    return {
        "depreciation": tuple(sum(tco.purchase_write_off_usd(offer, q, len(periods))) for q in every),
        "hosting": tuple(count * hosting for count in in_service),
        "maintenance": tuple(count * maintenance for count in in_service),
    }


def energy_usd_per_kw(region: Region, n_periods: int, included: bool) -> tuple[float, ...]:
    """Cost of one kW of IT load over each period; 0 where rent includes it or energy has no price. [USD]"""
    if included or region.energy_usd_per_kwh is None:
        return (0.0,) * n_periods
    return tuple(tco.energy_usd(1.0, region.pue, price, 1.0) for price in region.energy_usd_per_kwh)


def _hosting_usd(hardware: Hardware, region: Region, accelerators: int) -> float:
    """Hosting of installed accelerators for one period; 0 where their power is not known. [USD]"""
    if hardware.power_w_per_accelerator is None:
        return 0.0
    power_kw = tco.it_power_kw(hardware.power_w_per_accelerator, accelerators)
    return tco.hosting_usd(power_kw, region.hosting_usd_per_kw_month)
