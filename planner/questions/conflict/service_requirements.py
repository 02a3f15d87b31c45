"""Requirements of services: latency limits, service rules, and served demand."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from fleetplan.fleet.figures import figure
from fleetplan.fleet.inventory import Fleet, Service
from fleetplan.planner.questions import fleet_edits
from fleetplan.planner.questions.conflict.requirement import (
    Requirement,
    RequirementKind,
    Steps,
    moved,
    step_of,
)

DEMAND_STEPS: Final = 1000
"""Number of steps from the full demand to none."""

MOST_RELAXED: Final = 10.0
"""Maximum factor for relaxing a latency limit; beyond it the limit is dropped."""


def latency_requirements(service: Service) -> Iterator[Requirement]:
    """Yield the latency limits of a service."""
    for label, limit in (("TTFT", service.ttft_ms), ("TPOT", service.tpot_ms)):
        if limit is not None:
            yield _latency_limit(service, label, limit)


def _latency_limit(service: Service, label: str, limit_ms: float) -> Requirement:
    step, name = step_of(limit_ms), service.name

    def limited(base: Fleet, value_ms: float | None) -> Fleet:
        def change(given_ms: float) -> float | None:
            # Limits under load are scaled along; the named limit becomes exactly the stated value.
            return value_ms if value_ms is None or given_ms == limit_ms else given_ms * value_ms / limit_ms

        return fleet_edits.latency_limits_changed(
            base, name, change, ttft=label == "TTFT", tpot=label == "TPOT"
        )

    def text(n: int) -> str:
        return f"{label} {limit_ms:g} -> {moved(limit_ms, n, step):g} ms for {name}"

    return Requirement(
        name=f"{label} of {name} is {limit_ms:g} ms",
        kind=RequirementKind.LATENCY,
        drop=lambda base: limited(base, None),
        places=_asked_regions(service),
        steps=Steps(
            lambda base, n: limited(base, moved(limit_ms, n, step)),
            text,
            math.ceil((MOST_RELAXED - 1) * limit_ms / step),
        ),
    )


BOTH_RUNTIMES: Final = ("disaggregated", "aggregated")
"""Runtimes of a service that names none."""


def service_rules(fleet: Fleet) -> Iterator[Requirement]:
    """Yield the rules of services that can only be dropped."""
    for service in fleet.services:
        if service.allowed_hardware is not None:
            text = f"runs only on {', '.join(service.allowed_hardware)}"
            yield _service_rule(service, text, lambda each: replace(each, allowed_hardware=None))
        if len(service.runtimes) == 1:
            text = f"uses only the runtime {service.runtimes[0]}"
            yield _service_rule(service, text, lambda each: replace(each, runtimes=BOTH_RUNTIMES))
        if service.quality_floor is not None:
            text = f"has a quality of at least {service.quality_floor:g}"
            yield _service_rule(service, text, lambda each: replace(each, quality_floor=None))
        if service.average_quality_floor is not None:
            text = f"has an average quality of at least {service.average_quality_floor:g}"
            yield _service_rule(service, text, lambda each: replace(each, average_quality_floor=None))
        if service.headroom > 0:
            text = f"has {service.headroom:.0%} headroom"
            yield _service_rule(service, text, lambda each: replace(each, headroom=0.0))


def _service_rule(service: Service, text: str, change: Callable[[Service], Service]) -> Requirement:
    return Requirement(
        name=f"{service.name} {text}",
        kind=RequirementKind.POLICY,
        drop=lambda base: fleet_edits.with_service(base, service.name, change),
        places=_asked_regions(service),
        steps=None,
    )


def demand_requirements(fleet: Fleet) -> Iterator[Requirement]:
    """Yield the demand of each service in each region."""
    for service in fleet.services:
        for region in sorted(_asked_regions(service)):
            yield _served(service, region, fleet.periods)


def _served(service: Service, region: str, periods: Sequence[str]) -> Requirement:
    rates = dict.fromkeys(periods, 0.0)
    for (where, when, _), rate in service.demand.peak.items():
        rates[when] += rate if where == region else 0.0
    peak, name = max(rates.values()), service.name

    def relax(base: Fleet, n: int) -> Fleet:
        return fleet_edits.demand_scaled(base, (DEMAND_STEPS - n) / DEMAND_STEPS, name, region)

    def text(n: int) -> str:
        share = n / DEMAND_STEPS
        rates = f"{figure(share * peak)} of {figure(peak)} requests/s"
        return f"{share:.1%} of {name} in {region} unserved ({rates})"

    return Requirement(
        name=f"{name} in {region} is served, {figure(peak)} requests/s",
        kind=RequirementKind.DEMAND,
        drop=lambda base: fleet_edits.demand_scaled(base, 0.0, name, region),
        places=frozenset([region]),
        steps=Steps(relax, text, DEMAND_STEPS),
    )


def _asked_regions(service: Service) -> frozenset[str]:
    """Return the regions with demand for a service."""
    return frozenset(key[0] for key, rate in service.demand.peak.items() if rate > 0)
