"""Searches whose jobs a cluster does: the same result as on this machine, whatever dies on the way."""

from __future__ import annotations

import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.planner.dask_cluster import WAIT_S, DaskCluster, started_cluster, waited_for

COUNTED = "SearchLimits(0.25, 0.0, 1, 2, reproducible=True)"
LONG = "SearchLimits(300.0, 0.0, 1, 2)"
Size = tuple[int, int, int, int]
SMALL, LARGE = (1, 3, 2, 1), (2, 4, 2, 3)
PLAN = r"(step \w[\w ]* [\d.]+)"


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaskCluster]:
    with started_cluster(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


@pytest.fixture
def cluster(shared: DaskCluster) -> DaskCluster:
    shared.revive()
    return shared


def searching(
    cluster: DaskCluster, limits: str, backend: str | None = None, wait_for: int = 1, size: Size = LARGE
) -> tuple[subprocess.Popen[bytes], Path]:
    backend = backend or f"dask://{cluster.address}"
    return cluster.client(
        "from fleetplan.planner.search import SearchLimits\n"
        "from tests.planner.search.on_cluster import main\n"
        f"main({backend!r}, {limits}, {size}, {wait_for})\n"
    )


def found(log: Path) -> str:
    return waited_for(log, r"(found .*)")


def solvers_of(worker: subprocess.Popen[bytes]) -> list[int]:
    """Processes of HiGHS that a worker has started."""
    ask = ["ps", "-ww", "--ppid", str(worker.pid), "-o", "pid=,args="]
    listed = subprocess.run(ask, capture_output=True, text=True, check=False)
    return [int(line.split()[0]) for line in listed.stdout.splitlines() if "highs_child" in line]


def waited_until(happened: Callable[[], bool]) -> bool:
    until = time.monotonic() + WAIT_S
    while not happened() and time.monotonic() < until:
        time.sleep(0.1)
    return happened()


@pytest.mark.more
def test_a_cluster_finds_what_this_machine_finds_though_a_worker_dies(cluster: DaskCluster) -> None:
    first, second = cluster.living(2)
    here, log_here = searching(cluster, COUNTED, "local", size=SMALL)
    there, log = searching(cluster, COUNTED, wait_for=2, size=SMALL)
    waited_for(log, PLAN)
    first.kill()
    assert there.wait(WAIT_S) == here.wait(WAIT_S) == 0, log.read_text()
    assert found(log) == found(log_here)
    assert second.poll() is None


# Of jobs that are no searches tests/planner/jobs/test_cluster.py asks the same.
@pytest.mark.more
def test_workers_that_come_later_are_used_and_a_stop_frees_all_and_keeps_the_plan(
    cluster: DaskCluster,
) -> None:
    (first,) = cluster.living(1)
    client, log = searching(cluster, LONG)
    waited_for(log, PLAN)
    late = cluster.worker()
    for worker in (first, late):
        assert waited_until(lambda at=worker: bool(solvers_of(at)))
    client.send_signal(signal.SIGTERM)
    assert client.wait(WAIT_S) == 0
    assert found(log).endswith("True")
    for worker in (first, late):
        assert waited_until(lambda at=worker: not solvers_of(at))


@pytest.mark.more
def test_a_scheduler_that_dies_ends_in_the_best_plan_and_one_sentence(cluster: DaskCluster) -> None:
    cluster.living(1)
    client, log = searching(cluster, LONG, size=SMALL)
    waited_for(log, PLAN)
    cluster.lose_scheduler()
    assert client.wait(WAIT_S) == 0
    assert found(log).endswith("True")
    said = log.read_text(encoding="utf-8")
    assert "lost the scheduler of the cluster is gone" in said
    assert not [line for line in said.splitlines() if not re.match("step|found|lost", line)], said
