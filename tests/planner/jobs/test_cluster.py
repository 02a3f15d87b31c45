"""Jobs on a Dask cluster of other processes, some of which die."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
WAIT_S = 60.0


@dataclass
class Cluster:
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

    def client(self, job: str, count: int) -> tuple[subprocess.Popen[bytes], Path]:
        """Run jobs in a process of its own, as a client leaves threads and sockets behind it."""
        code = (
            "from tests.planner.jobs import work\n"
            "from fleetplan.fleet.errors import InputError\n"
            "from fleetplan.planner.jobs import BackendLostError, run_jobs\n"
            "try:\n"
            f"    for number, found in run_jobs(work.{job}, range({count}), 'dask://{self.address}'):\n"
            "        print(number, found, flush=True)\n"
            "except (BackendLostError, InputError) as error:\n"
            "    print(type(error).__name__, error, flush=True)\n"
        )
        log = self.folder / f"{len(self.started)}.txt"
        return self.start("-c", code), log


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    pytest.importorskip("distributed", reason="the extra cluster is not installed")
    made = Cluster(tmp_path)
    words = ("-m", "distributed.cli.dask_scheduler", "--port", "0", "--host", "127.0.0.1", "--no-dashboard")
    made.start(*words)
    try:
        made.address = waited_for(tmp_path / "0.txt", r"Scheduler at: *tcp://([\d.]+:\d+)")
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


def results(log: Path) -> list[str]:
    return sorted(log.read_text(encoding="utf-8").splitlines())


def test_a_cluster_of_one_thread_is_used(cluster: Cluster) -> None:
    cluster.worker()
    client, log = cluster.client("square", 5)
    assert client.wait(WAIT_S) == 0
    assert results(log) == ["0 0", "1 1", "2 4", "3 9", "4 16"]


def test_a_worker_that_dies_loses_no_job(cluster: Cluster) -> None:
    first = cluster.worker()
    client, log = cluster.client("slowly", 4)
    waited_for(log, r"(\d+ \d+)")
    cluster.worker()
    first.kill()
    assert client.wait(WAIT_S) == 0
    assert results(log) == ["0 0", "1 1", "2 2", "3 3"]


def test_a_scheduler_that_dies_ends_in_one_sentence(cluster: Cluster) -> None:
    cluster.worker()
    client, log = cluster.client("slowly", 20)
    waited_for(log, r"(\d+ \d+)")
    cluster.started[0].kill()
    assert client.wait(WAIT_S) == 0
    assert "BackendLostError the scheduler of the cluster is gone" in results(log)
    numbered = [line for line in results(log) if re.fullmatch(r"\d+ \d+", line)]
    assert len(results(log)) == len(numbered) + 1, log.read_text(encoding="utf-8")


def test_a_cluster_without_workers_is_a_mistake(cluster: Cluster) -> None:
    client, log = cluster.client("square", 1)
    assert client.wait(WAIT_S) == 0
    assert "the cluster has no worker" in log.read_text(encoding="utf-8")


def test_nothing_that_answers_is_a_mistake_of_the_address(tmp_path: Path) -> None:
    pytest.importorskip("distributed", reason="the extra cluster is not installed")
    nobody = Cluster(tmp_path, address="127.0.0.1:9")
    client, log = nobody.client("square", 1)
    assert client.wait(WAIT_S) == 0
    assert "no scheduler answers" in log.read_text(encoding="utf-8")
