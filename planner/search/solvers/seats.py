"""Where the jobs of a search are done: several at a time, one a seat.

A seat is a process of this machine (`ProcessSeats`), or a thread of a cluster (search/cluster_seats.py).
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
"""Processes that a job may lose before it is given up."""


BATCHES_A_PROCESS: Final = 4
"""Jobs that wait are at least so many batches for each process, so that all end together."""

BATCH_S: Final = 0.1
"""Time of the jobs that a process is given at once. Of jobs of 1 ms the client then works 0.10 ms for each
instead of 0.15 ms, and two processes do a fifth more. [s]"""


class SeatsLostError(Exception):
    """Nothing answers jobs any more; what was answered stays valid."""


class Seats(Protocol):
    """Seats for one search."""

    @property
    def count(self) -> int:
        """Jobs that are done at a time; it may grow."""
        ...

    def batch(self, waiting: int, job_s: float) -> int:
        """How many short jobs are worth one way to a seat.

        Parameters
        ----------
        waiting : int
            Jobs that wait.
        job_s : float
            What those before them took; infinite where none are done. [s]
        """
        ...

    def ask(self, seat: int, jobs: Sequence[bytes]) -> list[Answer]:
        """Let a seat do pickled jobs, one after the other.

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
        """End whatever is running; nothing is asked any more."""
        ...

    def leave(self) -> None:
        """Let go of the seats: everything was answered."""
        ...


OpenSeats = Callable[[Programs], Seats]
"""Opens the seats of a search, whose jobs name these programs by number."""


class ProcessSeats:
    """Processes of this machine.

    Parameters
    ----------
    count : int
        Processes.
    programs : Programs
        That jobs name by number.

    Attributes
    ----------
    processes : list[HighsProcess]
        By seat. One that is killed is replaced, and its job done again.
    """

    def __init__(self, count: int, programs: Programs = NO_PROGRAMS) -> None:
        self._programs = programs
        self._ended = False
        self.processes = [IDLE.take(programs.key) for _ in range(count)]

    @property
    def count(self) -> int:
        """Number of processes."""
        return len(self.processes)

    def batch(self, waiting: int, job_s: float) -> int:
        """Some while many short ones wait; one where a job that waits might find another process free."""
        return max(1, int(min(waiting // (BATCHES_A_PROCESS * self.count), BATCH_S / job_s)))

    def ask(self, seat: int, jobs: Sequence[bytes]) -> list[Answer]:
        """Let a process do jobs; `Seats` says more."""
        for _ in range(ATTEMPTS):
            process = self.processes[seat]
            try:
                return process.ask(jobs, self._programs)
            except ProcessLostError as lost:
                if self._ended:
                    raise
                self._replace(seat, process, lost)
        raise SeatsLostError(f"{ATTEMPTS} processes of the solver were killed at one job; out of memory?")

    def end(self) -> None:
        """End the processes."""
        self._ended = True
        for process in self.processes:
            process.end()

    def leave(self) -> None:
        """Let the processes wait for the next search."""
        for process in self.processes:
            IDLE.give(process)

    def _replace(self, seat: int, process: HighsProcess, lost: ProcessLostError) -> None:
        """Put a new process in the seat of one that was killed; raises if it ended by itself: a bug."""
        if process.process.wait() >= 0:
            raise RuntimeError("a solver process ended unexpectedly") from lost
        process.end()
        self.processes[seat] = IDLE.take(self._programs.key)
        if self._ended:
            self.processes[seat].end()
