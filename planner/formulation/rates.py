"""Whole units of rates and hours, the same for all rows of a problem."""

from __future__ import annotations

from fleetplan.planner.formulation.scaling import RateScale, whole_weights
from fleetplan.planner.problem import Problem
from fleetplan.planner.problem.load_units import largest_demands, load_parts
from fleetplan.planner.problem.memo import memoised


@memoised
def rate_scales(problem: Problem) -> dict[str, RateScale]:
    """Integer rate units of every service that has demand."""
    largest = largest_demands(problem)
    return {service: RateScale(rate, problem.services[service].headroom) for service, rate in largest.items()}


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


def hour_weights(problem: Problem) -> list[int]:
    """Hours of each moment on a mean day as small whole numbers in their exact ratio."""
    return whole_weights([moment.hours_of_mean_day for moment in problem.moments])
