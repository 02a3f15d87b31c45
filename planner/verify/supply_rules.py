"""Pools and offers of the fleet file: units in service by period, and allowed retirements.

Names and sizes of pools come from the problem; all other figures are read from the fleet again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from fleetplan.fleet.inventory import Fleet, Hardware, Offer, Pool, Region
from fleetplan.planner.problem import Problem
from fleetplan.planner.verify.packing import fewest_units


@dataclass(frozen=True, slots=True)
class FleetPool:
    """A pool with its data from the fleet file.

    Attributes
    ----------
    name : str
        Name in placements.
    region : Region
        Region of the pool.
    hardware : Hardware
        Hardware of the pool.
    accelerators_per_unit : int
        Accelerators of one host, pod or single accelerator, into which replicas are packed.
    reserve_units : int
        Units kept free for repair while the pool is in use.
    reserve_percent : Fraction
        Reserve as a percentage of the units in use, rounded up. [%]
    existing : Pool or None
        Installed hosts; None for a pool filled only by offers.
    offers : Mapping[str, Offer]
        Offers that can add units, by name.
    """

    name: str
    region: Region
    hardware: Hardware
    accelerators_per_unit: int
    reserve_units: int
    reserve_percent: Fraction
    existing: Pool | None
    offers: Mapping[str, Offer]

    @property
    def existing_units(self) -> int:
        """Installed units."""
        return 0 if self.existing is None else self.existing.hosts

    @property
    def energy_included(self) -> bool:
        """Return whether rent includes energy and hosting for this pool."""
        if self.existing is not None:
            return self.existing.rented is not None and self.existing.rented.energy_included
        return any(offer.energy_included for offer in self.offers.values())

    @property
    def spot_max_share(self) -> float | None:
        """Maximum share of a service in this pool, if it is spot capacity."""
        if self.existing is not None:
            return None
        return next((offer.spot_max_share for offer in self.offers.values()), None)

    def kept_units(self, sizes: Counter[int]) -> int:
        """Return the units kept free while replicas of these sizes run. [units]"""
        if not self.reserve_percent:
            return self.reserve_units
        in_use = fewest_units(sizes, self.accelerators_per_unit)
        return -(-self.reserve_percent * in_use // 100)

    def maintenance_units(self, period: int) -> int:
        """Return the units out of service in a period."""
        hosts = () if self.existing is None else self.existing.maintenance_hosts
        return hosts[period] if hosts else 0

    def blocked_accelerators(self, replica: int) -> int:
        """Return the accelerators blocked by a replica of this size: whole units if it exceeds one."""
        whole = -(-replica // self.accelerators_per_unit)
        return replica if whole == 1 else whole * self.accelerators_per_unit


def fleet_pools(problem: Problem) -> dict[str, FleetPool]:
    """Return the pools of a problem by name."""
    fleet = problem.fleet
    regions = {region.name: region for region in fleet.regions}
    stated = {pool.name: pool for pool in fleet.pools}
    offers = {offer.name: offer for offer in fleet.offers}
    found = {}
    for pool in problem.pools:
        existing = stated.get(pool.name)
        feeding = {each.offer.name: offers[each.offer.name] for each in pool.acquisitions}
        sizes = [offer.accelerators_per_unit for offer in feeding.values()]
        reserve = _reserve(fleet, existing, feeding)
        found[pool.name] = FleetPool(
            name=pool.name,
            region=regions[pool.region],
            hardware=fleet.hardware[pool.hardware],
            accelerators_per_unit=sizes[0] if existing is None else existing.accelerators_per_host,
            reserve_units=reserve[0],
            reserve_percent=reserve[1],
            existing=existing,
            offers=feeding,
        )
    return found


def _reserve(fleet: Fleet, existing: Pool | None, offers: Mapping[str, Offer]) -> tuple[int, Fraction]:
    """Return a pool's reserve in hosts and as a percentage of hosts in use; single accelerators have none."""
    hosts, percent = fleet.policy.reserve_hosts_per_pool, fleet.policy.reserve_percent_per_pool
    if existing is None and any(offer.unit == "accelerator" for offer in offers.values()):
        return 0, Fraction(0)
    if existing is not None and (existing.reserve_hosts, existing.reserve_percent) != (None, None):
        hosts, percent = existing.reserve_hosts or 0, existing.reserve_percent or 0.0
    return hosts, Fraction(str(percent))


def is_bought(offer: Offer) -> bool:
    """Return whether an offer is a purchase; all others are rentals."""
    return offer.capex_usd_per_host is not None


def kind_of(offer: Offer) -> str:
    """Return the kind of an offer in a plan: buy, rent, reserve or spot."""
    if is_bought(offer):
        return "buy"
    if offer.spot_max_share is not None:
        return "spot"
    return "rent" if offer.term_periods == 1 else "reserve"


def is_in_service(offer: Offer, ordered: int, period: int) -> bool:
    """Return whether a unit ordered (rented) in one period is in service in another."""
    since = period - ordered
    return since >= offer.lead_time_periods if is_bought(offer) else 0 <= since < offer.term_periods


def serves_in_horizon(offer: Offer, ordered: int, periods: int) -> bool:
    """Return whether an order (a rental) of a period serves within the horizon."""
    if is_bought(offer):
        return ordered + offer.lead_time_periods <= periods - 1
    return ordered >= offer.lead_time_periods


def counts_against_maximum(offer: Offer, ordered: int, period: int) -> bool:
    """Return whether a unit counts against a period's maximum: a purchase once, a rental while held."""
    return ordered == period if is_bought(offer) else is_in_service(offer, ordered, period)


def last_period(fleet: Fleet, pool: FleetPool) -> int | None:
    """Return the period at whose start all installed hosts have left; None if they may stay."""
    rented = None if pool.existing is None else pool.existing.rented
    owned = None if pool.existing is None else pool.existing.owned
    named = rented.lease_end if rented is not None else None if owned is None else owned.end_of_life
    if named is None:
        return None
    end, first = fleet.calendar.index(named), fleet.calendar.index(fleet.periods[0])
    if end is None or first is None or end - first >= len(fleet.periods):
        return None
    return max(0, end - first)


def may_leave(fleet: Fleet, pool: FleetPool, period: int) -> bool:
    """Return whether installed hosts may leave at the start of a period: sold, worn out or returned."""
    if pool.existing is None or not pool.existing.hosts:
        return False
    end = last_period(fleet, pool)
    if end is not None and period >= end:
        return period == end
    return pool.existing.owned is not None and pool.existing.owned.resale_usd_per_host is not None


def may_stay_empty(fleet: Fleet, pool: FleetPool) -> bool:
    """Return whether a plan decides about the content of a pool."""
    return bool(pool.offers) or any(may_leave(fleet, pool, q) for q in range(len(fleet.periods)))
