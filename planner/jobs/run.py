"""Job backends by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from fleetplan.fleet.errors import InputError, Issue

if TYPE_CHECKING:
    from fleetplan.planner.jobs.cluster import Cluster

LOCAL: Final = "local"
CLUSTER: Final = "dask://"
"""Followed by host:port of a scheduler; alone, it starts a cluster on this machine."""

_ArgumentT = TypeVar("_ArgumentT")
_ResultT = TypeVar("_ResultT")


class RunJobs(Protocol):
    """Yields the number of each argument with its result, in order of completion."""

    def __call__(
        self, function: Callable[[_ArgumentT], _ResultT], arguments: Sequence[_ArgumentT]
    ) -> Iterator[tuple[int, _ResultT]]:
        """Run a job for each argument.

        Parameters
        ----------
        function : callable
            Module-level function without side effects: a job whose worker was lost runs again.
        arguments : Sequence
            One per job; pickled for other processes.

        Raises
        ------
        BackendLostError
            If the workers are gone while jobs are left.
        """
        ...


def run_here(
    function: Callable[[_ArgumentT], _ResultT], arguments: Sequence[_ArgumentT]
) -> Iterator[tuple[int, _ResultT]]:
    """Run jobs one by one in this process, as `RunJobs` describes."""
    return ((number, function(argument)) for number, argument in enumerate(arguments))


@contextmanager
def open_jobs(backend: str = LOCAL, workers: int = 1, here: bool = False) -> Iterator[RunJobs]:
    """Open a job runner, while the context lasts.

    Parameters
    ----------
    backend : str
        `local`, `dask://` or `dask://HOST:PORT`.
    workers : int
        Parallel jobs; an existing cluster has as many as threads.
    here : bool
        Whether this process runs some of the local jobs: short jobs then need not wait for processes to
        start.

    Raises
    ------
    InputError
        If there is no such backend, or the cluster does not answer or has another program version.
    """
    if backend == LOCAL:
        # Processes and clusters take long to import, and one job at a time needs neither.
        if workers == 1:
            yield run_here
            return
        from fleetplan.planner.jobs.local_pool import LocalAndWorkerPool  # noqa: PLC0415
        from fleetplan.planner.jobs.processes import Processes  # noqa: PLC0415

        with closing(LocalAndWorkerPool(workers) if here else Processes(workers)) as processes:
            yield processes.run
        return
    from fleetplan.planner.jobs.cluster import open_cluster  # noqa: PLC0415

    with open_cluster(_address(backend), workers) as cluster:
        yield cluster.run


@contextmanager
def connected(backend: str, workers: int) -> Iterator[Cluster | None]:
    """Connect to a backend's cluster, while the context lasts; None for this machine.

    Parameters
    ----------
    backend, workers : str, int
        As in `open_jobs`.

    Raises
    ------
    InputError
        As in `open_jobs`.
    """
    if backend == LOCAL:
        yield None
        return
    from fleetplan.planner.jobs.cluster import open_cluster  # noqa: PLC0415

    with open_cluster(_address(backend), workers) as cluster:
        yield cluster


def _address(backend: str) -> str:
    """Return HOST:PORT of a cluster; empty for one on this machine."""
    if backend.startswith(CLUSTER):
        return backend.removeprefix(CLUSTER)
    hint = f"{LOCAL}, {CLUSTER} or {CLUSTER}HOST:PORT"
    raise InputError([Issue(f"--backend {backend}", 0, 0, "", "there is no such backend", hint)])
