"""Jobs on a Dask cluster of other processes, some of which die."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.planner.dask_cluster import WAIT_S, DaskCluster, started_cluster, waited_for


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DaskCluster]:
    with started_cluster(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


@pytest.fixture
def cluster(shared: DaskCluster) -> DaskCluster:
    shared.revive()
    return shared


def client(
    cluster: DaskCluster, job: str, count: int, connect_timeout_s: float = WAIT_S
) -> tuple[subprocess.Popen[bytes], Path]:
    return cluster.client(
        "import fleetplan.planner.jobs.cluster\n"
        f"fleetplan.planner.jobs.cluster.CONNECT_TIMEOUT_S = {connect_timeout_s}\n"
        "from tests.planner.jobs import work\n"
        "from fleetplan.fleet.errors import InputError\n"
        "from fleetplan.planner.jobs import BackendLostError\n"
        "try:\n"
        f"    for number, found in work.run_jobs(work.{job}, range({count}), 'dask://{cluster.address}'):\n"
        "        print(number, found, flush=True)\n"
        "except (BackendLostError, InputError) as error:\n"
        "    print(type(error).__name__, error, flush=True)\n"
    )


def results(log: Path) -> list[str]:
    return sorted(log.read_text(encoding="utf-8").splitlines())


def test_a_cluster_of_one_thread_is_used(cluster: DaskCluster) -> None:
    cluster.living(1)
    process, log = client(cluster, "square", 5)
    assert process.wait(WAIT_S) == 0
    assert results(log) == ["0 0", "1 1", "2 4", "3 9", "4 16"]


def test_a_job_of_much_data_is_no_warning(cluster: DaskCluster) -> None:
    cluster.living(1)
    process, log = cluster.client(
        "from tests.planner.jobs import work\n"
        f"print(list(work.run_jobs(len, [bytes(12_000_000)], 'dask://{cluster.address}')))\n"
    )
    assert process.wait(WAIT_S) == 0
    assert results(log) == ["[(0, 12000000)]"]


def test_a_worker_that_dies_loses_no_job(cluster: DaskCluster) -> None:
    (first,) = cluster.living(1)
    process, log = client(cluster, "slowly", 3)
    waited_for(log, r"(\d+ \d+)")
    cluster.worker()
    first.kill()
    assert process.wait(WAIT_S) == 0
    assert results(log) == ["0 0", "1 1", "2 2"]


def test_a_scheduler_that_dies_ends_in_one_sentence(cluster: DaskCluster) -> None:
    cluster.living(1)
    process, log = client(cluster, "slowly", 20)
    waited_for(log, r"(\d+ \d+)")
    cluster.lose_scheduler()
    assert process.wait(WAIT_S) == 0
    assert "BackendLostError the scheduler of the cluster is gone" in results(log)
    numbered = [line for line in results(log) if re.fullmatch(r"\d+ \d+", line)]
    assert len(results(log)) == len(numbered) + 1, log.read_text(encoding="utf-8")


def test_a_cluster_without_workers_is_a_mistake(cluster: DaskCluster) -> None:
    cluster.living(0)
    process, log = client(cluster, "square", 1, connect_timeout_s=1.0)
    assert process.wait(WAIT_S) == 0
    assert "the cluster has no worker" in log.read_text(encoding="utf-8")


def test_nothing_that_answers_is_a_mistake_of_the_address(tmp_path: Path) -> None:
    pytest.importorskip("distributed", reason="the extra cluster is not installed")
    nobody = DaskCluster(tmp_path, address="127.0.0.1:9")
    process, log = client(nobody, "square", 1, connect_timeout_s=0.2)
    assert process.wait(WAIT_S) == 0
    assert "no scheduler answers" in log.read_text(encoding="utf-8")
