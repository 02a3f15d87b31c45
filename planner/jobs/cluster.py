"""Jobs on a Dask cluster: one of somebody, or one of this machine."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from typing import TYPE_CHECKING, Any, Final, TypeVar

from fleetplan.fleet.errors import InputError, Issue
from fleetplan.fleet.packages import installed_version
from fleetplan.planner.jobs.lost import BackendLostError

if TYPE_CHECKING:
    from distributed import Client

CONNECT_TIMEOUT_S: Final = 10.0
"""Time for a scheduler to answer and to have a worker. [s]"""

PACKAGE: Final = "fleetplan"
"""Whose version has to be the same on all machines: functions travel by name."""

RETRIES: Final = 3
"""Times that a job runs again after its worker was lost."""

_ArgumentT = TypeVar("_ArgumentT")
_ResultT = TypeVar("_ResultT")


def run_on_cluster(
    function: Callable[[_ArgumentT], _ResultT], arguments: Sequence[_ArgumentT], address: str, workers: int
) -> Iterator[tuple[int, _ResultT]]:
    """Yield numbered results; `run_jobs` says more.

    Parameters
    ----------
    function, arguments
        The jobs.
    address : str
        HOST:PORT of a scheduler; empty for a cluster of this machine.
    workers : int
        Workers of a cluster of this machine.

    Raises
    ------
    InputError
        If Dask is not installed, nothing answers, or the workers have another version.
    BackendLostError
        If the scheduler or all workers are gone.
    """
    with contextlib.ExitStack() as stack:
        client = _connected(stack, address, workers)
        futures: dict[Any, int] = {}
        try:
            for number, argument in enumerate(arguments):
                future = client.submit(function, argument, pure=False, retries=RETRIES)
                futures[future] = number
            yield from _as_done(futures)
        finally:
            # Nobody waits for what is left: the cluster is free for others. One that is gone is free as well.
            with contextlib.suppress(Exception):
                client.cancel(list(futures), force=True)


def _as_done(futures: dict[Any, int]) -> Iterator[tuple[int, Any]]:
    from distributed import KilledWorker, as_completed  # noqa: PLC0415
    from distributed.comm import CommClosedError  # noqa: PLC0415

    gone = (CancelledError, CommClosedError, OSError, TimeoutError)
    try:
        for future in as_completed(futures):
            yield futures[future], future.result()
    except KilledWorker as error:
        raise BackendLostError("a job ended its worker each time; out of memory?") from error
    except gone as error:
        raise BackendLostError("the scheduler of the cluster is gone") from error


def _connected(stack: contextlib.ExitStack, address: str, workers: int) -> Client:
    """Return a client of a cluster that has workers of this version; the stack closes both."""
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
