"""Solving the points of a grid, each of them a job."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from fleetplan.fleet.inventory import Fleet
from fleetplan.planner.jobs import run_jobs
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


def solve_point(task: SweepTask) -> PointResult:
    """The result of one point; runs in whatever process it is sent to."""
    answer = Resolver(task.limits).solve(task.fleet)
    if answer.plan is not None:
        return PointResult(
            point=task.point.values, status=answer.plan.status, figures=figures_of(answer.plan)
        )
    status = "infeasible" if answer.infeasible else "no_plan"
    return PointResult(point=task.point.values, status=status, figures=())


def run_sweep(
    tasks: Sequence[SweepTask], folder: Path, jobs: int, backend: str, say: Callable[[str], None]
) -> list[PointResult]:
    """Solve what has no result yet, and return the results of all in their order.

    Parameters
    ----------
    tasks : Sequence[SweepTask]
        Every point.
    folder : Path
        Holds a file for each result, written as soon as it is there: a sweep that was interrupted goes on
        where it stopped.
    jobs : int
        Points solved at a time.
    backend : str
        `local`, or `dask://` with the address of a scheduler.
    say : callable
        Told what is done.

    Raises
    ------
    InputError
        If there is no such backend, or none of that address.
    BackendLostError
        If the workers are gone; the results so far are written.
    """
    files = [result_file(folder, task.key) for task in tasks]
    known = {path: read_result(path) for path in files}
    missing = [(task, path) for task, path in zip(tasks, files, strict=True) if known[path] is None]
    if len(missing) < len(tasks):
        say(f"{len(tasks) - len(missing)} of {len(tasks)} points were solved before")
    results = run_jobs(solve_point, [task for task, _ in missing], backend, jobs)
    for done, (number, result) in enumerate(results, start=1):
        task, path = missing[number]
        write_result(path, result)
        known[path] = result
        say(f"{task.point.text}: {result.status} ({done} of {len(missing)})")
    return [kept for path in files if (kept := known[path]) is not None]
