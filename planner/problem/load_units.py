"""Load units: the steps in which a replica's load is divided among classes, regions and pools.

A replica has `LOAD_UNITS_PER_REPLICA` of them. For a replica that serves far more than its service's demand,
one unit would be a large part of the demand; such replicas have more units, so that one serves at most 7e-5
of the largest demand.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from fleetplan.planner.problem.candidate import Candidate
from fleetplan.planner.problem.memo import memoised
from fleetplan.planner.problem.problem import Problem
from fleetplan.planner.units import LOAD_UNITS_PER_REPLICA

MOST_PARTS: Final = 2**16
"""Most parts of a load unit: a replica's load in parts stays far below 64 bits, and one part stays far above
HiGHS's row tolerance of 1e-6 of a replica."""

FASTEST_RATIO: Final = 4 * MOST_PARTS
"""Cap of a replica's rate, as a multiple of its service's largest demand: loads are then too large by at most
4e-6, less than one load unit, and sums stay within 64 bits."""


def parts_of_load_unit(requests_per_s: float, largest_requests_per_s: float) -> int:
    """Return the parts of a replica's load unit, so that one part serves little of the largest demand.

    A power of two: 1 for a replica of up to four times that demand. For faster ones, a part serves 2 to 4
    demands over the load units of a replica, at most 7e-5 of one.
    """
    most = FASTEST_RATIO * largest_requests_per_s
    wholes = int(min(requests_per_s, most) / largest_requests_per_s) // 2
    return int(min(1 << max(wholes.bit_length() - 1, 0), MOST_PARTS))


@memoised
def largest_demands(problem: Problem) -> dict[str, float]:
    """Return the largest demand of each service with any, by class, region and moment, headroom included."""
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
    """Return a part of a problem, in the units of the whole.

    Units of rates and loads depend on the largest demand. Results of a part are read as decisions on the
    whole; in the part's own units, ten unmet requests/s would be read as a hundred.
    """
    return replace(problem, unit_demands=largest_demands(problem), **changes)


@memoised
def load_parts(problem: Problem) -> tuple[tuple[int, ...], ...]:
    """Return the parts per load unit by candidate and class: more than one if a replica is far too fast.

    Energy and data are charged by load. A replica of 8,600 requests/s for a demand of 0.5 would be charged in
    steps of 0.155, up to 30 % more than it serves.
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
    """Return the load units of a class that fill a replica: its rate over that of one unit."""
    return _units(problem, problem.candidates[c].requests_per_s[k], problem.candidates[c].service)


def units_requests_per_s(problem: Problem, candidate: Candidate) -> tuple[float, ...]:
    """Return the rate of one load unit by class. [requests/s]"""
    return tuple(rate / _units(problem, rate, candidate.service) for rate in candidate.requests_per_s)


def _units(problem: Problem, requests_per_s: float, service: str) -> float:
    largest = largest_demands(problem).get(service)
    if largest is None:
        return LOAD_UNITS_PER_REPLICA
    parts = parts_of_load_unit(requests_per_s, largest)
    return LOAD_UNITS_PER_REPLICA * parts * max(1.0, requests_per_s / (FASTEST_RATIO * largest))
