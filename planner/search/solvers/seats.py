"""Seats, where the jobs of a search run: one job per seat at a time.

A seat is a process of this machine (`ProcessSeats`) or a thread of a cluster (search/cluster_seats.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Protocol

from fleetplan.planner.search.solvers.highs_jobs import Answer
from fleetplan.planner.search.solvers.highs_process import (
    NO_PROGRAMS,
    HighsProcess,
    ProcessLostError,
    Programs,
)
from fleetplan.planner.search.solvers.idle_processes import IDLE

ATTEMPTS: Final = 3
"""Processes that a job may kill before the search gives up."""


BATCHES_A_PROCESS: Final = 4
"""Least number of batches per process into which waiting jobs are divided, so that all processes end
together."""

BATCH_S: Final = 0.1
"""Time of the jobs sent to a process at once. For jobs of 1 ms, batches reduce the client's time per job from
0.15 to 0.10 ms, and two processes do a fifth more. [s]"""


class SeatsLostError(Exception):
    """No seat answers jobs any more; earlier answers stay valid."""


class Seats(Protocol):
    """Seats of one search."""

    @property
    def count(self) -> int:
        """Return the number of jobs that run in parallel; it may grow."""
        ...

    def batch(self, waiting: int, job_s: float) -> int:
        """Return how many short jobs to send to a seat at once.

        Parameters
        ----------
        waiting : int
            Number of waiting jobs.
        job_s : float
            Average time of the jobs so far; infinite if none is done. [s]
        """
        ...

    def ask(self, seat: int, jobs: Sequence[bytes]) -> list[Answer]:
        """Run pickled jobs on a seat, one by one.

        Raises
        ------
        ProcessLostError
            If `end` was called.
        SeatsLostError
            If nothing answers.
        RuntimeError
            If a job fails.
        """
        ...

    def end(self) -> None:
        """Abort all jobs; no more may be sent."""
        ...

    def leave(self) -> None:
        """Release the seats after all jobs are answered."""
        ...


OpenSeats = Callable[[Programs], Seats]
"""Function that opens the seats of a search, given the programs of its jobs."""


class ProcessSeats:
    """Seats that are processes of this machine.

    Parameters
    ----------
    count : int
        Number of processes.
    programs : Programs
        Programs that jobs refer to by number.

    Attributes
    ----------
    processes : list[HighsProcess]
        Processes by seat. A killed one is replaced, and its job repeated.
    """

    def __init__(self, count: int, programs: Programs = NO_PROGRAMS) -> None:
        self._programs = programs
        self._ended = False
        self.processes = [IDLE.take(programs.key) for _ in range(count)]

    @property
    def count(self) -> int:
        """Return the number of processes."""
        return len(self.processes)

    def batch(self, waiting: int, job_s: float) -> int:
        """Return several jobs while many short ones wait; one if another process might be free."""
        return max(1, int(min(waiting // (BATCHES_A_PROCESS * self.count), BATCH_S / job_s)))

    def ask(self, seat: int, jobs: Sequence[bytes]) -> list[Answer]:
        """Run jobs in a process, as `Seats` describes."""
        for _ in range(ATTEMPTS):
            process = self.processes[seat]
            try:
                return process.ask(jobs, self._programs)
            except ProcessLostError as lost:
                if self._ended:
                    raise
                self._replace(seat, process, lost)
        raise SeatsLostError(f"{ATTEMPTS} solver processes were killed at one job; out of memory?")

    def end(self) -> None:
        """End the processes."""
        self._ended = True
        for process in self.processes:
            process.end()

    def leave(self) -> None:
        """Return the processes to the pool of idle ones."""
        for process in self.processes:
            IDLE.give(process)

    def _replace(self, seat: int, process: HighsProcess, lost: ProcessLostError) -> None:
        """Replace a killed process; raises if it ended without a signal, which is a bug."""
        if process.process.wait() >= 0:
            raise RuntimeError("a solver process ended unexpectedly") from lost
        process.end()
        self.processes[seat] = IDLE.take(self._programs.key)
        if self._ended:
            self.processes[seat].end()
