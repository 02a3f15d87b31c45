"""Other processes evaluate the last hardware into the cache, and end with the one that started them."""

from __future__ import annotations

import os
import pickle
import sys
import threading
import time
from pathlib import Path

import pytest
from tests.cache_home import own_cache_home
from tests.warm import ran

from fleetplan.fleet.machine import usable_cores
from fleetplan.perfmodel.landscape import cache
from fleetplan.planner.candidates import build_candidates, parallel_evaluation
from fleetplan.planner.candidates.evaluations import Evaluations
from fleetplan.scenarios.load import load_fleet

SERVICE = """\
  - name: {name}
    model: llama3-8b
    workload: {{input_tokens: {input_tokens}, output_tokens: 100}}
    slo: {{ttft_ms: 2000, tpot_ms: 60}}
    demand: 1
"""
FLEET = """\
version: 1
offers:
  - {name: one, hardware: MI300X, rent_usd_per_accelerator_hour: 2.0}
  - {name: two, hardware: MI325X, rent_usd_per_accelerator_hour: 2.0}
services:
""" + "".join(SERVICE.format(name=f"chat-{n}", input_tokens=500 + n) for n in range(3))


@pytest.fixture
def fleet_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(own_cache_home(tmp_path / "cache")))
    monkeypatch.setenv(parallel_evaluation.SWITCH, "on")
    path = tmp_path / "fleet.yaml"
    path.write_text(FLEET, encoding="utf-8")
    return path


def landscapes() -> int:
    return len(list(cache.cache_folder().glob("*.npz")))


@pytest.mark.skipif(usable_cores() < 2, reason="one core")
@pytest.mark.parametrize("forks", [True, False])
def test_the_last_hardware_is_evaluated_by_another_process(
    forks: bool, fleet_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parallel_evaluation, "_may_fork", lambda: forks)
    fleet = load_fleet(fleet_file)
    steps = Evaluations(fleet).steps
    assert [(len(step.services), step.hardware) for step in steps] == [(3, "MI300X"), (3, "MI325X")]
    with parallel_evaluation.evaluating_in_parallel(fleet, steps, least_left_s=0) as about_to_evaluate:
        for left in (6, 5, 4):
            about_to_evaluate(left)
        end_s = time.monotonic() + 60
        while landscapes() < 3 and time.monotonic() < end_s:
            time.sleep(0.05)
    # The first step is this process's own.
    assert landscapes() == 3
    found = build_candidates(fleet, lambda _: None)
    assert landscapes() == 6
    cache.forget()
    assert found == build_candidates(fleet, lambda _: None)


def test_what_is_soon_done_is_evaluated_here(fleet_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fleet = load_fleet(fleet_file)
    steps = Evaluations(fleet).steps
    monkeypatch.setattr(parallel_evaluation, "_started", lambda *_: pytest.fail("a process was started"))
    with parallel_evaluation.evaluating_in_parallel(fleet, steps, least_left_s=60) as about_to_evaluate:
        for left in (6, 5, 4):
            about_to_evaluate(left)
    # Nobody knows before the second how long one takes that does not come to tables first.
    with parallel_evaluation.evaluating_in_parallel(fleet, steps, least_left_s=0) as about_to_evaluate:
        for left in (6, 5):
            about_to_evaluate(left)
    with parallel_evaluation.evaluating_in_parallel(fleet, steps[:1], least_left_s=0) as about_to_evaluate:
        for left in (3, 2, 1):
            about_to_evaluate(left)
    for switch in (parallel_evaluation.SWITCH, "FLEETPLAN_LANDSCAPE_CACHE"):
        with monkeypatch.context() as inside:
            inside.setenv(switch, "off")
            with parallel_evaluation.evaluating_in_parallel(
                fleet, steps, least_left_s=0
            ) as about_to_evaluate:
                for left in (6, 5, 4):
                    about_to_evaluate(left)


@pytest.mark.parametrize(
    ("pairs", "kept", "forks", "starts"),
    [
        (parallel_evaluation.SURELY_LONG, False, True, True),
        (parallel_evaluation.SURELY_LONG - 1, False, True, False),
        (parallel_evaluation.SURELY_LONG, True, True, False),
        (parallel_evaluation.SURELY_LONG, False, False, False),
    ],
)
def test_a_long_first_check_is_shared_before_anything_is_timed(
    pairs: int, kept: bool, forks: bool, starts: bool, fleet_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With an empty cache, the other core starts before two evaluations have been timed."""
    fleet = load_fleet(fleet_file)
    started: list[object] = []
    monkeypatch.setattr(parallel_evaluation, "_free_cores", lambda: 1)
    monkeypatch.setattr(parallel_evaluation, "_may_fork", lambda: forks)
    monkeypatch.setattr(
        parallel_evaluation, "_started", lambda _, steps: started.append(steps) or (lambda: None)
    )
    if kept:
        cache.cache_folder().mkdir(parents=True)
        (cache.cache_folder() / "some.npz").touch()
    with parallel_evaluation.evaluating_in_parallel(
        fleet, Evaluations(fleet).steps, least_left_s=60
    ) as about_to_evaluate:
        for left in range(pairs, pairs - 3, -1):
            about_to_evaluate(left)
    assert len(started) == starts


def test_a_process_with_other_threads_does_not_fork() -> None:
    goes_on = threading.Event()
    other = threading.Thread(target=goes_on.wait)
    other.start()
    try:
        assert not parallel_evaluation._may_fork()
    finally:
        goes_on.set()
        other.join()


@pytest.mark.skipif(sys.platform != "linux", reason="forks on Linux alone")
def test_a_fork_writes_nothing_where_its_parent_does(
    fleet_file: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def evaluate(*_: object) -> None:
        print("said by the fork", flush=True)
        raise ValueError("wrong with the fleet")

    monkeypatch.setattr(parallel_evaluation, "_evaluate", evaluate)
    fleet = load_fleet(fleet_file)
    end = parallel_evaluation._forked(fleet, Evaluations(fleet).steps)
    time.sleep(0.5)
    end()
    assert capfd.readouterr() == ("", "")


def test_services_are_evaluated_by_hardware_and_told_in_their_order(fleet_file: Path) -> None:
    told: list[str] = []
    found = build_candidates(load_fleet(fleet_file), told.append)
    expected = [f"chat-{n} on {hardware}" for hardware in ("MI300X", "MI325X") for n in range(3)]
    assert told == [f"evaluating {each} ({n} of 6)" for n, each in enumerate(expected, 1)]
    names = [f"chat-{n}" for n in range(3)]
    assert list(dict.fromkeys(each.service for each in found.candidates)) == names
    assert [row.service for row in found.rejections] == names


def test_a_process_without_its_parent_ends(fleet_file: Path) -> None:
    other = str(os.getppid())
    fleet = load_fleet(fleet_file)
    given = pickle.dumps((fleet, Evaluations(fleet).steps))
    done = ran(["-m", "fleetplan.planner.candidates.parallel_evaluation", other], given=given, timeout_s=60)
    assert b"OutOfTimeError" in done.stderr
    assert not landscapes()
