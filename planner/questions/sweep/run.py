"""Solving the points of a grid: in this process, in several, or on a Dask cluster, all through joblib."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import joblib

from fleetplan.fleet.errors import InputError, Issue
from fleetplan.fleet.inventory import Fleet
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

LOCAL: Final = "local"
DASK: Final = "dask://"
"""Followed by host:port of a scheduler; alone it starts a cluster on this machine."""


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
    """
    files = [result_file(folder, task.key) for task in tasks]
    known = {path: read_result(path) for path in files}
    missing = [(task, path) for task, path in zip(tasks, files, strict=True) if known[path] is None]
    if len(missing) < len(tasks):
        say(f"{len(tasks) - len(missing)} of {len(tasks)} points were solved before")
    with _backend(backend, jobs) as parallel:
        calls = (joblib.delayed(_numbered)(number, task) for number, (task, _) in enumerate(missing))
        for done, (number, result) in enumerate(parallel(calls)):
            task, path = missing[number]
            write_result(path, result)
            known[path] = result
            say(f"{task.point.text}: {result.status} ({done + 1} of {len(missing)})")
    return [result for path in files if (result := known[path]) is not None]


def _numbered(number: int, task: SweepTask) -> tuple[int, PointResult]:
    """The result with the number of its task: they come back as they are done."""
    return number, solve_point(task)


@contextmanager
def _backend(name: str, jobs: int) -> Iterator[joblib.Parallel]:
    if name == LOCAL:
        yield joblib.Parallel(n_jobs=jobs, return_as="generator_unordered")
        return
    if not name.startswith(DASK):
        raise _mistake(name, "there is no such backend", f"{LOCAL}, {DASK} or {DASK}HOST:PORT")
    try:
        from distributed import Client, LocalCluster  # noqa: PLC0415  (an extra, and slow to import)
    except ImportError as error:
        hint = "pip install 'fleetplan[cluster]'"
        raise _mistake(name, "dask is not installed", hint) from error
    address = name.removeprefix(DASK)
    if address:
        try:
            client = Client(f"tcp://{address}", timeout=CONNECT_TIMEOUT_S)
        except OSError as error:
            raise _mistake(
                name, f"no scheduler answers: {error}", "dask scheduler prints its address"
            ) from error
        with client, joblib.parallel_config(backend="dask"):
            yield joblib.Parallel(n_jobs=-1, return_as="generator_unordered")
        return
    with (
        LocalCluster(n_workers=jobs, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster),
        joblib.parallel_config(backend="dask"),
    ):
        yield joblib.Parallel(n_jobs=-1, return_as="generator_unordered")


CONNECT_TIMEOUT_S: Final = 10.0
"""Time for a scheduler to answer. [s]"""


def _mistake(name: str, message: str, hint: str) -> InputError:
    return InputError([Issue(f"--backend {name}", 0, 0, "", message, hint)])
