"""Requirements that money can lift: hardware, power and budgets."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Final

from fleetplan.fleet.figures import counted, plural
from fleetplan.fleet.inventory import Budget, Fleet, Offer, Pool
from fleetplan.planner.questions import fleet_edits
from fleetplan.planner.questions.conflict.requirement import (
    Requirement,
    RequirementKind,
    Steps,
    eased_percent,
    more_of_share,
    moved,
    step_of,
    steps_of_share,
)
from fleetplan.planner.search import PowerLimit

LEAST_POWER_STEP_KW: Final = 0.001
"""Least step of a power limit: the program counts whole watts. [kW]"""

LEAST_BUDGET_STEP_USD: Final = 1.0
"""Least step of a budget, as answers state it. [USD]"""


def supply_requirements(fleet: Fleet) -> Iterator[Requirement]:
    """Yield pool sizes, reserves, offer maxima, lead times and spot shares."""
    yield from map(_pool, fleet.pools)
    yield from (_reserve(pool, pool.reserve_hosts) for pool in fleet.pools if pool.reserve_hosts)
    yield from (_percent(pool, pool.reserve_percent) for pool in fleet.pools if pool.reserve_percent)
    for offer in fleet.offers:
        if any(limit is not None for limit in offer.max_units):
            yield _maximum(offer)
        if offer.lead_time_periods:
            yield _lead_time(offer, fleet.calendar.kind)
        if offer.spot_max_share is not None and offer.spot_max_share < 1.0:
            yield _spot_share(offer, offer.spot_max_share)


def _pool(pool: Pool) -> Requirement:
    unit = "host" if pool.accelerators_per_host > 1 else "accelerator"

    def relax(base: Fleet, n: int) -> Fleet:
        return fleet_edits.more_of_pool(base, pool.name, n)

    return Requirement(
        name=f"pool {pool.name} has {counted(pool.hosts, unit)} of {pool.hardware}",
        kind=RequirementKind.SUPPLY,
        drop=lambda base: fleet_edits.more_of_pool(base, pool.name, None),
        places=frozenset([pool.region]),
        steps=Steps(relax, lambda n: f"{counted(n, f'{pool.hardware} {unit}')} more in {pool.name}"),
    )


def _reserve(pool: Pool, hosts: int) -> Requirement:
    def relax(base: Fleet, n: int) -> Fleet:
        changed = (
            replace(each, reserve_hosts=max(0, hosts - n)) if each.name == pool.name else each
            for each in base.pools
        )
        return replace(base, pools=tuple(changed))

    return Requirement(
        name=f"{counted(hosts, 'host')} of pool {pool.name} in reserve",
        kind=RequirementKind.POLICY,
        drop=lambda base: relax(base, hosts),
        places=frozenset([pool.region]),
        steps=Steps(relax, lambda n: f"{counted(n, 'reserve host')} fewer in {pool.name}", hosts),
    )


def _percent(pool: Pool, percent: float) -> Requirement:
    def relax(base: Fleet, n: int) -> Fleet:
        left = eased_percent(percent, n)
        return fleet_edits.with_pool(base, pool.name, lambda each: replace(each, reserve_percent=left))

    return Requirement(
        name=f"{percent:g} % of the hosts in use of pool {pool.name} stay in reserve",
        kind=RequirementKind.POLICY,
        drop=lambda base: relax(base, math.ceil(percent)),
        places=frozenset([pool.region]),
        steps=Steps(relax, lambda n: f"{n} % less reserve in {pool.name}", math.ceil(percent)),
    )


def _maximum(offer: Offer) -> Requirement:
    limits = ", ".join(
        "any number" if limit is None else str(limit) for limit in dict.fromkeys(offer.max_units)
    )
    units = offer.unit if limits == "1" else plural(offer.unit)

    def relax(base: Fleet, n: int) -> Fleet:
        return fleet_edits.maximum_changed(base, offer.name, lambda limit: limit + n)

    return Requirement(
        name=f"offer {offer.name} supplies at most {limits} {units} of {offer.hardware}",
        kind=RequirementKind.SUPPLY,
        drop=lambda base: fleet_edits.maximum_changed(base, offer.name, lambda _: None),
        places=frozenset(offer.regions),
        steps=Steps(
            relax, lambda n: f"{counted(n, f'{offer.hardware} {offer.unit}')} more from offer {offer.name}"
        ),
    )


def _lead_time(offer: Offer, period: str) -> Requirement:
    lead = offer.lead_time_periods

    def relax(base: Fleet, n: int) -> Fleet:
        return fleet_edits.with_offer(
            base, offer.name, lambda each: replace(each, lead_time_periods=max(0, lead - n))
        )

    return Requirement(
        name=f"offer {offer.name} has a lead time of {counted(lead, period)}",
        kind=RequirementKind.SUPPLY,
        drop=lambda base: relax(base, lead),
        places=frozenset(offer.regions),
        steps=Steps(
            relax, lambda n: f"offer {offer.name} arrives after {counted(lead - n, period)}, not {lead}", lead
        ),
    )


def _spot_share(offer: Offer, share: float) -> Requirement:
    most = steps_of_share(share)
    name, of = f"spot offer {offer.name}", "of a service from a region"

    def relax(base: Fleet, n: int) -> Fleet:
        return fleet_edits.with_offer(
            base, offer.name, lambda each: replace(each, spot_max_share=more_of_share(share, n))
        )

    return Requirement(
        name=f"{name} serves at most {share:.0%} {of}",
        kind=RequirementKind.POLICY,
        drop=lambda base: relax(base, most),
        places=frozenset(offer.regions),
        steps=Steps(relax, lambda n: f"{name} serves up to {more_of_share(share, n):.0%} {of}", most),
    )


def power_requirements(fleet: Fleet) -> Iterator[Requirement]:
    """Yield the facility power of regions."""
    for region in fleet.regions:
        if region.power_kw is not None:
            yield _power_limit(region.name, region.power_kw)


def _power_limit(region: str, power_kw: tuple[float, ...]) -> Requirement:
    step = max(step_of(max(power_kw)), LEAST_POWER_STEP_KW)
    limits = ", ".join(f"{kw:g}" for kw in dict.fromkeys(power_kw))

    def relax(base: Fleet, n: int) -> Fleet:
        return fleet_edits.power_limited(base, region, lambda limit_kw: moved(limit_kw, n, step))

    return Requirement(
        name=f"power of {region} is {limits} kW",
        kind=RequirementKind.POWER,
        drop=lambda base: fleet_edits.power_limited(base, region, None),
        places=frozenset([region]),
        steps=Steps(relax, lambda n: f"{n * step:g} kW more in {region}"),
        power_limit=PowerLimit(region, power_kw, step),
    )


def budget_requirements(fleet: Fleet) -> Iterator[Requirement]:
    """Yield the budgets."""
    budget = fleet.budget
    if budget.capex_usd is not None:
        yield _budget("capex budget", budget.capex_usd, lambda base, usd: replace(base, capex_usd=usd))
    if budget.opex_usd is not None:
        yield _budget("opex budget", budget.opex_usd, lambda base, usd: replace(base, opex_usd=usd))
    if budget.tco_usd is not None:
        yield _budget("TCO budget", budget.tco_usd, lambda base, usd: replace(base, tco_usd=usd))
    for q, (period, limit) in enumerate(zip(fleet.periods, budget.capex_usd_by_period, strict=True)):
        if limit is not None:
            yield _budget(f"capex budget of {period}", limit, partial(_with_capex_of_period, q))


def _with_capex_of_period(period: int, base: Budget, usd: float | None) -> Budget:
    limits = base.capex_usd_by_period
    return replace(base, capex_usd_by_period=(*limits[:period], usd, *limits[period + 1 :]))


def _budget(label: str, limit: float, put: Callable[[Budget, float | None], Budget]) -> Requirement:
    step = max(step_of(limit) / 10, LEAST_BUDGET_STEP_USD)

    def relax(base: Fleet, n: int) -> Fleet:
        return fleet_edits.with_budget(base, lambda budget: put(budget, moved(limit, n, step)))

    return Requirement(
        name=f"{label} is {limit:,.0f} USD",
        kind=RequirementKind.BUDGET,
        drop=lambda base: fleet_edits.with_budget(base, lambda budget: put(budget, None)),
        places=frozenset(),
        steps=Steps(relax, lambda n: f"{n * step:,.0f} USD more of {label}"),
    )
