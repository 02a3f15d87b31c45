"""Rows of a question are printed, written and kept however the command ends."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from tests.planner.dask_cluster import WAIT_S, DaskCluster, started_cluster, waited_for
from typer.testing import CliRunner

from fleetplan.planner import cli
from fleetplan.planner.commands.many_solves import collected, expected
from fleetplan.planner.commands.shared import ExitCode
from fleetplan.planner.jobs import BackendLostError
from fleetplan.planner.questions.loaded_plan import read_asked_plan
from fleetplan.planner.questions.time_estimates import RemainingTime, duration
from fleetplan.planner.search import SearchLimits

SCENARIOS = Path(__file__).parents[3] / "scenarios"


@pytest.fixture(scope="module")
def plan_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tiny")
    shutil.copy(SCENARIOS / "tiny.yaml", folder / "fleet.yaml")
    result = CliRunner().invoke(cli.app, ["solve", str(folder / "fleet.yaml"), "--out", str(folder)])
    assert result.exit_code == 0
    return folder / "plan.json"


@pytest.mark.parametrize(
    ("end", "said"),
    [
        (KeyboardInterrupt(), "stopped: 2 of 5 solves are done"),
        (BackendLostError("the scheduler of the cluster is gone"), "is gone: 2 of 5 solves are done"),
    ],
)
def test_rows_so_far_are_kept(
    end: BaseException, said: str, plan_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept: list[list[int]] = []

    def rows() -> Iterator[int]:
        yield 1
        yield 2
        raise end

    def keep(found: Sequence[int]) -> None:
        kept.append(list(found))

    asked = read_asked_plan(plan_file).plan, SearchLimits(30.0)
    found, code = collected(rows(), expected(5, *asked), str, keep)
    assert (found, code) == ([1, 2], ExitCode.LIMIT)
    assert kept == [[1], [1, 2]]
    errors = capsys.readouterr().err
    assert "5 solves, about" in errors
    assert "2 (2 of 5, about" in errors
    assert said in errors
    with pytest.raises(type(end)):
        collected(iter_raising(end), expected(5, *asked), str, keep)
    found, code = collected(iter_raising(end), expected(5, *asked), str, keep, "; go on", begun=True)
    assert (found, code) == ([], ExitCode.LIMIT)
    assert "0 of 5 solves are done; go on" in capsys.readouterr().err
    assert kept[-1] == []


def iter_raising(end: BaseException) -> Iterator[int]:
    yield from ()
    raise end


def test_the_time_that_is_left_is_estimated() -> None:
    assert RemainingTime(44, 7.0).announced == "44 solves, about 5 min"
    assert RemainingTime(1, 0.0).announced == "1 solve, about 1 s"
    assert RemainingTime(4, 120.0, "point", at_most=True).announced == "4 points, about 8 min at most"
    waited = RemainingTime(2, 0.0)
    assert waited.next() == "1 of 2, about 1 s left"
    assert waited.next() == "2 of 2"
    assert [duration(seconds) for seconds in (0.2, 89.0, 300.0, 7800.0)] == [
        "1 s",
        "89 s",
        "5 min",
        "2 h 10 min",
    ]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[DaskCluster]:
    with started_cluster(tmp_path) as cluster:
        cluster.revive()
        yield cluster


@pytest.mark.more
def test_a_question_on_a_cluster_has_the_same_table_and_one_sentence_if_its_scheduler_is_killed(
    cluster: DaskCluster, plan_file: Path, tmp_path: Path
) -> None:
    command = ["stress", str(plan_file), "--demand", "10%,-10%,20%", "--deterministic"]

    def on_cluster(table: Path) -> tuple[subprocess.Popen[bytes], Path]:
        words = [*command, "--csv", str(table), "--backend", f"dask://{cluster.address}"]
        return cluster.program("-m", "fleetplan.planner", *words)

    alone, there = tmp_path / "alone.csv", tmp_path / "there.csv"
    assert CliRunner().invoke(cli.app, [*command, "--csv", str(alone)]).exit_code == 0
    cluster.worker()
    process, _ = on_cluster(there)
    assert process.wait(WAIT_S) == 0
    assert there.read_text(encoding="utf-8") == alone.read_text(encoding="utf-8")
    process, log = on_cluster(tmp_path / "killed.csv")
    waited_for(log, r"(1 of \d+)")
    cluster.lose_scheduler()
    assert process.wait(WAIT_S) == 4
    said = log.read_text(encoding="utf-8")
    assert "the scheduler of the cluster is gone" in said
    assert "Traceback" not in said
