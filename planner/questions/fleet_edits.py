"""Edits of a fleet: each function returns a fleet with one input changed.

Every edit names its target, so that edits can be combined in any order.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from fleetplan.fleet.inventory import Budget, DemandRates, Fleet, LatencyLimit, Offer, Policy, Pool, Service
from fleetplan.planner.plan import Plan
from fleetplan.planner.problem import Problem

Edit = Callable[[Fleet], Fleet]


def with_service(fleet: Fleet, name: str, change: Callable[[Service], Service]) -> Fleet:
    """Return the fleet with one service changed."""
    services = tuple(change(each) if each.name == name else each for each in fleet.services)
    return replace(fleet, services=services)


def with_offer(fleet: Fleet, name: str, change: Callable[[Offer], Offer]) -> Fleet:
    """Return the fleet with one offer changed."""
    return replace(fleet, offers=tuple(change(each) if each.name == name else each for each in fleet.offers))


def with_pool(fleet: Fleet, name: str, change: Callable[[Pool], Pool]) -> Fleet:
    """Return the fleet with one pool changed."""
    return replace(fleet, pools=tuple(change(each) if each.name == name else each for each in fleet.pools))


def with_policy(fleet: Fleet, change: Callable[[Policy], Policy]) -> Fleet:
    """Return the fleet with a changed policy."""
    return replace(fleet, policy=change(fleet.policy))


def with_budget(fleet: Fleet, change: Callable[[Budget], Budget]) -> Fleet:
    """Return the fleet with a changed budget."""
    return replace(fleet, budget=change(fleet.budget))


def demand_scaled(fleet: Fleet, ratio: float, service: str | None = None, region: str | None = None) -> Fleet:
    """Return the fleet with scaled demand, of one service or all, in one region or all."""

    def scaled(each: Service) -> Service:
        if service not in (None, each.name):
            return each

        def times(rates: DemandRates) -> DemandRates:
            return {key: rate * (ratio if region in (None, key[0]) else 1.0) for key, rate in rates.items()}

        return replace(each, demand=each.demand.changed(times))

    return replace(fleet, services=tuple(map(scaled, fleet.services)))


def power_limited(fleet: Fleet, region: str, change: Callable[[float], float] | None) -> Fleet:
    """Return the fleet with a changed facility power in one region; without a change, unlimited. [kW]"""
    regions = tuple(
        replace(
            each,
            power_kw=None if change is None or each.power_kw is None else tuple(map(change, each.power_kw)),
        )
        if each.name == region
        else each
        for each in fleet.regions
    )
    return replace(fleet, regions=regions)


def price_scaled(fleet: Fleet, ratio: float, offers: frozenset[str] | None = None) -> Fleet:
    """Return the fleet with scaled prices of some or all offers; installed hardware keeps its cost."""

    def scaled(offer: Offer) -> Offer:
        if offers is not None and offer.name not in offers:
            return offer
        rents = offer.rent_usd_per_accelerator_hour
        capex = offer.capex_usd_per_host
        return replace(
            offer,
            capex_usd_per_host=None if capex is None else capex * ratio,
            rent_usd_per_accelerator_hour=None if rents is None else tuple(usd * ratio for usd in rents),
        )

    return replace(fleet, offers=tuple(map(scaled, fleet.offers)))


def maximum_changed(fleet: Fleet, offer: str, change: Callable[[int], int | None]) -> Fleet:
    """Return the fleet with a changed maximum of an offer in every period that has one."""

    def changed(each: Offer) -> Offer:
        return replace(
            each, max_units=tuple(None if limit is None else change(limit) for limit in each.max_units)
        )

    return with_offer(fleet, offer, changed)


def maximum_set(fleet: Fleet, offer: str, units: int) -> Fleet:
    """Return the fleet with the same maximum of an offer in every period, even in those without one."""
    return with_offer(
        fleet, offer, lambda each: replace(each, max_units=tuple(units for _ in each.max_units))
    )


def limited_to(fleet: Fleet, plan: Plan, problem: Problem) -> Fleet:
    """Return the fleet with offers limited to the orders of a plan, by region and period."""
    offers = []
    for offer in fleet.offers:
        for region in offer.regions:
            taken = [0] * len(fleet.periods)
            for row in plan.purchases:
                if (row.offer, row.region) == (offer.name, region):
                    pool = next(pool for pool in problem.pools if pool.name == row.pool)
                    found = next(a for a in pool.acquisitions if a.offer.name == offer.name)
                    ordered = fleet.periods.index(row.period)
                    for q in range(len(fleet.periods)):
                        taken[q] += row.units if found.counts_in(ordered, q) else 0
            name = f"{offer.name} in {region}"
            offers.append(replace(offer, name=name, regions=(region,), max_units=tuple(taken)))
    return replace(fleet, offers=tuple(offers))


def region_lost(fleet: Fleet, region: str) -> Fleet:
    """Return the fleet without a region's hardware, with its demand distributed in proportion to the others'.

    Demand of a service that no other region has stays in the lost region. Services need not survive the loss
    of a further region.
    """

    def moved(rates: DemandRates) -> DemandRates:
        demand = dict(rates)
        for key in [each for each in rates if each[0] == region]:
            others = {
                other: rate
                for other, rate in demand.items()
                if other[1:] == key[1:] and other != key and rate > 0
            }
            total = sum(others.values())
            if total > 0:
                demand |= {other: rate + demand[key] * rate / total for other, rate in others.items()}
                demand[key] = 0.0
        return demand

    offers = tuple(
        replace(offer, regions=tuple(each for each in offer.regions if each != region))
        for offer in fleet.offers
    )
    return replace(
        fleet,
        pools=tuple(pool for pool in fleet.pools if pool.region != region),
        offers=tuple(offer for offer in offers if offer.regions),
        services=tuple(replace(each, demand=each.demand.changed(moved)) for each in fleet.services),
        policy=replace(fleet.policy, survive_region_loss=()),
    )


def delivered_late(fleet: Fleet, quarters: int) -> Fleet:
    """Return the fleet with purchases that arrive some quarters later."""

    def late(offer: Offer) -> Offer:
        if offer.capex_usd_per_host is None:
            return offer
        added = quarters * fleet.calendar.per_quarter
        return replace(offer, lead_time_periods=offer.lead_time_periods + added)

    return replace(fleet, offers=tuple(map(late, fleet.offers)))


def latency_limits_scaled(fleet: Fleet, ratio: float, service: str | None = None) -> Fleet:
    """Return the fleet with scaled latency limits, of one service or all."""
    for each in fleet.services:
        if service in (None, each.name):
            fleet = latency_limits_changed(
                fleet, each.name, lambda limit_ms: limit_ms * ratio, ttft=True, tpot=True
            )
    return fleet


def served_slower(fleet: Fleet, slowdown: float) -> Fleet:
    """Return the fleet with limits tightened so that a model slower by a share meets the original ones."""
    for service in fleet.services:
        ttft = partial(_tightened, slowdown, service.outside_ms.total_ms)
        fleet = latency_limits_changed(fleet, service.name, ttft, ttft=True, tpot=False)
        tpot = partial(_tightened, slowdown, 0.0)
        fleet = latency_limits_changed(fleet, service.name, tpot, ttft=False, tpot=True)
    return fleet


def _tightened(slowdown: float, outside_ms: float, limit_ms: float) -> float:
    """Return a tightened limit for a latency of which one part does not slow down. [ms]"""
    return (limit_ms - outside_ms) / (1 + slowdown) + outside_ms


def more_of_pool(fleet: Fleet, name: str, hosts: int | None) -> Fleet:
    """Return the fleet with up to a number of hosts more at a pool's price; None is unlimited.

    The hosts are an offer of the same kind that joins the pool, so that unused ones cost nothing.
    """
    pool = next(pool for pool in fleet.pools if pool.name == name)
    periods = range(len(fleet.periods))
    owned, rented = pool.owned, pool.rented
    offer = Offer(
        name=f"more of {name}",
        hardware=pool.hardware,
        regions=(pool.region,),
        unit="host" if pool.accelerators_per_host > 1 else "accelerator",
        accelerators_per_unit=pool.accelerators_per_host,
        capex_usd_per_host=None if owned is None else owned.capex_usd_per_host,
        rent_usd_per_accelerator_hour=None if rented is None else rented.usd_per_accelerator_hour,
        energy_included=rented is not None and rented.energy_included,
        lead_time_periods=0,
        max_units=tuple(hosts for _ in periods),
        life_periods=1 if owned is None else owned.life_periods,
        maintenance_ratio_per_year=0.0 if owned is None else owned.maintenance_ratio_per_year,
        price_source=f"as pool {name}",
        residual_ratio=0.0 if owned is None else owned.residual_ratio,
    )
    return replace(fleet, offers=(*fleet.offers, offer))


def latency_limits_changed(
    fleet: Fleet, service: str, change: Callable[[float], float | None], *, ttft: bool, tpot: bool
) -> Fleet:
    """Return the fleet with changed limits on the TTFT, the TPOT or both of one service, if it has any. [ms]

    Limits under load change along with those on the mean without queueing.
    """

    def under_load(limits: tuple[LatencyLimit, ...]) -> tuple[LatencyLimit, ...]:
        changed = [(limit, change(limit.limit_ms)) for limit in limits]
        return tuple(replace(limit, limit_ms=ms) for limit, ms in changed if ms is not None)

    def changed(each: Service) -> Service:
        traffic = each.traffic
        if traffic is not None:
            traffic = replace(
                traffic,
                ttft=under_load(traffic.ttft) if ttft else traffic.ttft,
                tpot=under_load(traffic.tpot) if tpot else traffic.tpot,
            )
        return replace(
            each,
            ttft_ms=change(each.ttft_ms) if ttft and each.ttft_ms is not None else each.ttft_ms,
            tpot_ms=change(each.tpot_ms) if tpot and each.tpot_ms is not None else each.tpot_ms,
            traffic=traffic,
        )

    return with_service(fleet, service, changed)
