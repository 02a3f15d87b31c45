"""HiGHS process that answers jobs (highs_child.py), and the programs it has been sent."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import uuid
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from fleetplan.fleet.machine import child_environment
from fleetplan.planner.search.solvers.highs_jobs import Answer, StackedRows, no_programs


class ProcessLostError(Exception):
    """A process ended without an answer: it was stopped or killed."""


@dataclass(frozen=True, slots=True)
class Programs:
    """Programs that one search's jobs refer to by number; sent to each process once.

    Attributes
    ----------
    key : str
        Key of the search.
    pickled : bytes
        Pickled `StackedRows`.
    """

    key: str
    pickled: bytes

    @staticmethod
    def of(programs: StackedRows) -> Programs:
        """Return programs under a unique key."""
        return Programs(uuid.uuid4().hex, pickle.dumps(programs, protocol=pickle.HIGHEST_PROTOCOL))


MOST_AHEAD_BYTES: Final = 16_384
"""Jobs sent ahead of the answers to earlier ones. Answers have similar sizes, and a Linux pipe holds four
times as much, so neither side blocks the other. [B]"""

NO_PROGRAMS: Final = Programs("", pickle.dumps(no_programs(), protocol=pickle.HIGHEST_PROTOCOL))
"""Programs of a process when it starts."""


class HighsProcess:
    """HiGHS in a child process, which ends with this one.

    Attributes
    ----------
    process : subprocess.Popen
        Process with pipes to its input and from its output.
    holds : str
        Key of the programs it was sent last.
    """

    def __init__(self) -> None:
        self.process = started_child()
        self.holds = NO_PROGRAMS.key

    def ask(self, jobs: Sequence[bytes], programs: Programs) -> list[Answer]:
        """Send pickled jobs, the next while it works on one, and wait for all answers.

        Raises
        ------
        ProcessLostError
            If the process ends before it answers.
        """
        source, target = self.process.stdout, self.process.stdin
        if source is None or target is None:
            raise ProcessLostError
        try:
            if self.holds != programs.key:
                target.write(programs.pickled)
                self.holds = programs.key
            answers: list[Answer] = []
            sent, on_the_way = 0, 0
            while len(answers) < len(jobs):
                while sent < len(jobs) and (
                    sent == len(answers) or on_the_way + len(jobs[sent]) <= MOST_AHEAD_BYTES
                ):
                    target.write(jobs[sent])
                    on_the_way += len(jobs[sent])
                    sent += 1
                target.flush()
                on_the_way -= len(jobs[len(answers)])
                answers.append(pickle.load(source))
        # If `end` closes the pipe meanwhile, that is a ValueError; half an answer is a broken pickle.
        except (EOFError, OSError, ValueError, pickle.UnpicklingError) as error:
            raise ProcessLostError from error
        return answers

    @property
    def lives(self) -> bool:
        """Return whether the process is running."""
        return self.process.poll() is None

    def end(self) -> None:
        """Kill the process and close its pipes."""
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                # Its buffer may hold part of a job that nobody will read.
                with suppress(BrokenPipeError):
                    pipe.close()


def started_child() -> subprocess.Popen[bytes]:
    """Start a process that answers jobs."""
    return subprocess.Popen(
        [sys.executable, "-m", "fleetplan.planner.search.solvers.highs_child", str(os.getpid())],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        # A separate session: Ctrl-C goes to the parent only, which decides what to keep.
        start_new_session=True,
        env=child_environment(),
    )
