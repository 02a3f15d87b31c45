"""Dask cluster: an existing one, or one on this machine."""

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
from fleetplan.planner.jobs.backend_errors import BackendLostError

if TYPE_CHECKING:
    from distributed import Client

CONNECT_TIMEOUT_S: Final = 10.0
"""Time for a scheduler to answer and to have a worker. [s]"""

LARGEST_JOB_B: Final = 2**40
"""Job size above which Dask may warn. [B]"""

PACKAGE: Final = "fleetplan"
"""Package whose version must be the same on all machines, because functions are sent by name."""

LOOK_INTERVAL_S: Final = 1.0
"""Interval between queries of a cluster's threads. [s]"""

_ArgumentT = TypeVar("_ArgumentT")
_ResultT = TypeVar("_ResultT")


class Cluster:
    """Workers of a Dask cluster.

    Parameters
    ----------
    client : distributed.Client
        Connected client, closed by the code that opened it.

    Attributes
    ----------
    lost : str
        Why no worker answers any more; empty while one does.
    moved_bytes : int
        Bytes sent and received, as counted by the submitters of jobs. [B]
    """

    def __init__(self, client: Client) -> None:
        import dask  # noqa: PLC0415

        # Jobs carry their data, which is used once; Dask would warn of that.
        dask.config.set({"distributed.admin.large-graph-warning-threshold": LARGEST_JOB_B})
        self._client = client
        self._threads: tuple[str, ...] = ()
        self._looked = -math.inf
        self.lost = ""
        self.moved_bytes = 0

    @property
    def threads(self) -> tuple[str, ...]:
        """Return the worker address of each thread, including new workers and excluding lost ones."""
        if time.monotonic() - self._looked > LOOK_INTERVAL_S and not self.lost:
            with _losses(self):
                threads = self._client.nthreads()
            self._threads = tuple(worker for worker, count in threads.items() for _ in range(count))
            self._looked = time.monotonic()
        return self._threads

    def submit(self, function: Callable[..., Any], *arguments: Any, thread: int | None = None) -> Any:
        """Submit a job and return its future.

        Parameters
        ----------
        function, arguments
            Function and arguments.
        thread : int or None
            Number of the thread that runs it, if its worker is still there; None for any. Dask alone would
            send jobs to the worker that holds their data while others idle.

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
        """Yield futures as they finish; raises as `result` does."""
        from distributed import as_completed  # noqa: PLC0415

        with _losses(self):
            yield from as_completed(futures)

    def cancel(self, futures: Sequence[Any]) -> None:
        """Cancel jobs; errors of a lost cluster are ignored."""
        with contextlib.suppress(Exception):
            self._client.cancel(list(futures), force=True)

    def run(
        self, function: Callable[[_ArgumentT], _ResultT], arguments: Sequence[_ArgumentT]
    ) -> Iterator[tuple[int, _ResultT]]:
        """Yield numbered results, as `RunJobs` describes.

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
        """Call a coroutine function on every worker's event loop, without waiting."""
        with contextlib.suppress(Exception):
            self._client.run(function, *arguments, wait=False)


@contextlib.contextmanager
def _losses(cluster: Cluster) -> Iterator[None]:
    """Turn the errors of a lost cluster into one, and record it."""
    from distributed import KilledWorker  # noqa: PLC0415
    from distributed.comm import CommClosedError  # noqa: PLC0415

    try:
        yield
    except KilledWorker as error:
        cluster.lost = "a job killed its worker at every attempt; out of memory?"
        raise BackendLostError(cluster.lost) from error
    except (CancelledError, CommClosedError, OSError, TimeoutError) as error:
        cluster.lost = "the scheduler of the cluster is gone"
        raise BackendLostError(cluster.lost) from error


@contextlib.contextmanager
def open_cluster(address: str, workers: int) -> Iterator[Cluster]:
    """Connect to a cluster with workers of this version, while the context lasts.

    Parameters
    ----------
    address : str
        HOST:PORT of a scheduler; empty for a cluster on this machine, which ends with the context.
    workers : int
        Workers of a cluster on this machine.

    Raises
    ------
    InputError
        If Dask is not installed, nothing answers, or the workers have another version.
    """
    with contextlib.ExitStack() as stack:
        yield Cluster(_connected(stack, address, workers))


def _connected(stack: contextlib.ExitStack, address: str, workers: int) -> Client:
    """Return a client; the stack closes it, and any cluster started for it."""
    try:
        from distributed import Client, LocalCluster  # noqa: PLC0415  (an extra, and slow to import)
    except ImportError as error:
        hint = "pip install 'fleetplan[cluster]'"
        raise _mistake(address, "dask is not installed", hint) from error
    # Dask logs each lost connection with a traceback; we report losses once.
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
