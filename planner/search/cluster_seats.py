"""Seats for the jobs of a search on a Dask cluster: one a thread of its workers."""

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
"""Ways to a seat in which what waits would be done: fewer leave seats idle at the end, more take longer."""


class ClusterSeats:
    """Threads of a cluster, for one search.

    Each job is done by a process of HiGHS that its worker starts, so that a worker stays responsive, and a
    process can be ended in the middle of a job.

    Parameters
    ----------
    cluster : Cluster
        Connected.
    programs : Programs
        That jobs name by number; they are sent to each worker once.
    """

    def __init__(self, cluster: Cluster, programs: Programs) -> None:
        self._cluster = cluster
        self._programs = programs
        # Workers that were sent them. Dask would lose what it keeps for us with the worker that has it.
        self._sent: set[str] = set()
        self._running: set[Any] = set()
        self._lock = threading.Lock()
        self._ended = False

    @property
    def count(self) -> int:
        """Threads of all workers; at least one, as the only worker may be about to come back."""
        return max(1, len(self._cluster.threads))

    def batch(self, waiting: int, job_s: float) -> int:
        """A share of what waits, less and less: a way there and back takes as long as a short job."""
        del job_s
        return max(1, waiting // (BATCHES_A_SEAT * self.count))

    def ask(self, seat: int, jobs: Sequence[bytes]) -> list[Answer]:
        """Let a thread do jobs; `Seats` says more."""
        threads = self._cluster.threads
        worker = threads[seat % len(threads)] if threads else ""
        try:
            answers = self._asked(seat, jobs, None if worker in self._sent else self._programs)
        except UnknownProgramsError:
            # Another worker does it: that one is gone, or new at its address.
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
        """Give up the jobs, and end the processes that do them."""
        with self._lock:
            self._ended = True
            running = list(self._running)
        self._cluster.cancel(running)
        self.leave()

    def leave(self) -> None:
        """End the processes on the workers."""
        self._cluster.on_all_workers(end_running, self._programs.key)
