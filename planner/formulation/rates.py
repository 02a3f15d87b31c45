"""Integer units of rates and hours, shared by all rows of a problem."""

from __future__ import annotations

from typing import Final

from fleetplan.planner.formulation.scaling import RateScale, whole_weights
from fleetplan.planner.problem import Problem
from fleetplan.planner.problem.load_units import largest_demands, load_parts
from fleetplan.planner.problem.memo import memoised
from fleetplan.planner.units import exact

HOUR_RESOLUTION: Final = 10**5
"""Steps of the longest moment where hours have no small common unit: a thousandth of an hour is exact."""


@memoised
def rate_scales(problem: Problem) -> dict[str, RateScale]:
    """Return the integer rate units of every service with demand."""
    largest = largest_demands(problem)
    return {service: RateScale(rate, problem.services[service].headroom) for service, rate in largest.items()}


def rate_units(problem: Problem, c: int, k: int) -> int:
    """Return the rate that `LOAD_UNITS_PER_REPLICA` units of a class serve, rounded down. [rate units]"""
    candidate = problem.candidates[c]
    scale = rate_scales(problem)[candidate.service]
    return scale.rate_units(candidate.requests_per_s[k], load_parts(problem)[c][k])


def rate_units_at_most(problem: Problem, c: int, k: int) -> int:
    """Return that rate rounded up, for upper limits on served traffic. [rate units]"""
    candidate = problem.candidates[c]
    scale = rate_scales(problem)[candidate.service]
    return scale.rate_units_at_most(candidate.requests_per_s[k], load_parts(problem)[c][k])


def hour_weights(problem: Problem) -> list[int]:
    """Return the hours of each moment on a mean day as small integers in exact ratio."""
    return whole_weights([moment.hours_of_mean_day for moment in problem.moments])


def hours_of_day(problem: Problem) -> list[int]:
    """Return the hours of each moment as integers in exact ratio, for rows over one day's moments.

    Hours of a mean day differ widely where a kind of day is rare, and small ones would be rounded.
    """
    return whole_weights([exact(moment.hours) for moment in problem.moments], HOUR_RESOLUTION)
