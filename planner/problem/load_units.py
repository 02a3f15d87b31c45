"""Load units: the steps in which the load of a replica is divided among classes, regions and pools.

A replica has `LOAD_UNITS_PER_REPLICA` of them. Of one that does far more than its service asks for, a unit
would serve much of the demand; it has more, so that a unit serves at most 7e-5 of the largest demand.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from fleetplan.planner.problem.candidate import Candidate
from fleetplan.planner.problem.memo import memoised
from fleetplan.planner.problem.problem import Problem
from fleetplan.planner.units import LOAD_UNITS_PER_REPLICA

MOST_PARTS: Final = 2**16
"""Parts of a load unit at most: what a replica holds in them stays far below 64 bits, and what fills one far
above the tolerance of a row in HiGHS, 1e-6 of a replica."""

FASTEST_RATIO: Final = 4 * MOST_PARTS
"""A replica that does more than so many times the largest demand of its service counts as doing that: a load
then takes 4e-6 of it too much at most, less than one load unit, and sums stay within 64 bits."""


def parts_of_load_unit(requests_per_s: float, largest_requests_per_s: float) -> int:
    """Parts that a load unit of a replica has, so that one serves little of the largest demand.

    A power of two: 1 for a replica that does up to four times that demand. Of faster ones a part serves
    between 2 and 4 demands over the load units of a replica, 7e-5 of one at most.
    """
    most = FASTEST_RATIO * largest_requests_per_s
    wholes = int(min(requests_per_s, most) / largest_requests_per_s) // 2
    return int(min(1 << max(wholes.bit_length() - 1, 0), MOST_PARTS))


@memoised
def largest_demands(problem: Problem) -> dict[str, float]:
    """Largest demand of every service that has any, of a class in a region and moment, with its headroom."""
    if problem.unit_demands is not None:
        return dict(problem.unit_demands)
    largest: dict[str, float] = {}
    for cell in problem.cells:
        ratio = problem.services[cell.service].planned_ratio
        largest[cell.service] = max(
            largest.get(cell.service, 0.0), *(rate * ratio for rate in cell.most_requests_per_s)
        )
    return largest


def part_of(problem: Problem, **changes: Any) -> Problem:
    """A part of a problem, in the units of the whole.

    Units of rates and loads go by the largest demand. What is found of a part is read as a decision on the
    whole; in units of its own, ten requests/s that stay unmet would be read as a hundred.
    """
    return replace(problem, unit_demands=largest_demands(problem), **changes)


@memoised
def load_parts(problem: Problem) -> tuple[tuple[int, ...], ...]:
    """Parts that a load unit has by candidate and class: more than one where a replica is far too fast.

    Energy and data are paid by load. A replica of 8,600 requests/s whose service asks for 0.5 would pay for
    0.155 at a time, up to 30 % more than it serves.
    """
    largest = largest_demands(problem)
    return tuple(
        tuple(
            parts_of_load_unit(rate, largest[candidate.service]) if candidate.service in largest else 1
            for rate in candidate.requests_per_s
        )
        for candidate in problem.candidates
    )


def load_units(problem: Problem, c: int, k: int) -> float:
    """Units of load of a class that fill a replica: what it serves, over what one of them does."""
    return _units(problem, problem.candidates[c].requests_per_s[k], problem.candidates[c].service)


def units_requests_per_s(problem: Problem, candidate: Candidate) -> tuple[float, ...]:
    """What one load unit serves, by class. [requests/s]"""
    return tuple(rate / _units(problem, rate, candidate.service) for rate in candidate.requests_per_s)


def _units(problem: Problem, requests_per_s: float, service: str) -> float:
    largest = largest_demands(problem).get(service)
    if largest is None:
        return LOAD_UNITS_PER_REPLICA
    parts = parts_of_load_unit(requests_per_s, largest)
    return LOAD_UNITS_PER_REPLICA * parts * max(1.0, requests_per_s / (FASTEST_RATIO * largest))
