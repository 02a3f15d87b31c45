"""Demand after the loss of a region: protected services, summed over all regions."""

from __future__ import annotations

from fleetplan.planner.problem.demand import Cell
from fleetplan.planner.problem.problem import Problem


def protected_services(problem: Problem) -> tuple[str, ...]:
    """Return the services that survive the loss of any one region, in the order of the fleet."""
    protected = problem.fleet.policy.survive_region_loss
    return tuple(service.name for service in problem.fleet.services if service.name in protected)


def joint_cells(problem: Problem) -> list[tuple[Cell, tuple[int, ...]]]:
    """Return each protected service's demand by moment over all regions, with the cells it comes from.

    The region of a joint cell is empty: the rest of the fleet serves it as a whole.
    """
    found = []
    for name in protected_services(problem):
        for m in range(len(problem.moments)):
            own = [
                index for index, cell in enumerate(problem.cells) if (cell.service, cell.moment) == (name, m)
            ]
            if own:
                rates = zip(*(problem.cells[index].requests_per_s for index in own), strict=True)
                total = tuple(sum(by_region) for by_region in rates)
                found.append((Cell(name, "", m, total, total), tuple(own)))
    return found
