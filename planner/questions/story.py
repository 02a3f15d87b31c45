"""One service from its landscape to its placements: what was tried, what fell out, what was taken."""

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
"""Requests that a phase's cost is stated for."""


@dataclass(frozen=True, slots=True)
class Cheapest:
    """The configuration of one phase that serves the service's mix at the least cost on one hardware.

    Attributes
    ----------
    phase, config : str
        What it is.
    accelerators : int
        Of a replica.
    usd_per_million_requests : float or None
        At full load, of the cheapest price of the hardware; None where it cannot serve every class. [USD]
    placed : int
        Accelerators that the plan has of this phase on this hardware, over all regions and periods.
    """

    phase: str
    config: str
    accelerators: int
    usd_per_million_requests: float | None
    placed: int


@dataclass(frozen=True, slots=True)
class OnHardware:
    """What became of a service's configurations on one hardware.

    Attributes
    ----------
    hardware : str
        The hardware.
    price : str
        Its cheapest price in the regions that serve the service, and where that is.
    rejected : dict[str, int]
        Configurations left out, by reason.
    candidates : int
        Configurations that could be chosen.
    cheapest : tuple[Cheapest, ...]
        One a phase.
    """

    hardware: str
    price: str
    rejected: dict[str, int]
    candidates: int
    cheapest: tuple[Cheapest, ...]


@dataclass(frozen=True, slots=True)
class Story:
    """A service from its landscape to its placements.

    Attributes
    ----------
    service : Service
        What is asked of it.
    hardware : tuple[OnHardware, ...]
        In the order of the fleet file.
    placements : tuple[Placement, ...]
        Of the plan.
    unmet : tuple[Unmet, ...]
        What the plan leaves unserved of it.
    binding : tuple[Binding, ...]
        Limits that the plan uses up where the service runs.
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
        """Configurations that were looked at."""
        return sum(sum(row.rejected.values()) + row.candidates for row in self.hardware)


def story(plan: Plan, fleet: Fleet, service: Service, resolver: Resolver) -> Story:
    """The story of one service in a plan.

    Parameters
    ----------
    plan : Plan
        The plan.
    fleet : Fleet
        What it was made for.
    service : Service
        Of that fleet.
    resolver : Resolver
        Has its candidates.
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
                cheapest.append(Cheapest(phase, candidate.config, candidate.accelerators, cost, running))
        rows.append(OnHardware(name, price, rejected.get(name, {}), len(own), tuple(cheapest)))
    places = {row.pool for row in placements} | {row.region for row in placements} | {service.name}
    return Story(
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
    """The candidate with the least cost for the mix of classes; those that serve all of it first."""
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
    """Why configurations of a hardware are no candidates, most first; what others replace comes last."""
    counts = sorted(row.rejected.items(), key=lambda item: (item[0] == DOMINATED, -item[1]))
    return ", ".join(f"{reason} {count:,}" for reason, count in counts)
