"""The backends by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from fleetplan.fleet.errors import InputError, Issue

if TYPE_CHECKING:
    from fleetplan.planner.jobs.cluster import Cluster

LOCAL: Final = "local"
CLUSTER: Final = "dask://"
"""Followed by host:port of a scheduler; alone it starts a cluster on this machine."""

_ArgumentT = TypeVar("_ArgumentT")
_ResultT = TypeVar("_ResultT")


class RunJobs(Protocol):
    """Yields the number of an argument and the result for it, as they are done."""

    def __call__(
        self, function: Callable[[_ArgumentT], _ResultT], arguments: Sequence[_ArgumentT]
    ) -> Iterator[tuple[int, _ResultT]]:
        """Run a job for each argument.

        Parameters
        ----------
        function : callable
            Of a module, without effects: a job whose worker was lost runs again.
        arguments : Sequence
            One for each job; they travel to other processes by pickle.

        Raises
        ------
        BackendLostError
            If the workers are gone while jobs are left.
        """
        ...


def run_here(
    function: Callable[[_ArgumentT], _ResultT], arguments: Sequence[_ArgumentT]
) -> Iterator[tuple[int, _ResultT]]:
    """Run jobs one after the other in this process; `RunJobs` says more."""
    return ((number, function(argument)) for number, argument in enumerate(arguments))


@contextmanager
def open_jobs(backend: str = LOCAL, workers: int = 1, here: bool = False) -> Iterator[RunJobs]:
    """Open what runs jobs, for as long as the context lasts.

    Parameters
    ----------
    backend : str
        `local`, `dask://` or `dask://HOST:PORT`.
    workers : int
        Jobs at a time; a cluster that exists has as many as it has threads.
    here : bool
        Whether this process does some of them, of several of this machine: where jobs may be short, they do
        not wait for processes to start.

    Raises
    ------
    InputError
        If there is no such backend, or the cluster does not answer or has another version of the program.
    """
    if backend == LOCAL:
        # Processes and clusters take a while to import, and one job at a time needs neither.
        if workers == 1:
            yield run_here
            return
        from fleetplan.planner.jobs.beside import HereAndBeside  # noqa: PLC0415
        from fleetplan.planner.jobs.processes import Processes  # noqa: PLC0415

        with closing(HereAndBeside(workers) if here else Processes(workers)) as processes:
            yield processes.run
        return
    from fleetplan.planner.jobs.cluster import open_cluster  # noqa: PLC0415

    with open_cluster(_address(backend), workers) as cluster:
        yield cluster.run


@contextmanager
def connected(backend: str, workers: int) -> Iterator[Cluster | None]:
    """Connect to the cluster of a backend, for as long as the context lasts; None for this machine.

    Parameters
    ----------
    backend, workers : str, int
        As `open_jobs` has them.

    Raises
    ------
    InputError
        As `open_jobs`.
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
