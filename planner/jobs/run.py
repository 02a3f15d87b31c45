"""The backends by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, TypeVar

from fleetplan.fleet.errors import InputError, Issue

if TYPE_CHECKING:
    from fleetplan.planner.jobs.cluster import Cluster

LOCAL: Final = "local"
CLUSTER: Final = "dask://"
"""Followed by host:port of a scheduler; alone it starts a cluster on this machine."""

_ArgumentT = TypeVar("_ArgumentT")
_ResultT = TypeVar("_ResultT")


def run_jobs(
    function: Callable[[_ArgumentT], _ResultT],
    arguments: Sequence[_ArgumentT],
    backend: str = LOCAL,
    workers: int = 1,
) -> Iterator[tuple[int, _ResultT]]:
    """Yield the number of an argument and the result for it, as they are done.

    Parameters
    ----------
    function : callable
        Of a module, without effects: a job whose worker was lost runs again.
    arguments : Sequence
        One for each job; they travel to other processes by pickle.
    backend : str
        `local`, `dask://` or `dask://HOST:PORT`.
    workers : int
        Jobs at a time; a cluster that exists has as many as it has threads.

    Raises
    ------
    InputError
        If there is no such backend, or the cluster does not answer or has another version of the program.
    BackendLostError
        If the workers are gone while jobs are left.
    """
    if backend == LOCAL:
        # Processes and clusters take a while to import, and one job at a time needs neither.
        if workers == 1:
            return ((number, function(argument)) for number, argument in enumerate(arguments))
        from fleetplan.planner.jobs.processes import run_in_processes  # noqa: PLC0415

        return run_in_processes(function, arguments, workers)
    from fleetplan.planner.jobs.cluster import run_on_cluster  # noqa: PLC0415

    return run_on_cluster(function, arguments, _address(backend), workers)


@contextmanager
def connected(backend: str, workers: int) -> Iterator[Cluster | None]:
    """Connect to the cluster of a backend, for as long as the context lasts; None for this machine.

    Parameters
    ----------
    backend : str
        As `run_jobs` has it.
    workers : int
        Workers of a cluster that is started on this machine.

    Raises
    ------
    InputError
        As `run_jobs`.
    """
    if backend == LOCAL:
        yield None
        return
    from fleetplan.planner.jobs.cluster import open_cluster  # noqa: PLC0415

    with open_cluster(_address(backend), workers) as cluster:
        yield cluster


def _address(backend: str) -> str:
    """HOST:PORT of a cluster; empty for one of this machine."""
    if backend.startswith(CLUSTER):
        return backend.removeprefix(CLUSTER)
    hint = f"{LOCAL}, {CLUSTER} or {CLUSTER}HOST:PORT"
    raise InputError([Issue(f"--backend {backend}", 0, 0, "", "there is no such backend", hint)])
