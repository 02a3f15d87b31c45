"""Demand by service, region and moment."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fleetplan.fleet.inventory import Service
from fleetplan.planner.problem.deferral import work_places
from fleetplan.planner.problem.moments import Moment


@dataclass(frozen=True, slots=True)
class Cell:
    """Demand of one service in one region and moment.

    Attributes
    ----------
    service, region : str
        Service, and region where the demand arises.
    moment : int
        Moment index.
    requests_per_s : tuple[float, ...]
        Demand by class, without headroom; for offline services, the arrival rate. [requests/s]
    most_requests_per_s : tuple[float, ...]
        Largest rate that the moment may serve: demand, plus work of an offline service that other moments may
        defer to it. [requests/s]
    """

    service: str
    region: str
    moment: int
    requests_per_s: tuple[float, ...]
    most_requests_per_s: tuple[float, ...]


def moment_demand(service: Service, periods: Sequence[str], moment: Moment) -> dict[tuple[str, str], float]:
    """Return the demand of a service in a moment by (region, class), without headroom. [requests/s]"""
    here = periods[moment.period]
    demand = service.demand.of(moment.case)
    return {(region, name): rate for (region, period, name), rate in demand.items() if period == here}


def cells_of(
    service: Service, region: str, periods: Sequence[str], moments: Sequence[Moment]
) -> Iterator[Cell]:
    """Yield the cells of a service in a region that have demand or may receive deferred work."""
    names = [request_class.name for request_class in service.classes]
    rates = []
    for moment in moments:
        demand, period = service.demand.of(moment.case), periods[moment.period]
        rates.append(tuple(demand.get((region, period, name), 0.0) for name in names))
    most = rates if service.offline is None else _put_together(rates, moments, service.offline.deadline_hours)
    for m, (arising, possible) in enumerate(zip(rates, most, strict=True)):
        if any(rate > 0 for rate in possible):
            yield Cell(service.name, region, m, arising, possible)


def _put_together(
    rates: Sequence[tuple[float, ...]], moments: Sequence[Moment], deadline_hours: float
) -> list[tuple[float, ...]]:
    """Return the rates of moments if all work that may be deferred to them is. [requests/s]"""
    places = work_places(moments, deadline_hours)
    return [
        tuple(
            sum(
                by_class[k] * moments[other].hours / moment.hours
                for other, by_class in enumerate(rates)
                if m in places[other]
            )
            for k in range(len(rates[m]))
        )
        for m, moment in enumerate(moments)
    ]
