"""A process of HiGHS that answers jobs (highs_child.py), and the programs that it holds for them."""

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
    """A process has ended without an answer: somebody stopped it, or it was killed."""


@dataclass(frozen=True, slots=True)
class Programs:
    """Programs that the jobs of one search name by number; a process is sent them once.

    Attributes
    ----------
    key : str
        Of the search.
    pickled : bytes
        `StackedRows`.
    """

    key: str
    pickled: bytes

    @staticmethod
    def of(programs: StackedRows) -> Programs:
        """Programs under a key that no other search has."""
        return Programs(uuid.uuid4().hex, pickle.dumps(programs, protocol=pickle.HIGHEST_PROTOCOL))


MOST_AHEAD_BYTES: Final = 16_384
"""Jobs that are sent before the answers to others are read. Their answers are as large; a pipe of Linux holds
four times as much, so that neither side waits for the other for ever. [B]"""

NO_PROGRAMS: Final = Programs("", pickle.dumps(no_programs(), protocol=pickle.HIGHEST_PROTOCOL))
"""What a process holds when it starts."""


class HighsProcess:
    """HiGHS in a process of its own, which ends with this one.

    Attributes
    ----------
    process : subprocess.Popen
        With pipes to its input and from its output.
    holds : str
        Key of the programs that it was sent last.
    """

    def __init__(self) -> None:
        self.process = started_child()
        self.holds = NO_PROGRAMS.key

    def ask(self, jobs: Sequence[bytes], programs: Programs) -> list[Answer]:
        """Send pickled jobs, the next ones while it does one, and wait for their answers.

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
        # A pipe that `end` has closed meanwhile is a ValueError; half an answer is a broken pickle.
        except (EOFError, OSError, ValueError, pickle.UnpicklingError) as error:
            raise ProcessLostError from error
        return answers

    @property
    def lives(self) -> bool:
        """Whether it can be asked."""
        return self.process.poll() is None

    def end(self) -> None:
        """End it, whatever it does, and close its pipes."""
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                # Part of a job may wait in its buffer, which nobody will read.
                with suppress(BrokenPipeError):
                    pipe.close()


def started_child() -> subprocess.Popen[bytes]:
    """Start a process that answers jobs."""
    return subprocess.Popen(
        [sys.executable, "-m", "fleetplan.planner.search.solvers.highs_child", str(os.getpid())],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        # A session of its own: Ctrl-C is for the parent, which decides what to keep.
        start_new_session=True,
        env=child_environment(),
    )
