"""Run `plan` as a process with a separate cache, and inspect what it leaves behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

SOURCES = Path(__file__).parents[2] / "src"

PATIENCE_S = 100.0
"""For a command that takes some seconds on a machine that does nothing else. [s]"""


@dataclass(frozen=True)
class Ended:
    """Exit code and output of a process."""

    code: int
    out: str
    errors: str


class Running:
    """A running `plan` in a separate session."""

    def __init__(
        self,
        arguments: Sequence[object],
        cache: Path,
        environment: Mapping[str, str] | None = None,
        before: Callable[[], None] | None = None,
        stdout: int | None = subprocess.PIPE,
    ) -> None:
        inherited = {key: value for key, value in os.environ.items() if not key.startswith("FLEETPLAN_")}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "fleetplan.planner", *map(str, arguments)],
            env=inherited
            | {"XDG_CACHE_HOME": str(cache), "PYTHONPATH": str(SOURCES)}
            | dict(environment or {}),
            preexec_fn=before,  # noqa: PLW1509 - sets limits of the child alone
            start_new_session=True,
            stdout=stdout,
            stderr=subprocess.PIPE,
            text=True,
        )

    def ended(self) -> Ended:
        """Wait for the end; who does not end in time ends with all of its session."""
        try:
            out, errors = self.process.communicate(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.communicate()
            raise
        return Ended(self.process.returncode, out or "", errors)

    def signalled(self, number: int) -> Ended:
        """Send a signal to the process alone, and wait for the end."""
        self.process.send_signal(number)
        return self.ended()

    def is_running(self) -> bool:
        """Return whether the process still runs."""
        return self.process.poll() is None

    def left(self, patience_s: float = 10.0) -> list[str]:
        """Return what still runs of its session after some time, as command lines."""
        deadline = time.monotonic() + patience_s
        while (alive := _of_session(self.process.pid)) and time.monotonic() < deadline:
            time.sleep(0.1)
        return alive


def _of_session(session: int) -> list[str]:
    """Command lines of the processes of a session, but for those that have ended."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
            if int(fields[3]) == session and fields[0] != "Z":
                found.append((folder / "cmdline").read_text().replace("\0", " "))
        except OSError:
            continue
    return found


def plan(
    arguments: Sequence[object],
    cache: Path,
    environment: Mapping[str, str] | None = None,
    before: Callable[[], None] | None = None,
) -> Ended:
    """Run `plan` to its end; nothing of it may be left."""
    running = Running(arguments, cache, environment, before)
    ended = running.ended()
    assert running.left() == []
    return ended
