"""Cost of an accelerator-hour in a fleet."""

from __future__ import annotations

from dataclasses import replace

from fleetplan.fleet import tco
from fleetplan.fleet.inventory import Fleet, Hardware, Offer, Pool, Region
from fleetplan.fleet.inventory.periods import Calendar
from fleetplan.fleet.units import W_PER_KW
from fleetplan.planner.problem.capacity_costs import existing_pool_usd


def cheapest_usd_per_accelerator_hour(fleet: Fleet, hardware: Hardware) -> tuple[float, str]:
    """Return the lowest cost of an accelerator-hour in the first period, energy included, and its source.

    The cost of a pool or an offer in the period is spread over all its hours. Hardware without hosts and
    offers costs what a host in its pool would.
    """
    regions = {region.name: region for region in fleet.regions}
    pools = [pool for pool in fleet.pools if pool.hardware == hardware.name]
    found = [_pool_usd_per_hour(fleet, pool, hardware) for pool in pools if pool.hosts]
    for offer in fleet.offers:
        if offer.hardware != hardware.name:
            continue
        for region in (regions[name] for name in offer.regions):
            usd = _offer_usd_per_hour(offer, hardware, region, fleet.calendar)
            found.append((usd + _energy(hardware, region, offer.energy_included), f"offer {offer.name}"))
    usd, place = min(found or (_pool_usd_per_hour(fleet, replace(pool, hosts=1), hardware) for pool in pools))
    return usd, f"{usd:.3g} USD/h ({place}, energy included)"


def _pool_usd_per_hour(fleet: Fleet, pool: Pool, hardware: Hardware) -> tuple[float, str]:
    """Return the hourly cost of an existing card, energy included, and its pool. [USD/h]"""
    region = next(each for each in fleet.regions if each.name == pool.region)
    costs = existing_pool_usd(pool, hardware, region, fleet.periods, fleet.finance)
    included = pool.rented is not None and pool.rented.energy_included
    usd = sum(by_period[0] for by_period in costs.values()) / (pool.accelerators * fleet.calendar.hours)
    return usd + _energy(hardware, region, included), f"pool {pool.name}"


def _offer_usd_per_hour(offer: Offer, hardware: Hardware, region: Region, calendar: Calendar) -> float:
    """Return the hourly rent of a card, or write-off of a purchase with maintenance and hosting. [USD/h]"""
    power_kw = (hardware.installed_w_per_accelerator or 0.0) / W_PER_KW
    hosting = tco.hosting_usd(power_kw, region.hosting_usd_per_kw_month, calendar) / calendar.hours
    if offer.rent_usd_per_accelerator_hour is not None:
        return offer.rent_usd_per_accelerator_hour[0] + (0.0 if offer.energy_included else hosting)
    if offer.capex_usd_per_host is None:
        raise ValueError(f"offer {offer.name!r} has no price")
    # Average over its life, ignoring values by age.
    usd = tco.write_off_usd(offer.capex_usd_per_host, offer.life_periods, 0, offer.residual_ratio)
    usd += tco.maintenance_usd(offer.capex_usd_per_host, offer.maintenance_ratio_per_year, calendar)
    return usd / (offer.accelerators_per_unit * calendar.hours) + hosting


def _energy(hardware: Hardware, region: Region, included: bool) -> float:
    power_w = hardware.installed_w_per_accelerator
    if included or power_w is None or region.energy_usd_per_kwh is None:
        return 0.0
    return power_w / W_PER_KW * region.pue * region.energy_usd_per_kwh[0]
