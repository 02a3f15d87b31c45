"""Solve the points of a grid, each as a job."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from fleetplan.fleet.inventory import Fleet
from fleetplan.fleet.machine import usable_cores
from fleetplan.planner.jobs import LOCAL, open_jobs
from fleetplan.planner.questions.resolving import Resolver
from fleetplan.planner.questions.sweep.axes import SweepPoint
from fleetplan.planner.questions.sweep.results import (
    PointResult,
    figures_of,
    point_key,
    read_result,
    result_file,
    write_result,
)
from fleetplan.planner.search import SearchLimits

MOST_UNASKED: Final = 8
"""Default maximum of points solved in parallel. Each takes a core and about 400 MB."""


@dataclass(frozen=True, slots=True)
class SweepTask:
    """One point to solve.

    Attributes
    ----------
    point : SweepPoint
        Position in the grid.
    fleet : Fleet
        Fleet at the point.
    limits : SearchLimits
        Limits of the solve.
    """

    point: SweepPoint
    fleet: Fleet
    limits: SearchLimits

    @property
    def key(self) -> str:
        """Hash of everything that the result depends on."""
        return point_key(self.fleet, self.point, self.limits)


def solve_point(resolver: Resolver, task: SweepTask) -> PointResult:
    """Return the result of one point; runs in any process."""
    answer = resolver.solve(task.fleet)
    if answer.plan is not None:
        return PointResult(
            point=task.point.values, status=answer.plan.status, figures=figures_of(answer.plan)
        )
    status = "infeasible" if answer.infeasible else "no_plan"
    return PointResult(point=task.point.values, status=status, figures=())


def points_before(tasks: Sequence[SweepTask], folder: Path) -> list[PointResult | None]:
    """Return the results of points stored in a folder by an earlier sweep, None for missing ones."""
    return [read_result(result_file(folder, task.key)) for task in tasks]


def run_sweep(
    tasks: Sequence[SweepTask], folder: Path, jobs: int | None, backend: str
) -> Iterator[tuple[int, PointResult]]:
    """Solve points, and yield the number and result of each as soon as it is solved.

    Parameters
    ----------
    tasks : Sequence[SweepTask]
        Points without a result.
    folder : Path
        Receives a file for each result as soon as it exists, so that an interrupted sweep can resume.
    jobs : int or None
        Number of points solved in parallel, in separate processes. None uses one per core and also solves
        points in this process, so that short ones need not wait for others to start.
    backend : str
        `local`, or `dask://` with the address of a scheduler.

    Raises
    ------
    InputError
        The backend does not exist, or there is no scheduler at the address.
    BackendLostError
        The workers are lost; the results so far are written.
    """
    if not tasks:
        return
    for number, result in _solved(tasks, Resolver(tasks[0].limits), jobs, backend):
        write_result(result_file(folder, tasks[number].key), result)
        yield number, result


def at_a_time(points: int, jobs: int | None, backend: str) -> int:
    """Return the number of points solved in parallel by `run_sweep`."""
    unasked = jobs is None and backend == LOCAL
    return min(usable_cores(), MOST_UNASKED, points) if unasked else jobs or usable_cores()


def _solved(
    tasks: Sequence[SweepTask], resolver: Resolver, jobs: int | None, backend: str
) -> Iterator[tuple[int, PointResult]]:
    """Yield numbered results of points as they are solved."""
    here = jobs is None and backend == LOCAL
    with open_jobs(backend, at_a_time(len(tasks), jobs, backend), here) as run:
        own = replace(resolver, run=run)
        # Evaluate candidates that the fleets share first; each point evaluates the rest.
        own.candidates(tasks[0].fleet)
        yield from own.each(solve_point, tasks)
