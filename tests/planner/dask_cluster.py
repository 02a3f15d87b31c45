"""A Dask cluster of processes of this machine, for tests that end some of them."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WAIT_S = 180.0


@dataclass
class DaskCluster:
    """A scheduler of this machine and what was started beside it; `folder` holds what they print."""

    folder: Path
    started: list[subprocess.Popen[bytes]] = field(default_factory=list)
    address: str = ""

    def start(self, *words: str) -> subprocess.Popen[bytes]:
        with (self.folder / f"{len(self.started)}.txt").open("wb") as log:
            process = subprocess.Popen([sys.executable, *words], stdout=log, stderr=log, cwd=ROOT)
        self.started.append(process)
        return process

    def worker(self) -> subprocess.Popen[bytes]:
        return self.start("-m", "distributed.cli.dask_worker", self.address, "--nthreads", "1", "--no-nanny")

    def client(self, code: str) -> tuple[subprocess.Popen[bytes], Path]:
        """Run code in a process of its own, as a client leaves threads and sockets behind it; its output."""
        log = self.folder / f"{len(self.started)}.txt"
        return self.start("-c", code), log


@contextmanager
def started_cluster(folder: Path) -> Iterator[DaskCluster]:
    """A cluster that has no worker yet."""
    pytest.importorskip("distributed", reason="the extra cluster is not installed")
    made = DaskCluster(folder)
    words = ("-m", "distributed.cli.dask_scheduler", "--port", "0", "--host", "127.0.0.1", "--no-dashboard")
    made.start(*words)
    try:
        made.address = waited_for(folder / "0.txt", r"Scheduler at: *tcp://([\d.]+:\d+)")
        yield made
    finally:
        for process in made.started:
            process.kill()
            process.wait()


def waited_for(log: Path, pattern: str) -> str:
    deadline = time.monotonic() + WAIT_S
    while time.monotonic() < deadline:
        if found := re.search(pattern, log.read_text(encoding="utf-8")):
            return found[1]
        time.sleep(0.05)
    raise TimeoutError(log.read_text(encoding="utf-8"))
