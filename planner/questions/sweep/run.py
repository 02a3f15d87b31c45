"""Solving the points of a grid, each of them a job."""

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
"""Most points at a time where nobody says how many. Each takes a core and about 400 MB."""


@dataclass(frozen=True, slots=True)
class SweepTask:
    """One point to solve.

    Attributes
    ----------
    point : SweepPoint
        Where in the grid.
    fleet : Fleet
        Its fleet.
    limits : SearchLimits
        When to stop.
    """

    point: SweepPoint
    fleet: Fleet
    limits: SearchLimits

    @property
    def key(self) -> str:
        """Hash of everything that the result depends on."""
        return point_key(self.fleet, self.point, self.limits)


def solve_point(resolver: Resolver, task: SweepTask) -> PointResult:
    """The result of one point; runs in whatever process it is sent to."""
    answer = resolver.solve(task.fleet)
    if answer.plan is not None:
        return PointResult(
            point=task.point.values, status=answer.plan.status, figures=figures_of(answer.plan)
        )
    status = "infeasible" if answer.infeasible else "no_plan"
    return PointResult(point=task.point.values, status=status, figures=())


def points_before(tasks: Sequence[SweepTask], folder: Path) -> list[PointResult | None]:
    """Results of all points that a sweep before has written into a folder, in their order."""
    return [read_result(result_file(folder, task.key)) for task in tasks]


def run_sweep(
    tasks: Sequence[SweepTask], folder: Path, jobs: int | None, backend: str
) -> Iterator[tuple[int, PointResult]]:
    """Solve points, and yield the number of each with its result as it is solved.

    Parameters
    ----------
    tasks : Sequence[SweepTask]
        Points without a result.
    folder : Path
        Holds a file for each result, written as soon as it is there: a sweep that was interrupted goes on
        where it stopped.
    jobs : int or None
        Points solved at a time, in processes of their own; None for one a core, of which this process takes
        some, so that short ones do not wait for others to start.
    backend : str
        `local`, or `dask://` with the address of a scheduler.

    Raises
    ------
    InputError
        If there is no such backend, or none of that address.
    BackendLostError
        If the workers are gone; the results so far are written.
    """
    if not tasks:
        return
    for number, result in _solved(tasks, Resolver(tasks[0].limits), jobs, backend):
        write_result(result_file(folder, tasks[number].key), result)
        yield number, result


def at_a_time(points: int, jobs: int | None, backend: str) -> int:
    """How many of so many points are solved at a time, as `run_sweep` is asked for them."""
    unasked = jobs is None and backend == LOCAL
    return min(usable_cores(), MOST_UNASKED, points) if unasked else jobs or usable_cores()


def _solved(
    tasks: Sequence[SweepTask], resolver: Resolver, jobs: int | None, backend: str
) -> Iterator[tuple[int, PointResult]]:
    """Yield numbered results of points as they are solved."""
    here = jobs is None and backend == LOCAL
    with open_jobs(backend, at_a_time(len(tasks), jobs, backend), here) as run:
        own = replace(resolver, run=run)
        # Points share what their fleets have in common; what a point has of its own is evaluated with it.
        own.candidates(tasks[0].fleet)
        yield from own.each(solve_point, tasks)
