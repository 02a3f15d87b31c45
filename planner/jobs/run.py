"""The backends by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, TypeVar

from fleetplan.fleet.errors import InputError, Issue

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
    if backend.startswith(CLUSTER):
        from fleetplan.planner.jobs.cluster import run_on_cluster  # noqa: PLC0415

        return run_on_cluster(function, arguments, backend.removeprefix(CLUSTER), workers)
    hint = f"{LOCAL}, {CLUSTER} or {CLUSTER}HOST:PORT"
    raise InputError([Issue(f"--backend {backend}", 0, 0, "", "there is no such backend", hint)])
