"""The fields that rows of a plan share: the moment, and the configuration in its pool."""

from __future__ import annotations

from typing import TypedDict

from fleetplan.planner.problem import Problem


class RowMoment(TypedDict):
    """Fields of a row that belongs to a moment."""

    period: str
    slice: str | None
    scenario: str | None


class RowPlace(RowMoment):
    """Fields of a row about a configuration in a pool and moment."""

    region: str
    pool: str
    service: str
    phase: str
    hardware: str
    config: str


def row_moment(problem: Problem, m: int) -> RowMoment:
    """Name a moment."""
    moment = problem.moments[m]
    return {
        "period": problem.periods[moment.period],
        "slice": moment.slice,
        "scenario": moment.scenario,
    }


def row_place(problem: Problem, c: int, p: int, m: int) -> RowPlace:
    """Name a candidate in a pool and moment."""
    candidate, pool = problem.candidates[c], problem.pools[p]
    return {
        **row_moment(problem, m),
        "region": pool.region,
        "pool": pool.name,
        "service": candidate.service,
        "phase": candidate.phase.value,
        "hardware": candidate.hardware,
        "config": candidate.config,
    }
