"""Fields common to rows of a plan about a configuration in a pool and moment."""

from __future__ import annotations

from fleetplan.planner.problem import Problem
from fleetplan.planner.problem.moments import RowMoment


class RowPlace(RowMoment):
    """Fields of a row about a configuration in a pool and moment."""

    region: str
    pool: str
    service: str
    phase: str
    hardware: str
    config: str


def row_place(problem: Problem, c: int, p: int, m: int) -> RowPlace:
    """Return the fields of a candidate in a pool and moment."""
    candidate, pool = problem.candidates[c], problem.pools[p]
    return {
        **problem.row_moment(m),
        "region": pool.region,
        "pool": pool.name,
        "service": candidate.service,
        "phase": candidate.phase.value,
        "hardware": candidate.hardware,
        "config": candidate.config,
    }
