"""Supply pools: existing hosts and offers with the same packing and billing, and their cost by period."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from fleetplan.fleet.inventory import Fleet, Hardware, Offer, Pool, Region
from fleetplan.planner.problem import capacity_costs as costs
from fleetplan.planner.units import exact


@dataclass(frozen=True, slots=True)
class Acquisition:
    """Offer, as it applies to one supply pool.

    Attributes
    ----------
    offer : Offer
        Offer of the fleet file.
    unit_cost_by_period : CostTable
        Cost of one unit by kind, by period of order or use, and by period charged. [USD]
    unit_cost_kinds : Mapping[str, tuple[float, ...]]
        Cost of one unit over the horizon, by kind of cost (depreciation, rent, hosting, maintenance) and by
        period of order (purchase) or use (rent). [USD]
    unit_usd : tuple[float, ...]
        Sum of the kinds. [USD]
    capex_usd_per_unit : float
        Cash at the order; 0 for rent. [USD]
    """

    offer: Offer
    unit_cost_by_period: costs.CostTable
    unit_cost_kinds: Mapping[str, tuple[float, ...]]
    unit_usd: tuple[float, ...]
    capex_usd_per_unit: float

    def useful_in(self, period: int, n_periods: int) -> bool:
        """Return whether ordering (or renting) in a period yields capacity within the horizon."""
        lead = self.offer.lead_time_periods
        if self.offer.capex_usd_per_host is not None:
            return period + lead < n_periods
        return period >= lead

    def serves(self, ordered: int, period: int) -> bool:
        """Return whether a unit ordered (or rented) in one period is in the pool in another."""
        if self.offer.capex_usd_per_host is None:
            return ordered <= period < ordered + self.offer.term_periods
        # A fully depreciated host still serves.
        return period >= ordered + self.offer.lead_time_periods

    def counts_in(self, ordered: int, period: int) -> bool:
        """Return whether a unit ordered (or rented) in one period counts against the maximum of another."""
        if self.offer.capex_usd_per_host is None:
            return self.serves(ordered, period)
        return ordered == period


@dataclass(frozen=True, slots=True)
class Retirement:
    """Retirement of a pool's existing units: sale, end of life, or return at the end of a lease.

    Attributes
    ----------
    unit_cost_by_period : CostTable
        Cost change from retiring one unit, by kind, period of retirement and period charged. [USD]
    unit_usd : tuple[float, ...]
        Sum by period of retirement. [USD]
    leaving_cost_kinds : CostKinds
        Part charged at once, by kind: book value less the sale. [USD]
    by_choice : bool
        Whether units may leave before the end of life.
    end_period : int or None
        Index of the first period without any existing units.
    """

    unit_cost_by_period: costs.CostTable
    unit_usd: tuple[float, ...]
    leaving_cost_kinds: costs.CostKinds
    by_choice: bool
    end_period: int | None

    def leaving_usd(self, period: int) -> float:
        """Return the immediate cost of a unit that leaves at the start of a period. [USD]"""
        return sum(values[period] for values in self.leaving_cost_kinds.values())

    def possible_in(self, period: int) -> bool:
        """Return whether units may leave at the start of a period."""
        if self.end_period is not None and period >= self.end_period:
            return period == self.end_period
        return self.by_choice


@dataclass(frozen=True, slots=True)
class SupplyPool:
    """Accelerators of one kind in one region that are packed together.

    Attributes
    ----------
    name, region, hardware : str
        Name in placements, region, and hardware.
    accelerators_per_unit : int
        Accelerators of one packing unit: a host, a pod, or 1 if single accelerators are rented.
    existing_units : int
        Units that exist in the first period.
    reserve_units : int
        Units kept free for repair while the pool is in use.
    reserve_percent : float
        Units kept free, in per cent of those in use, rounded up to whole units; one of the two is 0. [%]
    acquisitions : tuple[Acquisition, ...]
        Offers that add units to this pool.
    fixed_usd : tuple[float, ...]
        Cost of the existing units by period, used or not. [USD]
    fixed_cost_kinds : Mapping[str, tuple[float, ...]]
        The same by kind of cost (depreciation, rent, hosting, maintenance).
    energy_usd_per_kw : tuple[float, ...]
        Cost of one kW of IT load over one period; 0 if rent includes energy. [USD/kW]
    spot_max_share : float or None
        Largest share of a service that may run on this spot capacity.
    retirement : Retirement or None
        How existing units may leave; None if they stay.
    """

    name: str
    region: str
    hardware: str
    accelerators_per_unit: int
    existing_units: int
    reserve_units: int
    acquisitions: tuple[Acquisition, ...]
    fixed_usd: tuple[float, ...]
    fixed_cost_kinds: Mapping[str, tuple[float, ...]]
    energy_usd_per_kw: tuple[float, ...]
    retirement: Retirement | None = None
    spot_max_share: float | None = None
    maintenance_units: tuple[int, ...] = ()
    """Existing units out of service by period; empty if never."""
    reserve_percent: float = 0.0

    def reserve_of(self, in_use: int) -> int:
        """Return the units kept free for a number of units in use."""
        return self.reserve_units + math.ceil(self.reserve_ratio * in_use)

    @property
    def reserve_ratio(self) -> Fraction:
        """Return the units kept free per unit in use, before rounding up."""
        return exact(self.reserve_percent) / 100

    def maintenance_in(self, period: int) -> int:
        """Return the existing units out of service in a period."""
        return self.maintenance_units[period] if self.maintenance_units else 0

    @property
    def may_stay_empty(self) -> bool:
        """Return whether the plan decides if the pool has units; only then its reserve is optional."""
        return bool(self.acquisitions) or self.retirement is not None

    def footprint_accelerators(self, accelerators: int) -> int:
        """Return the accelerators that a replica blocks: whole units if it is larger than one."""
        unit = self.accelerators_per_unit
        if accelerators <= unit:
            return accelerators
        return -(-accelerators // unit) * unit

    def units_per_replica(self, accelerators: int) -> Fraction:
        """Return the units that a replica takes in a pool without other replicas."""
        unit = self.accelerators_per_unit
        if accelerators >= unit:
            return Fraction(-(-accelerators // unit))
        return Fraction(1, unit // accelerators)


def supply_pools(fleet: Fleet) -> list[SupplyPool]:
    """Return existing pools with the offers that may join them, then new pools for the other offers.

    If an offer may join several pools, the plan decides which, not the order of the file.
    """
    pools: list[SupplyPool] = []
    placed: set[tuple[str, str]] = set()
    for pool in fleet.pools:
        offers = [each for each in fleet.offers if pool.region in each.regions and _joins(each, pool)]
        placed.update((offer.name, pool.region) for offer in offers)
        pools.append(_existing_pool(fleet, pool, offers))
    for offer in fleet.offers:
        for region in offer.regions:
            if (offer.name, region) in placed:
                continue
            peers = [
                peer
                for peer in fleet.offers
                if (peer.name, region) not in placed
                and region in peer.regions
                and _packed_and_billed(peer) == _packed_and_billed(offer)
            ]
            placed.update((peer.name, region) for peer in peers)
            pools.append(_new_pool(fleet, region, peers))
    return pools


def _packed_and_billed(offer: Offer) -> tuple[str, str, int, bool, float | None]:
    """Return the key of offers that form one pool.

    Spot capacity is separate, so that its share can be limited.
    """
    return (
        offer.hardware,
        offer.unit,
        offer.accelerators_per_unit,
        offer.energy_included,
        offer.spot_max_share,
    )


def _joins(offer: Offer, pool: Pool) -> bool:
    """Return whether an offer's units are packed and billed like the pool."""
    if offer.spot_max_share is not None:
        return False
    included = pool.rented is not None and pool.rented.energy_included
    packing_unit = (offer.hardware, offer.accelerators_per_unit)
    return packing_unit == (pool.hardware, pool.accelerators_per_host) and offer.energy_included == included


def _existing_pool(fleet: Fleet, pool: Pool, offers: Sequence[Offer]) -> SupplyPool:
    region = next(region for region in fleet.regions if region.name == pool.region)
    hardware = fleet.hardware[pool.hardware]
    by_policy = pool.reserve_hosts is None and pool.reserve_percent is None
    reserve, percent = pool.reserve_hosts or 0, pool.reserve_percent or 0.0
    if by_policy:
        reserve, percent = fleet.policy.reserve_hosts_per_pool, fleet.policy.reserve_percent_per_pool
    kinds = costs.existing_pool_usd(pool, hardware, region, fleet.periods, fleet.finance)
    included = pool.rented is not None and pool.rented.energy_included
    return SupplyPool(
        name=pool.name,
        region=pool.region,
        hardware=pool.hardware,
        accelerators_per_unit=pool.accelerators_per_host,
        existing_units=pool.hosts,
        reserve_units=reserve,
        reserve_percent=percent,
        acquisitions=_acquisitions(fleet, region, hardware, offers),
        fixed_usd=tuple(sum(values) for values in zip(*kinds.values(), strict=True)),
        fixed_cost_kinds=kinds,
        energy_usd_per_kw=costs.energy_usd_per_kw(region, len(fleet.periods), included, fleet.finance),
        retirement=_retirement(fleet, pool, region, hardware),
        maintenance_units=pool.maintenance_hosts,
    )


def _retirement(fleet: Fleet, pool: Pool, region: Region, hardware: Hardware) -> Retirement | None:
    """Return how a pool's hosts may leave; None if none may or must within the horizon."""
    if not pool.hosts:
        return None
    end = None if pool.end is None else fleet.calendar.index(pool.end)
    first = fleet.calendar.index(fleet.periods[0])
    end_period = None if end is None or first is None else max(0, end - first)
    if end_period is not None and end_period >= len(fleet.periods):
        end_period = None
    by_choice = pool.owned is not None and pool.owned.resale_usd_per_host is not None
    if not by_choice and end_period is None:
        return None
    table = costs.retirement_usd(pool, hardware, region, fleet.periods, fleet.finance)
    return Retirement(
        unit_cost_by_period=table,
        unit_usd=tuple(sum(sum(rows[q]) for rows in table.values()) for q in range(len(fleet.periods))),
        leaving_cost_kinds=costs.leaving_usd(pool, fleet.periods, fleet.finance),
        by_choice=by_choice,
        end_period=end_period,
    )


def _new_pool(fleet: Fleet, region_name: str, offers: Sequence[Offer]) -> SupplyPool:
    region = next(region for region in fleet.regions if region.name == region_name)
    first = offers[0]
    hardware = fleet.hardware[first.hardware]
    by_host = first.unit == "host"
    zero = tuple(0.0 for _ in fleet.periods)
    return SupplyPool(
        name=f"{region_name}/{'+'.join(offer.name for offer in offers)}",
        region=region_name,
        hardware=first.hardware,
        accelerators_per_unit=first.accelerators_per_unit,
        existing_units=0,
        # The provider replaces single accelerators, so no host is kept free for them.
        reserve_units=fleet.policy.reserve_hosts_per_pool if by_host else 0,
        reserve_percent=fleet.policy.reserve_percent_per_pool if by_host else 0.0,
        acquisitions=_acquisitions(fleet, region, hardware, offers),
        fixed_usd=zero,
        fixed_cost_kinds={"depreciation": zero},
        spot_max_share=first.spot_max_share,
        energy_usd_per_kw=costs.energy_usd_per_kw(
            region, len(fleet.periods), first.energy_included, fleet.finance
        ),
    )


def _acquisitions(
    fleet: Fleet, region: Region, hardware: Hardware, offers: Sequence[Offer]
) -> tuple[Acquisition, ...]:
    acquisitions = []
    for offer in offers:
        charged = costs.acquisition_usd(offer, hardware, region, fleet.periods, fleet.finance)
        kinds = {kind: tuple(sum(by_period) for by_period in table) for kind, table in charged.items()}
        acquisitions.append(
            Acquisition(
                offer=offer,
                unit_cost_by_period=charged,
                unit_cost_kinds=kinds,
                unit_usd=tuple(sum(values) for values in zip(*kinds.values(), strict=True)),
                capex_usd_per_unit=offer.capex_usd_per_host or 0.0,
            )
        )
    return tuple(acquisitions)
