"""A Dask cluster: one of somebody, or one of this machine."""

from __future__ import annotations

import contextlib
import logging
import math
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from typing import TYPE_CHECKING, Any, Final, TypeVar

from fleetplan.fleet.errors import InputError, Issue
from fleetplan.fleet.packages import installed_version
from fleetplan.planner.jobs.lost import BackendLostError

if TYPE_CHECKING:
    from distributed import Client

CONNECT_TIMEOUT_S: Final = 10.0
"""Time for a scheduler to answer and to have a worker. [s]"""

LARGEST_JOB_B: Final = 2**40
"""Data of a job of which Dask may warn. [B]"""

PACKAGE: Final = "fleetplan"
"""Whose version has to be the same on all machines: functions travel by name."""

LOOK_INTERVAL_S: Final = 1.0
"""How often a cluster is asked for its threads. [s]"""

_ArgumentT = TypeVar("_ArgumentT")
_ResultT = TypeVar("_ResultT")


class Cluster:
    """Workers of a Dask cluster.

    Parameters
    ----------
    client : distributed.Client
        Connected; it is closed by whoever opened it.

    Attributes
    ----------
    lost : str
        Why nothing answers any more; empty while something does.
    moved_bytes : int
        What those who submit jobs say that went out and came back. [B]
    """

    def __init__(self, client: Client) -> None:
        import dask  # noqa: PLC0415

        # A job is its data, which nobody needs twice: Dask warns of such jobs.
        dask.config.set({"distributed.admin.large-graph-warning-threshold": LARGEST_JOB_B})
        self._client = client
        self._threads: tuple[str, ...] = ()
        self._looked = -math.inf
        self.lost = ""
        self.moved_bytes = 0

    @property
    def threads(self) -> tuple[str, ...]:
        """Address of the worker of each thread: those that came later as well, and none that is gone."""
        if time.monotonic() - self._looked > LOOK_INTERVAL_S and not self.lost:
            with _losses(self):
                threads = self._client.nthreads()
            self._threads = tuple(worker for worker, count in threads.items() for _ in range(count))
            self._looked = time.monotonic()
        return self._threads

    def submit(self, function: Callable[..., Any], *arguments: Any, thread: int | None = None) -> Any:
        """Begin a job; what is returned is its future.

        Parameters
        ----------
        function, arguments
            The job.
        thread : int or None
            Number of the thread that does it, if its worker is still there; None for any. Dask itself sends
            jobs to the worker that holds what they ask for, while others have nothing to do.

        Raises
        ------
        BackendLostError
            If nothing answers.
        """
        with _losses(self):
            threads = () if thread is None else self.threads
            workers = [threads[thread % len(threads)]] if thread is not None and threads else None
            return self._client.submit(
                function, *arguments, pure=False, workers=workers, allow_other_workers=workers is not None
            )

    def result(self, future: Any) -> Any:
        """Wait for the result of a job.

        Raises
        ------
        BackendLostError
            If its workers or the scheduler are gone, or it was cancelled.
        """
        with _losses(self):
            return future.result()

    def as_done(self, futures: Sequence[Any]) -> Iterator[Any]:
        """Yield futures as they are done; raises as `result` does."""
        from distributed import as_completed  # noqa: PLC0415

        with _losses(self):
            yield from as_completed(futures)

    def cancel(self, futures: Sequence[Any]) -> None:
        """Give up jobs: nobody waits for them. A cluster that is gone has given them up."""
        with contextlib.suppress(Exception):
            self._client.cancel(list(futures), force=True)

    def run(
        self, function: Callable[[_ArgumentT], _ResultT], arguments: Sequence[_ArgumentT]
    ) -> Iterator[tuple[int, _ResultT]]:
        """Yield numbered results; `RunJobs` says more.

        Raises
        ------
        BackendLostError
            If the scheduler or all workers are gone.
        """
        futures: dict[Any, int] = {}
        try:
            for number, argument in enumerate(arguments):
                futures[self.submit(function, argument)] = number
            for future in self.as_done(list(futures)):
                yield futures[future], self.result(future)
        finally:
            self.cancel(list(futures))

    def on_all_workers(self, function: Callable[..., Awaitable[None]], *arguments: Any) -> None:
        """Call a coroutine function on the event loop of every worker; nobody waits for it."""
        with contextlib.suppress(Exception):
            self._client.run(function, *arguments, wait=False)


@contextlib.contextmanager
def _losses(cluster: Cluster) -> Iterator[None]:
    """Turn what a lost cluster raises into one error, and note it."""
    from distributed import KilledWorker  # noqa: PLC0415
    from distributed.comm import CommClosedError  # noqa: PLC0415

    try:
        yield
    except KilledWorker as error:
        cluster.lost = "a job ended its worker each time; out of memory?"
        raise BackendLostError(cluster.lost) from error
    except (CancelledError, CommClosedError, OSError, TimeoutError) as error:
        cluster.lost = "the scheduler of the cluster is gone"
        raise BackendLostError(cluster.lost) from error


@contextlib.contextmanager
def open_cluster(address: str, workers: int) -> Iterator[Cluster]:
    """Connect to a cluster that has workers of this version, for as long as the context lasts.

    Parameters
    ----------
    address : str
        HOST:PORT of a scheduler; empty for a cluster of this machine, which ends with the context.
    workers : int
        Workers of a cluster of this machine.

    Raises
    ------
    InputError
        If Dask is not installed, nothing answers, or the workers have another version.
    """
    with contextlib.ExitStack() as stack:
        yield Cluster(_connected(stack, address, workers))


def _connected(stack: contextlib.ExitStack, address: str, workers: int) -> Client:
    """Return a client; the stack closes it, and a cluster that was started for it."""
    try:
        from distributed import Client, LocalCluster  # noqa: PLC0415  (an extra, and slow to import)
    except ImportError as error:
        hint = "pip install 'fleetplan[cluster]'"
        raise _mistake(address, "dask is not installed", hint) from error
    # It logs each lost connection with a traceback; what is lost is told once, by us.
    for name in list(logging.root.manager.loggerDict):
        if name.partition(".")[0] in ("distributed", "tornado"):
            logging.getLogger(name).setLevel(logging.CRITICAL)
    if not address:
        cluster = LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None)
        return stack.enter_context(Client(stack.enter_context(cluster)))
    try:
        client = Client(f"tcp://{address}", timeout=CONNECT_TIMEOUT_S)
    except OSError as error:
        message, hint = f"no scheduler answers: {error}", "dask scheduler prints its address"
        raise _mistake(address, message, hint) from error
    stack.callback(_close, client)
    try:
        client.wait_for_workers(1, timeout=CONNECT_TIMEOUT_S)
    except TimeoutError as error:
        hint = f"dask worker {address} adds one"
        raise _mistake(address, "the cluster has no worker", hint) from error
    _compare_versions(client, address)
    return client


def _close(client: Client) -> None:
    with contextlib.suppress(Exception):
        client.close(timeout=CONNECT_TIMEOUT_S)


def _compare_versions(client: Client, address: str) -> None:
    own = installed_version(PACKAGE)
    found: dict[str, str] = client.run(installed_version, PACKAGE, on_error="return")
    for worker, version in found.items():
        if version != own:
            message = f"worker {worker} has fleetplan {version}, not {own}"
            raise _mistake(address, message, "install the same version on all machines")


def _mistake(address: str, message: str, hint: str) -> InputError:
    return InputError([Issue(f"--backend dask://{address}", 0, 0, "", message, hint)])
