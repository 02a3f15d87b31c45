"""`plan sweep` on several processes and a Dask cluster: interruption, loss and resumption."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pandas as pd
import pytest
from tests.parts import first_parts
from tests.planner.questions.swept import GRID, SCENARIO, SCENARIOS, swept
from tests.warm import WarmProcess, ran

from fleetplan.planner.jobs import RunJobs, run_here
from fleetplan.planner.questions.sweep import run as sweep_run


def test_two_processes_make_the_same_table(whole_sweep: Path, tmp_path: Path) -> None:
    assert swept(tmp_path / "two", "--jobs", 2) == (whole_sweep / "sweep.csv").read_text(encoding="utf-8")


@pytest.mark.more
def test_a_dask_cluster_makes_the_same_table(whole_sweep: Path, tmp_path: Path) -> None:
    pytest.importorskip("distributed", reason="the extra cluster is not installed")
    alone = (whole_sweep / "sweep.csv").read_text(encoding="utf-8")
    # A process of its own: a cluster leaves threads and sockets to the interpreter. Two of its workers take
    # five seconds of a CPU to start; the whole grid of `make slow` has them.
    options = ["--backend", "dask://", "--jobs", "1"]
    ran([*sweeping(GRID), "--out", str(tmp_path / "dask"), *options]).check_returncode()
    assert (tmp_path / "dask" / "sweep.csv").read_text(encoding="utf-8") == alone


def test_points_that_take_long_are_solved_on_all_cores(
    whole_sweep: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A long sweep uses all cores, with at most one process for each point."""
    asked: list[tuple[int, bool]] = []

    @contextmanager
    def opened(_: str, workers: int, here: bool) -> Iterator[RunJobs]:
        asked.append((workers, here))
        yield run_here

    monkeypatch.setattr(sweep_run, "open_jobs", opened)
    monkeypatch.setattr(sweep_run, "usable_cores", lambda: 4)
    alone, three = (whole_sweep / "sweep.csv").read_text(encoding="utf-8"), ("demand=0.5,1,2",)
    assert swept(tmp_path / "four") == alone
    short = swept(tmp_path / "three", grid=three)
    assert swept(tmp_path / "said", "--jobs", 3, grid=three) == short
    assert asked == [(4, True), (3, True), (3, False)]


LONG_POINTS = first_parts((24, 240), 1)
"""Of sweeps that take seconds, at a hundredth of a second a point: a signal arrives before the end."""


def long_grid(points: int) -> tuple[str, str]:
    return "demand=" + ",".join(f"{1 + i / 500:g}" for i in range(points // 2)), "price.big-gpu=0.8,1"


@pytest.mark.more
@pytest.mark.parametrize("points", LONG_POINTS)
def test_a_sweep_that_was_killed_goes_on_where_it_stopped(points: int, tmp_path: Path) -> None:
    grid = long_grid(points)
    expected = swept(tmp_path / "whole", grid=grid)
    folder = tmp_path / "killed"
    command = [*sweeping(grid), "--out", str(folder)]
    kill_after_points(command, folder, 3)
    before = stamps(folder)
    assert 3 <= len(before) < points
    # The table has the points that were known when it was last written.
    written, all_rows = pd.read_csv(folder / "sweep.csv"), pd.read_csv(io.StringIO(expected))
    assert 0 < len(written) < len(all_rows)
    assert len(written.astype(all_rows.dtypes).merge(all_rows)) == len(written)
    ran(command).check_returncode()
    assert (folder / "sweep.csv").read_text(encoding="utf-8") == expected
    after = stamps(folder)
    assert len(after) == points
    assert {name: after[name] for name in before} == before


def sweeping(grid: tuple[str, ...], fleet: Path = SCENARIO) -> list[str]:
    """Return the arguments of `python` to sweep a scenario."""
    return [
        "-m",
        "fleetplan.planner",
        "sweep",
        str(fleet),
        *(text for axis in grid for text in ("--grid", axis)),
    ]


def kill_after_points(command: list[str], folder: Path, count: int, timeout_s: float = 120.0) -> None:
    """Start a sweep, and kill it with all its processes after a number of points."""
    started = WarmProcess(
        command, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        wait_for_points(folder, count, timeout_s)
    finally:
        os.killpg(started.pid, signal.SIGKILL)
        started.wait()


def wait_for_points(folder: Path, count: int, timeout_s: float = 120.0) -> None:
    deadline = time.monotonic() + timeout_s
    while len(stamps(folder)) < count and time.monotonic() < deadline:
        time.sleep(0.005)


def stamps(folder: Path) -> dict[str, int]:
    """When each point was written."""
    found = (folder / "points").glob("*.json") if folder.exists() else ()
    return {path.name: path.stat().st_mtime_ns for path in found}


HEARING_PLAN = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from fleetplan.planner.start import main
main()
"""
"""`plan` that hears Ctrl-C even where the tests are a background job, whose children ignore it."""


@pytest.mark.parametrize("points", LONG_POINTS)
def test_ctrl_c_stops_a_sweep_which_then_goes_on(points: int, tmp_path: Path) -> None:
    command = ["-c", HEARING_PLAN, *sweeping(long_grid(points))[2:], "--out", str(tmp_path)]
    started = WarmProcess(command, start_new_session=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        wait_for_points(tmp_path, 2)
        started.send_signal(signal.SIGINT)
        _, errors = started.communicate(timeout=60)
    finally:
        started.kill()
        started.wait()
    assert started.returncode == 4
    assert b"the same command continues from here" in errors
    before = stamps(tmp_path)
    assert 2 <= len(before) < points
    # The last one may have been written when the signal came.
    assert len(pd.read_csv(tmp_path / "sweep.csv").query("metric == 'tco'")) >= len(before) - 1
    ran(command).check_returncode()
    after = stamps(tmp_path)
    assert len(after) == points
    assert {name: after[name] for name in before} == before


@pytest.mark.slow
def test_25_points_of_the_quarterly_scenario_killed_and_on_every_backend(tmp_path: Path) -> None:
    pytest.importorskip("distributed", reason="the extra cluster is not installed")
    grid = ("demand=0.8,0.9,1,1.1,1.2", "price=0.8,0.9,1,1.1,1.2")
    command = [*sweeping(grid, SCENARIOS / "quarterly.yaml"), "--time-limit", "600"]
    tables = []
    for name, options in (
        ("one", []),
        ("two", ["--jobs", "2"]),
        ("dask", ["--backend", "dask://", "--jobs", "2"]),
    ):
        folder = tmp_path / name
        whole = [*command, "--out", str(folder), *options]
        kill_after_points(whole, folder, 5, 1200.0)
        before = stamps(folder)
        assert 5 <= len(before) < 25
        ran(whole, timeout_s=1200.0).check_returncode()
        after = stamps(folder)
        assert {key: after[key] for key in before} == before
        tables.append((folder / "sweep.csv").read_text(encoding="utf-8"))
    assert tables[0] == tables[1] == tables[2]
    assert len(pd.read_csv(tmp_path / "one" / "sweep.csv").query("metric == 'tco'")) == 25
