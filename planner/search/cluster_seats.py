"""Seats for search jobs on a Dask cluster: one per worker thread."""

from __future__ import annotations

import pickle
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from fleetplan.planner.jobs import BackendLostError
from fleetplan.planner.search.solvers.highs_process import ProcessLostError
from fleetplan.planner.search.solvers.processes_here import UnknownProgramsError, answers_here, end_running
from fleetplan.planner.search.solvers.seats import SeatsLostError

if TYPE_CHECKING:
    from fleetplan.planner.jobs import Cluster
    from fleetplan.planner.search.solvers.highs_jobs import Answer
    from fleetplan.planner.search.solvers.highs_process import Programs

BATCHES_A_SEAT: Final = 4
"""Batches per seat into which waiting jobs are divided: fewer leave seats idle at the end, more add round
trips."""


class ClusterSeats:
    """Worker threads of a cluster, reserved for one search.

    A HiGHS process on the worker does each job, so the worker stays responsive and a job can be aborted.

    Parameters
    ----------
    cluster : Cluster
        Connected cluster.
    programs : Programs
        Linear and integer programs that jobs refer to by number; sent once to each worker.
    """

    def __init__(self, cluster: Cluster, programs: Programs) -> None:
        self._cluster = cluster
        self._programs = programs
        # Workers that have the programs. Dask would lose data that it stores for us when their worker dies.
        self._sent: set[str] = set()
        self._running: set[Any] = set()
        self._lock = threading.Lock()
        self._ended = False

    @property
    def count(self) -> int:
        """Return the number of worker threads, at least one: a lone worker may be reconnecting."""
        return max(1, len(self._cluster.threads))

    def batch(self, waiting: int, job_s: float) -> int:
        """Return how many jobs to send at once; batches shrink, as a round trip takes about a short job."""
        del job_s
        return max(1, waiting // (BATCHES_A_SEAT * self.count))

    def ask(self, seat: int, jobs: Sequence[bytes]) -> list[Answer]:
        """Do jobs on a worker thread, as `Seats` describes."""
        threads = self._cluster.threads
        worker = threads[seat % len(threads)] if threads else ""
        try:
            answers = self._asked(seat, jobs, None if worker in self._sent else self._programs)
        except UnknownProgramsError:
            # The worker at this address is another one: send the programs again.
            answers = self._asked(seat, jobs, self._programs)
        self._sent.add(worker)
        unpickled: list[Answer] = pickle.loads(answers)
        return unpickled

    def _asked(self, seat: int, jobs: Sequence[bytes], programs: Programs | None) -> bytes:
        try:
            future = self._submitted(seat, jobs, programs)
            try:
                answers: bytes = self._cluster.result(future)
            finally:
                self._running.discard(future)
        except BackendLostError as lost:
            if self._ended:
                raise ProcessLostError from lost
            raise SeatsLostError(str(lost)) from lost
        sent = [*jobs, programs.pickled] if programs is not None else jobs
        self._cluster.moved_bytes += sum(map(len, sent)) + len(answers)
        return answers

    def _submitted(self, seat: int, jobs: Sequence[bytes], programs: Programs | None) -> Any:
        with self._lock:
            if self._ended:
                raise ProcessLostError
            future = self._cluster.submit(answers_here, list(jobs), self._programs.key, programs, thread=seat)
            self._running.add(future)
            return future

    def end(self) -> None:
        """Cancel the jobs and end their processes."""
        with self._lock:
            self._ended = True
            running = list(self._running)
        self._cluster.cancel(running)
        self.leave()

    def leave(self) -> None:
        """End this search's HiGHS processes on all workers."""
        self._cluster.on_all_workers(end_running, self._programs.key)
