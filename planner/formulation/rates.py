"""Whole units of rates and hours, the same for all rows of a problem."""

from __future__ import annotations

from fleetplan.planner.formulation.scaling import RateScale, whole_weights
from fleetplan.planner.problem import Problem
from fleetplan.planner.problem.memo import memoised
from fleetplan.planner.units import exact


@memoised
def rate_scales(problem: Problem) -> dict[str, RateScale]:
    """Integer rate units of every service that has demand."""
    largest: dict[str, float] = {}
    for cell in problem.cells:
        headroom = 1 + problem.services[cell.service].headroom
        largest[cell.service] = max(
            largest.get(cell.service, 0.0), *(rate * headroom for rate in cell.most_requests_per_s)
        )
    return {service: RateScale(rate) for service, rate in largest.items()}


def hour_weights(problem: Problem) -> list[int]:
    """Hours of each moment as small whole numbers in their exact ratio: slices last quarters of an hour."""
    return whole_weights([exact(moment.hours) for moment in problem.moments])
