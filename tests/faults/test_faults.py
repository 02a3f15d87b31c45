"""Faults leave files whole or absent and no process behind, end in words with the right code, and pass."""

from __future__ import annotations

import json
import os
import re
import resource
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from fleetplan.planner.commands.memory import LEAST_BYTES, SENTENCE
from tests.faults.fleets import long_search, trivial_services, with_landscape
from tests.faults.process import Ended, Running, plan

pytestmark = pytest.mark.slow
"""Processes that are killed at moments of the clock: a minute of them."""

BAD_INPUT, LIMIT = 2, 4

HEADLINE = re.compile(r"TCO \$[\d.]+ [kM]")


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    return with_landscape(tmp_path / "fleet")


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache"


def usd(ended: Ended) -> str:
    """The cost on the first line of an answer."""
    assert ended.code == 0, ended.errors
    found = HEADLINE.search(ended.out)
    assert found is not None, ended.out
    return found[0]


def in_words(ended: Ended) -> str:
    """The last line of what was said; nothing of it is a traceback."""
    assert "Traceback" not in ended.errors, ended.errors
    return ended.errors.strip().splitlines()[-1]


def limited(kind: int, most: int) -> Callable[[], None]:
    return lambda: resource.setrlimit(kind, (most, most))


def started_search(folder: Path, cache: Path, *more: object) -> Running:
    """A search that goes on for minutes, some seconds after it has begun."""
    path = long_search(folder)
    running = Running(["solve", path, "--gap", "0%", "--time-limit", "300", *more], cache)
    assert running.process.stderr is not None
    for line in running.process.stderr:
        if "solving" in line:
            break
    return running


@pytest.mark.parametrize("after_s", [0.0, 2.0])
def test_a_killed_search_leaves_no_process_and_no_file(after_s: float, tmp_path: Path, cache: Path) -> None:
    out = tmp_path / "out"
    running = started_search(tmp_path / "long", cache, "--out", out)
    time.sleep(after_s)
    assert running.is_running()
    assert running.signalled(signal.SIGKILL).code == -signal.SIGKILL
    assert running.left() == []
    assert not out.exists()


def test_a_stopped_search_leaves_no_process_and_its_best_plan(tmp_path: Path, cache: Path) -> None:
    out = tmp_path / "out"
    running = started_search(tmp_path / "long", cache, "--out", out)
    time.sleep(3.0)
    ended = running.signalled(signal.SIGTERM)
    assert running.left() == []
    assert ended.code == LIMIT
    in_words(ended)
    # What had no plan yet says so; what had one wrote it whole.
    if out.exists():
        assert json.loads((out / "plan.json").read_text())["placements"]
    else:
        assert "stopped" in ended.errors


@pytest.mark.parametrize("most_bytes", [0, 2_000, 20_000])
def test_a_full_disk_leaves_nothing(most_bytes: int, fleet: Path, cache: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    ended = plan(["solve", fleet, "--out", out], cache, before=limited(resource.RLIMIT_FSIZE, most_bytes))
    assert ended.code == BAD_INPUT
    assert "cannot be written" in in_words(ended)
    assert not out.exists()
    assert [each for each in cache.rglob("*") if each.is_file() and each.name.startswith(".")] == []
    assert usd(plan(["solve", fleet, "--out", out], cache))
    assert (out / "report.html").is_file()


@pytest.mark.parametrize(
    "arguments",
    [
        ["solve", "{fleet}", "--out", "{nowhere}"],
        ["dump", "{fleet}", "--out", "{nowhere}"],
        ["sweep", "{fleet}", "--grid", "demand=1", "--out", "{nowhere}"],
    ],
)
def test_a_folder_that_cannot_be_written_is_said(
    arguments: list[str], fleet: Path, cache: Path, tmp_path: Path
) -> None:
    # A file stands in the way: root may write to any folder.
    (tmp_path / "file").write_text("")
    named = {"fleet": fleet, "nowhere": tmp_path / "file" / "out"}
    ended = plan([each.format(**named) for each in arguments], cache)
    assert ended.code == BAD_INPUT
    assert str(tmp_path / "file") in in_words(ended)


def test_without_a_home_or_a_cache_the_answer_is_the_same(fleet: Path, cache: Path, tmp_path: Path) -> None:
    first = usd(plan(["solve", fleet], cache))
    (tmp_path / "file").write_text("")
    nowhere = tmp_path / "file" / "home"
    homeless = {"HOME": str(nowhere), "XDG_CACHE_HOME": str(nowhere), "XDG_DATA_HOME": str(nowhere)}
    ended = plan(["solve", fleet], cache, homeless)
    assert usd(ended) == first
    in_words(ended)


def test_several_at_once_fill_one_cache(fleet: Path, cache: Path) -> None:
    running = [Running(["solve", fleet], cache) for _ in range(4)]
    costs = {usd(each.ended()) for each in running}
    assert len(costs) == 1
    assert [each for one in running for each in one.left()] == []
    assert {usd(plan(["solve", fleet], cache))} == costs


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda whole: b"",
    "half": lambda whole: whole[: len(whole) // 2],
    "garbled": lambda whole: bytes(reversed(whole)),
    "foreign": lambda whole: b"PK\x05\x06" + bytes(18),
}


def test_a_damaged_cache_is_not_believed(fleet: Path, cache: Path) -> None:
    first = usd(plan(["solve", fleet], cache))
    kept = [each for each in cache.rglob("*") if each.is_file()]
    assert kept
    wholes = {each: each.read_bytes() for each in kept}
    for name, damage in DAMAGE.items():
        for each, whole in wholes.items():
            each.write_bytes(damage(whole))
        ended = plan(["solve", fleet], cache)
        assert usd(ended) == first, name
        in_words(ended)


def test_a_cache_that_is_killed_while_it_is_filled_is_whole(fleet: Path, cache: Path) -> None:
    first = None
    for after_s in (1.2, 1.6, 2.0):
        running = Running(["solve", fleet], cache)
        time.sleep(after_s)
        running.signalled(signal.SIGKILL)
        assert running.left() == []
        first = usd(plan(["solve", fleet], cache)) if first is None else first
        assert usd(plan(["solve", fleet], cache)) == first


@pytest.mark.parametrize("most_mib", [150, 480, 700, 1000])
def test_too_little_memory_is_said(most_mib: int, tmp_path: Path, cache: Path) -> None:
    """Too little memory ends a run with a message, although libraries retry or end the process."""
    little = limited(resource.RLIMIT_AS, most_mib * 2**20)
    ended = plan(["solve", long_search(tmp_path)], cache, before=little)
    assert (ended.code, ended.errors) == (LIMIT, SENTENCE)


def test_memory_that_runs_out_during_a_search_is_said(tmp_path: Path, cache: Path) -> None:
    asked = ["solve", long_search(tmp_path), "--time-limit", "5"]
    ended = plan(asked, cache, before=limited(resource.RLIMIT_AS, LEAST_BYTES))
    # Whether it is enough depends on the threads of the machine.
    assert ended.code in (0, LIMIT)
    assert HEADLINE.search(ended.out) or ended.errors.endswith(SENTENCE)
    assert "Traceback" not in ended.errors


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_watched_run_ends_with_its_watcher(number: int, tmp_path: Path, cache: Path) -> None:
    enough = limited(resource.RLIMIT_AS, 2**40)
    running = Running(["solve", long_search(tmp_path), "--gap", "0%"], cache, before=enough)
    time.sleep(2.0)
    assert running.signalled(number).code == (LIMIT if number == signal.SIGTERM else -number)
    assert running.left() == []


def test_three_thousand_services_take_no_longer_than_their_limit_and_ten_seconds(
    tmp_path: Path, cache: Path
) -> None:
    """Three thousand services take at most the limit and ten CPU seconds, whatever else the machine runs."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    ended = plan(["solve", trivial_services(tmp_path, 3000), "--time-limit", "3"], cache)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert HEADLINE.search(ended.out)
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 3 + 10


def test_output_that_nobody_reads_ends_the_search_quietly(fleet: Path, cache: Path) -> None:
    reading, writing = os.pipe()
    running = Running(["solve", fleet], cache, stdout=writing)
    os.close(writing)
    os.close(reading)
    ended = running.ended()
    assert ended.code == 128 + signal.SIGPIPE
    assert "Traceback" not in ended.errors
    assert running.left() == []
