"""Jobs in one process, in several, and on a cluster: the same results, whatever dies on the way."""

from __future__ import annotations

import multiprocessing
import multiprocessing.util
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.planner.jobs.work import (
    killed_always,
    killed_elsewhere,
    killed_once,
    refused,
    run_jobs,
    square,
    whose,
    whose_after,
)
from tests.warm import begun_anew

from fleetplan.fleet.errors import InputError
from fleetplan.planner.jobs import BackendLostError, open_jobs


@pytest.mark.parametrize("here", [False, True])
@pytest.mark.parametrize("workers", [1, 2, 3])
def test_every_job_gives_its_result_once(workers: int, here: bool) -> None:
    found = sorted(run_jobs(square, range(9), workers=workers, here=here))
    assert found == [(number, number * number) for number in range(9)]
    assert list(run_jobs(square, [], workers=workers, here=here)) == []


def test_short_jobs_do_not_wait_for_other_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    # Others begin as they do for users: one that is warm may be there for the last of nine.
    monkeypatch.setattr(multiprocessing.util, "spawnv_passfds", begun_anew)
    assert {pid for _, pid in run_jobs(whose, [0.0] * 9, workers=2, here=True)} == {os.getpid()}


def test_this_process_takes_the_first_jobs_and_others_the_last(tmp_path: Path) -> None:
    first, *others = (str(tmp_path / name) for name in "abc")
    jobs = [(first, *others), *((other,) for other in others)]
    found = dict(run_jobs(whose_after, jobs, workers=2, here=True))
    assert found[0] == os.getpid()
    assert found[1] == found[2] != os.getpid()


def test_what_a_killed_process_had_is_done_here(tmp_path: Path) -> None:
    killed, here = tmp_path / "killed", os.getpid()
    found = list(run_jobs(killed_elsewhere, [(here, str(killed))] * 3, workers=2, here=True))
    assert found == [(number, here) for number in range(3)]
    assert killed.exists()


def test_a_job_whose_process_is_killed_runs_again(tmp_path: Path) -> None:
    markers = [str(tmp_path / str(number)) for number in range(2)]
    assert sorted(run_jobs(killed_once, markers, workers=2)) == [(0, 1), (1, 1)]


def test_jobs_that_kill_their_processes_are_given_up() -> None:
    with pytest.raises(BackendLostError, match="killed in each of 3 rounds"):
        list(run_jobs(killed_always, ["a"], workers=2))


@pytest.mark.parametrize("here", [False, True])
def test_a_bug_in_a_job_is_a_bug_here(here: bool) -> None:
    with pytest.raises(ValueError, match="job 0"):
        list(run_jobs(refused, [0], workers=2, here=here))


@pytest.mark.parametrize("here", [False, True])
def test_no_process_is_left_where_nobody_waits_for_the_rest(here: bool) -> None:
    results = run_jobs(whose, [0.1] * 20, workers=2, here=here)
    next(results)
    assert isinstance(results, Iterator)
    results.close()  # type: ignore[attr-defined]
    deadline = time.monotonic() + 5
    while multiprocessing.active_children() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert multiprocessing.active_children() == []


def test_a_backend_that_does_not_exist() -> None:
    with pytest.raises(InputError, match="there is no such backend; local, dask://"):
        next(run_jobs(square, [1], "ray://"))


def test_jobs_of_several_kinds_share_processes() -> None:
    with open_jobs(workers=2) as run:
        assert sorted(run(square, range(3))) == [(0, 0), (1, 1), (2, 4)]
        before = set(multiprocessing.active_children())
        assert sorted(run(abs, [-1, -2])) == [(0, 1), (1, 2)]
        assert set(multiprocessing.active_children()) == before
