"""Processes of HiGHS between two searches: starting one takes a tenth of a second of a core or two.

A plan is found by several searches, one after the other, and each of them, as each linear relaxation, asks
processes. Those that have answered everything wait here for the next one, for some seconds.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
from collections import defaultdict
from typing import Final

from fleetplan.planner.search.solvers.highs_process import HighsProcess

IDLE_S: Final = 10.0
"""How long a process waits for the next search. [s]"""


class IdleProcesses:
    """Processes that wait for the next search."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # By the process that started them: after a fork they go on talking to the parent.
        self._waiting: defaultdict[int, list[tuple[float, HighsProcess]]] = defaultdict(list)
        self._timer: threading.Timer | None = None

    def take(self, key: str) -> HighsProcess:
        """Return a process with nothing to do.

        Parameters
        ----------
        key : str
            Of the programs that it will be asked for: one that holds them is the first choice, then the one
            that has waited least, then a new one.
        """
        while True:
            with self._lock:
                waiting = self._waiting[os.getpid()]
                waiting.sort(key=lambda each: (each[1].holds == key, each[0]))
                process = waiting.pop()[1] if waiting else None
            if process is None:
                return HighsProcess()
            if process.lives:
                return process
            process.end()

    def give(self, process: HighsProcess) -> None:
        """Let a process wait that has answered all it was asked."""
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
            process.end()

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


IDLE: Final = IdleProcesses()
"""Those of this program."""

atexit.register(IDLE.end_all)
