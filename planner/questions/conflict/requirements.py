"""Everything that a fleet file asks for and that could be given up, by the name that people call it.

A requirement can be dropped, and most can be relaxed step by step. Steps are whole numbers, so that there is
a least amount: hosts, a digit of a limit, a thousandth of a demand.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from typing import Final

from fleetplan.fleet.inventory import Budget, Fleet, Offer, Policy, Pool, Service
from fleetplan.planner.questions import fleet_edits
from fleetplan.planner.questions.fleet_edits import Edit

STEP_DIGITS: Final = 3
"""A step is one in the last of so many significant digits of a limit: 1 of 350, 0.1 of 40.0."""

DEMAND_STEPS: Final = 1000
"""Steps from all of a demand to none of it."""

SHARE_STEPS: Final = 100
"""Steps of a share, from 0 to 1."""


class Kind(StrEnum):
    """What a requirement is about."""

    SUPPLY = "supply"
    POWER = "power"
    BUDGET = "budget"
    LATENCY = "latency"
    POLICY = "policy"
    DEMAND = "demand"


@dataclass(frozen=True, slots=True)
class Steps:
    """How a requirement gives way step by step.

    Attributes
    ----------
    relax : callable
        The fleet with the requirement relaxed by so many steps.
    text : callable
        What so many steps are.
    most : int or None
        Steps after which nothing is left of it; None where there is no end.
    """

    relax: Callable[[Fleet, int], Fleet]
    text: Callable[[int], str]
    most: int | None = None


@dataclass(frozen=True, slots=True)
class Requirement:
    """One thing that a fleet file asks for.

    Attributes
    ----------
    name : str
        With its value.
    kind : Kind
        What it is about.
    drop : callable
        The fleet without it.
    places : frozenset[str]
        Regions that it matters in; empty is everywhere.
    steps : Steps or None
        How it is relaxed; None where it holds or does not.
    """

    name: str
    kind: Kind
    drop: Edit
    places: frozenset[str]
    steps: Steps | None


def requirements_of(fleet: Fleet) -> tuple[Requirement, ...]:
    """All requirements of a fleet that could be given up, those that money lifts first."""
    return (
        *_supply(fleet),
        *_power(fleet),
        *_budgets(fleet),
        *(each for service in fleet.services for each in latency_requirements(service)),
        *_policy(fleet),
        *_handovers(fleet),
        *_service_rules(fleet),
        *_demand(fleet),
    )


def step_of(limit: float) -> float:
    """One in the last significant digit that counts of a limit, in its unit."""
    return 10.0 ** (math.floor(math.log10(limit)) - STEP_DIGITS + 1) if limit > 0 else 1.0


def _moved(limit: float, steps: int, step: float) -> float:
    """A limit after so many steps, without the dust of binary fractions."""
    return round(limit + steps * step, 9)


def _supply(fleet: Fleet) -> Iterator[Requirement]:
    yield from map(_pool, fleet.pools)
    for offer in fleet.offers:
        if any(limit is not None for limit in offer.max_units):
            yield _maximum(offer)
        if offer.lead_time_quarters:
            yield _lead_time(offer)


def _pool(pool: Pool) -> Requirement:
    unit = "hosts" if pool.accelerators_per_host > 1 else "accelerators"

    def relax(base: Fleet, n: int) -> Fleet:
        return fleet_edits.more_of_pool(base, pool.name, n)

    return Requirement(
        name=f"pool {pool.name} has {pool.hosts} {unit} of {pool.hardware}",
        kind=Kind.SUPPLY,
        drop=lambda base: fleet_edits.more_of_pool(base, pool.name, None),
        places=frozenset([pool.region]),
        steps=Steps(relax, lambda n: f"{n} {pool.hardware} {unit} more in {pool.name}"),
    )


def _maximum(offer: Offer) -> Requirement:
    limits = ", ".join(
        "any number" if limit is None else str(limit) for limit in dict.fromkeys(offer.max_units)
    )

    def relax(base: Fleet, n: int) -> Fleet:
        return fleet_edits.maximum_changed(base, offer.name, lambda limit: limit + n)

    return Requirement(
        name=f"offer {offer.name} brings at most {limits} {offer.unit}s of {offer.hardware}",
        kind=Kind.SUPPLY,
        drop=lambda base: fleet_edits.maximum_changed(base, offer.name, lambda _: None),
        places=frozenset(offer.regions),
        steps=Steps(relax, lambda n: f"{n} {offer.hardware} {offer.unit}s more from offer {offer.name}"),
    )


def _lead_time(offer: Offer) -> Requirement:
    lead = offer.lead_time_quarters

    def relax(base: Fleet, n: int) -> Fleet:
        return fleet_edits.with_offer(
            base, offer.name, lambda each: replace(each, lead_time_quarters=max(0, lead - n))
        )

    return Requirement(
        name=f"offer {offer.name} takes {lead} quarters to arrive",
        kind=Kind.SUPPLY,
        drop=lambda base: relax(base, lead),
        places=frozenset(offer.regions),
        steps=Steps(
            relax, lambda n: f"offer {offer.name} arrives after {lead - n} quarters, not {lead}", lead
        ),
    )


def _power(fleet: Fleet) -> Iterator[Requirement]:
    for region in fleet.regions:
        if region.power_kw is not None:
            yield _power_limit(region.name, region.power_kw)


def _power_limit(region: str, power_kw: tuple[float, ...]) -> Requirement:
    step = step_of(max(power_kw))
    limits = ", ".join(f"{kw:g}" for kw in dict.fromkeys(power_kw))

    def relax(base: Fleet, n: int) -> Fleet:
        return fleet_edits.power_limited(base, region, lambda limit_kw: _moved(limit_kw, n, step))

    return Requirement(
        name=f"power of {region} is {limits} kW",
        kind=Kind.POWER,
        drop=lambda base: fleet_edits.power_limited(base, region, None),
        places=frozenset([region]),
        steps=Steps(relax, lambda n: f"{n * step:g} kW more in {region}"),
    )


def _budgets(fleet: Fleet) -> Iterator[Requirement]:
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
    step = step_of(limit) / 10

    def relax(base: Fleet, n: int) -> Fleet:
        return fleet_edits.with_budget(base, lambda budget: put(budget, _moved(limit, n, step)))

    return Requirement(
        name=f"{label} is {limit:,.0f} USD",
        kind=Kind.BUDGET,
        drop=lambda base: fleet_edits.with_budget(base, lambda budget: put(budget, None)),
        places=frozenset(),
        steps=Steps(relax, lambda n: f"{n * step:,.0f} USD more of {label}"),
    )


MOST_RELAXED: Final = 10.0
"""Latency limits are relaxed to at most so many times what they are; beyond that they are dropped."""


def latency_requirements(service: Service) -> Iterator[Requirement]:
    """The latency limits of a service."""
    for label, limit in (("TTFT", service.ttft_ms), ("TPOT", service.tpot_ms)):
        if limit is not None:
            yield _latency_limit(service, label, limit)


def _latency_limit(service: Service, label: str, limit_ms: float) -> Requirement:
    step, name = step_of(limit_ms), service.name

    def limited(base: Fleet, value_ms: float | None) -> Fleet:
        def change(given_ms: float) -> float | None:
            # Limits under load move along; the one that is named becomes exactly what is said.
            return value_ms if value_ms is None or given_ms == limit_ms else given_ms * value_ms / limit_ms

        return fleet_edits.latency_limits_changed(
            base, name, change, ttft=label == "TTFT", tpot=label == "TPOT"
        )

    def text(n: int) -> str:
        return f"{label} {limit_ms:g} -> {_moved(limit_ms, n, step):g} ms for {name}"

    return Requirement(
        name=f"{label} of {name} is {limit_ms:g} ms",
        kind=Kind.LATENCY,
        drop=lambda base: limited(base, None),
        places=_asked_regions(service),
        steps=Steps(
            lambda base, n: limited(base, _moved(limit_ms, n, step)),
            text,
            math.ceil((MOST_RELAXED - 1) * limit_ms / step),
        ),
    )


def _policy(fleet: Fleet) -> Iterator[Requirement]:
    policy = fleet.policy
    reserve, configurations = policy.reserve_hosts_per_pool, policy.max_configs_per_service_region
    if reserve:
        yield _rule(
            f"{reserve} hosts of each pool stay in reserve",
            lambda rules, n: replace(rules, reserve_hosts_per_pool=max(0, reserve - n)),
            lambda n: f"{n} reserve hosts of each pool less",
            reserve,
        )
    if configurations is not None:
        most = 10 * configurations + 100
        yield _rule(
            f"at most {configurations} configurations of a service in a region",
            lambda rules, n: replace(
                rules, max_configs_per_service_region=None if n >= most else configurations + n
            ),
            lambda n: f"{configurations + n} configurations of a service in a region, not {configurations}",
            most,
        )
    share = policy.max_share_per_pool
    if share is not None:
        most = math.ceil((1 - share) * SHARE_STEPS)
        yield _rule(
            f"one pool serves at most {share:.0%} of a service",
            lambda rules, n: replace(rules, max_share_per_pool=min(1.0, _moved(share, n, 1 / SHARE_STEPS))),
            lambda n: f"one pool serves up to {min(1.0, share + n / SHARE_STEPS):.0%} of a service",
            most,
        )
    yield from map(_survival, policy.survive_region_loss)


def _survival(service: str) -> Requirement:
    def without(rules: Policy) -> Policy:
        kept = tuple(each for each in rules.survive_region_loss if each != service)
        return replace(rules, survive_region_loss=kept)

    return Requirement(
        name=f"{service} survives the loss of a region",
        kind=Kind.POLICY,
        drop=lambda base: fleet_edits.with_policy(base, without),
        places=frozenset(),
        steps=None,
    )


def _rule(
    name: str, change: Callable[[Policy, int], Policy], text: Callable[[int], str], most: int
) -> Requirement:
    def relax(base: Fleet, n: int) -> Fleet:
        return fleet_edits.with_policy(base, lambda rules: change(rules, n))

    return Requirement(
        name=name,
        kind=Kind.POLICY,
        drop=lambda base: relax(base, most),
        places=frozenset(),
        steps=Steps(relax, text, most),
    )


def _handovers(fleet: Fleet) -> Iterator[Requirement]:
    """Where KV caches may pass, and what links carry of them."""
    if fleet.policy.kv_pairs is not None:
        name = "KV caches pass between compatible hardware alone"
        yield _handover(name, lambda base: _rules(base, kv_pairs=None))
    if fleet.policy.kv_transfer == "same-pool":
        name = "KV caches stay in their pool"
        yield _handover(name, lambda base: _rules(base, kv_transfer="same-region"))
    for index, link in enumerate(fleet.kv_links):
        name = f"the link from {link.prefill} to {link.decode} carries {link.gb_per_s:g} GB/s"
        yield _handover(name, partial(_unlimited_link, index))


def _handover(name: str, drop: Callable[[Fleet], Fleet]) -> Requirement:
    return Requirement(name=name, kind=Kind.POLICY, drop=drop, places=frozenset(), steps=None)


def _rules(base: Fleet, **changes: object) -> Fleet:
    return fleet_edits.with_policy(base, lambda rules: replace(rules, **changes))  # type: ignore[arg-type]


def _unlimited_link(index: int, base: Fleet) -> Fleet:
    links = list(base.kv_links)
    links[index] = replace(links[index], gb_per_s=UNLIMITED_GB_PER_S)
    return replace(base, kv_links=tuple(links))


UNLIMITED_GB_PER_S: Final = 1e9
"""More than any link carries. [GB/s]"""

BOTH_RUNTIMES: Final = ("disaggregated", "aggregated")
"""What a service may run in where nothing says otherwise."""


def _service_rules(fleet: Fleet) -> Iterator[Requirement]:
    """Rules of services that hold or do not."""
    for service in fleet.services:
        if service.allowed_hardware is not None:
            text = f"runs on {', '.join(service.allowed_hardware)} alone"
            yield _service_rule(service, text, lambda each: replace(each, allowed_hardware=None))
        if len(service.runtimes) == 1:
            text = f"runs {service.runtimes[0]} alone"
            yield _service_rule(service, text, lambda each: replace(each, runtimes=BOTH_RUNTIMES))
        if service.quality_floor is not None:
            text = f"has a quality of {service.quality_floor:g} at least"
            yield _service_rule(service, text, lambda each: replace(each, quality_floor=None))
        if service.average_quality_floor is not None:
            text = f"has an average quality of {service.average_quality_floor:g} at least"
            yield _service_rule(service, text, lambda each: replace(each, average_quality_floor=None))
        if service.headroom > 0:
            text = f"has {service.headroom:.0%} headroom"
            yield _service_rule(service, text, lambda each: replace(each, headroom=0.0))


def _service_rule(service: Service, text: str, change: Callable[[Service], Service]) -> Requirement:
    return Requirement(
        name=f"{service.name} {text}",
        kind=Kind.POLICY,
        drop=lambda base: fleet_edits.with_service(base, service.name, change),
        places=_asked_regions(service),
        steps=None,
    )


def _demand(fleet: Fleet) -> Iterator[Requirement]:
    for service in fleet.services:
        for region in sorted(_asked_regions(service)):
            yield _served(service, region, fleet.periods)


def _served(service: Service, region: str, periods: Sequence[str]) -> Requirement:
    rates = dict.fromkeys(periods, 0.0)
    for (where, when, _), rate in service.demand_requests_per_s.items():
        rates[when] += rate if where == region else 0.0
    peak, name = max(rates.values()), service.name

    def relax(base: Fleet, n: int) -> Fleet:
        return fleet_edits.demand_scaled(base, 1 - n / DEMAND_STEPS, name, region)

    def text(n: int) -> str:
        share = n / DEMAND_STEPS
        return f"{share:.1%} of {name} in {region} unserved ({share * peak:.4g} of {peak:.4g} requests/s)"

    return Requirement(
        name=f"{name} in {region} is served, {peak:.4g} requests/s",
        kind=Kind.DEMAND,
        drop=lambda base: fleet_edits.demand_scaled(base, 0.0, name, region),
        places=frozenset([region]),
        steps=Steps(relax, text, DEMAND_STEPS),
    )


def _asked_regions(service: Service) -> frozenset[str]:
    """Regions that ask a service for anything."""
    return frozenset(key[0] for key, rate in service.demand_requests_per_s.items() if rate > 0)
