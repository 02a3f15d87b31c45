"""Pool of idle HiGHS processes between searches; starting one takes 0.1 to 0.2 s of a core.

A plan takes several searches and linear relaxations in sequence, each with its own processes. Processes that
are done wait here a few seconds for the next search.
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
    """Pool of idle processes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # Keyed by the process that started them: after a fork they still talk to the parent.
        self._waiting: defaultdict[int, list[tuple[float, HighsProcess]]] = defaultdict(list)
        self._timer: threading.Timer | None = None

    def take(self, key: str) -> HighsProcess:
        """Return an idle process, or a new one.

        Parameters
        ----------
        key : str
            Key of the programs it will need: processes that hold them come first, then the most recently
            used.
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
        """Return a process that has answered all its jobs to the pool."""
        with self._lock:
            self._waiting[os.getpid()].append((time.monotonic(), process))
            self._watch()

    def end_all(self, idle_s: float = 0.0) -> None:
        """End the processes that have waited this long. [s]"""
        before = time.monotonic() - idle_s
        with self._lock:
            waiting = self._waiting[os.getpid()]
            late = [process for since, process in waiting if since <= before]
            waiting[:] = [(since, process) for since, process in waiting if since > before]
        for process in late:
            process.end()

    def _watch(self) -> None:
        """End processes that wait too long, from a thread that lives while any waits."""
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
"""Pool of this Python process."""

atexit.register(IDLE.end_all)
