"""Processes of HiGHS between two searches: starting one takes a tenth of a second of a core or two.

A plan is found by several searches, one after the other, and each of them, as each linear relaxation, asks
processes. Those that have answered everything wait here for the next one, for some seconds.
"""

from __future__ import annotations

import atexit
import os
import pickle
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from typing import Final

IDLE_S: Final = 10.0
"""How long a process waits for the next search. [s]"""

Process = subprocess.Popen[bytes]

_NO_PROGRAMS: Final = pickle.dumps((), protocol=pickle.HIGHEST_PROTOCOL)


class IdleProcesses:
    """Processes that wait for the next search.

    Parameters
    ----------
    start : callable
        Starts one, with pipes.
    """

    def __init__(self, start: Callable[[], Process]) -> None:
        self._start = start
        self._lock = threading.Lock()
        # By the process that started them: after a fork they go on talking to the parent.
        self._waiting: defaultdict[int, list[tuple[float, Process]]] = defaultdict(list)
        self._timer: threading.Timer | None = None

    def take(self) -> Process:
        """Return a process with nothing to do: one that waits, or a new one."""
        while True:
            with self._lock:
                waiting = self._waiting[os.getpid()]
                process = waiting.pop()[1] if waiting else None
            if process is None:
                return self._start()
            if process.poll() is None:
                return process
            end(process)

    def give(self, process: Process) -> None:
        """Let a process wait that has answered all it was asked; it forgets its programs."""
        try:
            if process.stdin is None:
                raise BrokenPipeError
            process.stdin.write(_NO_PROGRAMS)
            process.stdin.flush()
        except BrokenPipeError:
            end(process)
            return
        with self._lock:
            self._waiting[os.getpid()].append((time.monotonic(), process))
            self._watch()

    def end_all(self, idle_s: float = 0.0) -> None:
        """End the processes that have waited for so long. [s]"""
        before = time.monotonic() - idle_s
        with self._lock:
            waiting = self._waiting[os.getpid()]
            late = [process for since, process in waiting if since <= before]
            waiting[:] = [(since, process) for since, process in waiting if since > before]
        for process in late:
            end(process)

    def _watch(self) -> None:
        """End processes that wait for too long, from a thread that lives while any waits."""
        if self._timer is not None and self._timer.is_alive():
            return
        self._timer = threading.Timer(IDLE_S, self._look)
        self._timer.daemon = True
        self._timer.start()

    def _look(self) -> None:
        self.end_all(IDLE_S)
        with self._lock:
            self._timer = None
            if self._waiting[os.getpid()]:
                self._watch()


def end(process: Process) -> None:
    """End a process, whatever it does, and close its pipes."""
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            # Part of a job may wait in its buffer, which nobody will read.
            with suppress(BrokenPipeError):
                pipe.close()


def started_child() -> Process:
    """A process that answers jobs (highs_child.py); it ends with this one."""
    return subprocess.Popen(
        [sys.executable, "-m", "fleetplan.planner.search.solvers.highs_child", str(os.getpid())],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        # A session of its own: Ctrl-C is for the parent, which decides what to keep.
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
    )


IDLE: Final = IdleProcesses(started_child)
"""Those of this program."""

atexit.register(IDLE.end_all)
