"""Whole units of rates and hours, the same for all rows of a problem."""

from __future__ import annotations

from fleetplan.planner.formulation.scaling import RateScale, whole_weights
from fleetplan.planner.problem import Problem
from fleetplan.planner.problem.memo import memoised
from fleetplan.planner.units import LOAD_UNITS_PER_REPLICA, exact


@memoised
def rate_scales(problem: Problem) -> dict[str, RateScale]:
    """Integer rate units of every service that has demand."""
    largest: dict[str, float] = {}
    for cell in problem.cells:
        ratio = problem.services[cell.service].planned_ratio
        largest[cell.service] = max(
            largest.get(cell.service, 0.0), *(rate * ratio for rate in cell.most_requests_per_s)
        )
    return {service: RateScale(rate, problem.services[service].headroom) for service, rate in largest.items()}


@memoised
def load_parts(problem: Problem) -> tuple[tuple[int, ...], ...]:
    """Parts that a load unit has by candidate and class: more than one where a replica is far too fast.

    Energy and data are paid by load. A replica of 8,600 requests/s whose service asks for 0.5 would pay for
    0.155 at a time, up to 30 % more than it serves.
    """
    scales = rate_scales(problem)
    return tuple(
        tuple(
            scales[candidate.service].parts(rate) if candidate.service in scales else 1
            for rate in candidate.requests_per_s
        )
        for candidate in problem.candidates
    )


def rate_units(problem: Problem, c: int, k: int) -> int:
    """What `LOAD_UNITS_PER_REPLICA` units of load of a class serve, rounded down. [rate units]"""
    candidate = problem.candidates[c]
    scale = rate_scales(problem)[candidate.service]
    return scale.rate_units(candidate.requests_per_s[k], load_parts(problem)[c][k])


def rate_units_at_most(problem: Problem, c: int, k: int) -> int:
    """The same rounded up: for limits on what may be served. [rate units]"""
    candidate = problem.candidates[c]
    scale = rate_scales(problem)[candidate.service]
    return scale.rate_units_at_most(candidate.requests_per_s[k], load_parts(problem)[c][k])


def load_units(problem: Problem, c: int, k: int) -> float:
    """Units of load of a class that fill a replica: what it serves, over what one of them does."""
    candidate = problem.candidates[c]
    scale, rate = rate_scales(problem)[candidate.service], candidate.requests_per_s[k]
    return LOAD_UNITS_PER_REPLICA * load_parts(problem)[c][k] * max(1.0, rate / scale.fastest_requests_per_s)


def hour_weights(problem: Problem) -> list[int]:
    """Hours of each moment as small whole numbers in their exact ratio: slices last quarters of an hour."""
    return whole_weights([exact(moment.hours) for moment in problem.moments])
