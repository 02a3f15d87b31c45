"""Story of one service: its evaluated, excluded and chosen configurations."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

from fleetplan.fleet.inventory import Fleet, Service
from fleetplan.fleet.units import SECONDS_PER_HOUR
from fleetplan.planner.candidates import DOMINATED, supplied_hardware
from fleetplan.planner.landscape.prices import cheapest_usd_per_accelerator_hour
from fleetplan.planner.plan import Binding, Placement, Plan, Unmet, most_at_once
from fleetplan.planner.problem import Candidate, Phase
from fleetplan.planner.questions.resolving import Resolver

REQUESTS_PRICED = 1e6
"""Number of requests that the cost of a phase refers to."""


@dataclass(frozen=True, slots=True)
class CheapestConfig:
    """The configuration of a phase that serves the service's mix at the lowest cost on one hardware.

    Attributes
    ----------
    phase, config : str
        Phase and configuration.
    accelerators : int
        Accelerators per replica.
    usd_per_million_requests : float or None
        Cost at full load, at the cheapest price of the hardware; None if it cannot serve every class. [USD]
    placed : int
        Accelerators of this phase on this hardware in the plan, over all regions and periods.
    """

    phase: str
    config: str
    accelerators: int
    usd_per_million_requests: float | None
    placed: int


@dataclass(frozen=True, slots=True)
class OnHardware:
    """Configurations of a service on one hardware.

    Attributes
    ----------
    hardware : str
        Name of the hardware.
    price : str
        Cheapest price in the regions that serve the service, and its pool or offer.
    rejected : dict[str, int]
        Excluded configurations by reason.
    candidates : int
        Number of candidates.
    cheapest : tuple[CheapestConfig, ...]
        Cheapest configuration of each phase.
    """

    hardware: str
    price: str
    rejected: dict[str, int]
    candidates: int
    cheapest: tuple[CheapestConfig, ...]


@dataclass(frozen=True, slots=True)
class ServiceHistory:
    """A service from its landscape to its placements.

    Attributes
    ----------
    service : Service
        Service of the fleet.
    hardware : tuple[OnHardware, ...]
        Hardware in the order of the fleet file.
    placements : tuple[Placement, ...]
        Placements of the service in the plan.
    unmet : tuple[Unmet, ...]
        Demand of the service that the plan leaves unserved.
    binding : tuple[Binding, ...]
        Binding limits in the regions of the service.
    usd : float
        Cost of its placements over the horizon. [USD]
    """

    service: Service
    hardware: tuple[OnHardware, ...]
    placements: tuple[Placement, ...]
    unmet: tuple[Unmet, ...]
    binding: tuple[Binding, ...]
    usd: float

    @property
    def evaluated(self) -> int:
        """Number of evaluated configurations."""
        return sum(sum(row.rejected.values()) + row.candidates for row in self.hardware)


def story(plan: Plan, fleet: Fleet, service: Service, resolver: Resolver) -> ServiceHistory:
    """Return the story of one service in a plan.

    Parameters
    ----------
    plan : Plan
        Plan of the fleet.
    fleet : Fleet
        Fleet of the plan.
    service : Service
        Service of the fleet.
    resolver : Resolver
        Provides the candidates of the service.
    """
    (found, problem), _ = resolver.problem_in_time(fleet)
    regions = {
        problem.pools[p].region
        for cell in problem.cells
        if cell.service == service.name
        for _, p in problem.slots(cell)
    }
    within_reach = _supplied_in(fleet, regions)
    supplied = set(supplied_hardware(within_reach))
    rejected = next((row.by_hardware for row in found.rejections if row.service == service.name), {})
    placements = tuple(row for row in plan.placements if row.service == service.name)
    placed = most_at_once(placements, lambda row: (row.hardware, row.phase))
    rows = []
    for name in supplied_hardware(fleet):
        own = [each for each in found.candidates if (each.service, each.hardware) == (service.name, name)]
        if name not in supplied:
            price = f"no supply in {', '.join(sorted(regions))}"
            rows.append(OnHardware(name, price, rejected.get(name, {}), len(own), ()))
            continue
        usd, price = cheapest_usd_per_accelerator_hour(within_reach, fleet.hardware[name])
        cheapest = []
        for phase in Phase:
            best = _cheapest(service, [each for each in own if each.phase is phase], usd)
            if best is not None:
                candidate, cost = best
                running = placed.get((name, phase), 0)
                cheapest.append(
                    CheapestConfig(phase, candidate.config, candidate.accelerators, cost, running)
                )
        rows.append(OnHardware(name, price, rejected.get(name, {}), len(own), tuple(cheapest)))
    places = {row.pool for row in placements} | {row.region for row in placements} | {service.name}
    return ServiceHistory(
        service=service,
        hardware=tuple(rows),
        placements=placements,
        unmet=tuple(row for row in plan.shortages if row.service == service.name),
        binding=tuple(row for row in plan.binding if places & set(row.name.split())),
        usd=sum(row.usd for row in placements),
    )


def _supplied_in(fleet: Fleet, regions: Collection[str]) -> Fleet:
    """The fleet with the supply of some regions alone."""
    offers = (
        replace(offer, regions=tuple(each for each in offer.regions if each in regions))
        for offer in fleet.offers
    )
    return replace(
        fleet,
        pools=tuple(pool for pool in fleet.pools if pool.region in regions),
        offers=tuple(offer for offer in offers if offer.regions),
    )


def _cheapest(
    service: Service, candidates: list[Candidate], usd_per_hour: float
) -> tuple[Candidate, float | None] | None:
    """Return the candidate with the lowest cost for the mix of classes, preferably one that serves all."""
    if not candidates:
        return None

    def cost(candidate: Candidate) -> float:
        hours = 0.0
        for request_class, rate in zip(service.classes, candidate.requests_per_s, strict=True):
            if request_class.share > 0:
                hours += request_class.share / rate / SECONDS_PER_HOUR if rate else float("inf")
        return hours * candidate.accelerators * usd_per_hour * REQUESTS_PRICED

    best = min(candidates, key=cost)
    return best, None if cost(best) == float("inf") else cost(best)


def left_out(row: OnHardware) -> str:
    """Return the reasons for excluded configurations, most frequent first and dominated ones last."""
    counts = sorted(row.rejected.items(), key=lambda item: (item[0] == DOMINATED, -item[1]))
    return ", ".join(f"{reason} {count:,}" for reason, count in counts)
