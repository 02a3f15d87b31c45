"""Demand of a fleet file, resolved."""

from __future__ import annotations

from fleetplan.fleet.inventory import Service


def rates(service: Service, case: tuple[str | None, str | None]) -> list[float]:
    return list(service.demand.of(case).values())
