"""A Dask cluster of processes of this machine, for tests that end some of them."""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.warm import WarmProcess

ROOT = Path(__file__).parents[2]
WAIT_S = 180.0


@dataclass
class DaskCluster:
    """A scheduler of this machine and what was started beside it; `folder` holds what they print.

    Tests of a module share one, take the workers that another test left alive, and start again what it ended.
    """

    folder: Path
    address: str = ""
    scheduler: subprocess.Popen[bytes] | None = None
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)
    clients: list[subprocess.Popen[bytes]] = field(default_factory=list)
    _logs: int = 0

    def revive(self) -> None:
        """Start a scheduler unless one runs, and end processes that a test left beside its workers."""
        _end(self.clients)
        if self.scheduler is None or self.scheduler.poll() is not None:
            _end(self.workers)
            words = ("--port", "0", "--host", "127.0.0.1", "--no-dashboard")
            self.scheduler, log = self._start("-m", "distributed.cli.dask_scheduler", *words)
            self.address = waited_for(log, r"Scheduler at: *tcp://([\d.]+:\d+)")

    def living(self, count: int) -> list[subprocess.Popen[bytes]]:
        """Return `count` workers: end surplus ones, and start missing ones."""
        alive = [worker for worker in self.workers if worker.poll() is None]
        _end(alive[count:])
        self.workers = alive[:count]
        while len(self.workers) < count:
            self.worker()
        return list(self.workers)

    def worker(self) -> subprocess.Popen[bytes]:
        """Start one more worker."""
        words = ("-m", "distributed.cli.dask_worker", self.address, "--nthreads", "1", "--no-nanny")
        self.workers.append(self._start(*words)[0])
        return self.workers[-1]

    def client(self, code: str) -> tuple[subprocess.Popen[bytes], Path]:
        """Run code in a separate process, because a client leaves threads and sockets; return its output."""
        return self.program("-c", code)

    def program(self, *words: str) -> tuple[subprocess.Popen[bytes], Path]:
        """Run Python with arguments in a separate process, and return its output."""
        process, log = self._start(*words)
        self.clients.append(process)
        return process, log

    def lose_scheduler(self) -> None:
        """Kill the scheduler."""
        assert self.scheduler is not None
        self.scheduler.kill()

    def end(self) -> None:
        """Kill everything."""
        _end(self.clients)
        _end(self.workers)
        _end([] if self.scheduler is None else [self.scheduler])

    def _start(self, *words: str) -> tuple[subprocess.Popen[bytes], Path]:
        path = self.folder / f"{self._logs}.txt"
        self._logs += 1
        with path.open("wb") as log:
            return WarmProcess(words, stdout=log, stderr=log, cwd=ROOT), path


def _end(processes: list[subprocess.Popen[bytes]]) -> None:
    for process in processes:
        process.kill()
        process.wait()
    processes.clear()


@contextmanager
def started_cluster(folder: Path) -> Iterator[DaskCluster]:
    """A cluster for the tests of a module; each of them revives it."""
    pytest.importorskip("distributed", reason="the extra cluster is not installed")
    made = DaskCluster(folder)
    try:
        yield made
    finally:
        made.end()


def waited_for(log: Path, pattern: str) -> str:
    deadline = time.monotonic() + WAIT_S
    while time.monotonic() < deadline:
        if found := re.search(pattern, log.read_text(encoding="utf-8")):
            return found[1]
        time.sleep(0.05)
    raise TimeoutError(log.read_text(encoding="utf-8"))
