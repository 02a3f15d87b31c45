"""`plan serve` as a process: its address, its end, and errors at the start."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.planner.commands.page.tiny import TOO_LONG_S, write_fleet
from tests.warm import WarmProcess

from fleetplan.planner.cli import main

REPOSITORY = Path(__file__).parents[4]


@contextmanager
def started(fleet: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Start `plan serve`, and end it whatever a test finds."""
    process = WarmProcess(
        ["-m", "fleetplan.planner", "serve", str(fleet), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY / "src")},
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate(timeout=TOO_LONG_S)


def descendants(parent: int) -> set[int]:
    """Processes below one, as /proc has them."""
    found, waiting = set(), [parent]
    while waiting:
        number = waiting.pop()
        try:
            children = Path(f"/proc/{number}/task/{number}/children").read_text().split()
        except OSError:
            continue
        found |= {int(each) for each in children}
        waiting += [int(each) for each in children]
    return found


def runs(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False


def ended_by(fleet: Path, number: int) -> str:
    """Start it, end it by a signal while it plans, and return the token of its address."""
    with started(fleet) as process:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        assert address.startswith("http://127.0.0.1:")
        # The address works while the first plan is being made.
        with urllib.request.urlopen(address, timeout=TOO_LONG_S) as answer:
            assert "tiny" in answer.read().decode()
        below = descendants(process.pid)
        assert below
        process.send_signal(number)
        _, said = process.communicate(timeout=TOO_LONG_S)
        # What is killed leaves no process either.
        assert process.returncode == (-number if number == signal.SIGKILL else 0)
        assert "Traceback" not in said
        assert said.splitlines()[-1].endswith("Ctrl-C ends it.")
    until = time.monotonic() + 30
    while any(map(runs, below)):
        assert time.monotonic() < until, "a process was left"
        time.sleep(0.1)
    return address.split("/")[3]


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="no /proc to look for processes in")
def test_signals_end_it_without_a_word_and_leave_no_process_and_tokens_differ_and_are_long(
    tmp_path: Path,
) -> None:
    fleet = write_fleet(tmp_path)
    tokens = [ended_by(fleet, number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)]
    assert len(set(tokens)) == 3
    assert all(len(token) >= 32 for token in tokens)


def test_a_port_that_is_taken_is_said_in_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(SystemExit) as ended:
            main(["serve", str(write_fleet(tmp_path)), "--port", str(taken.getsockname()[1])])
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert "cannot listen here: Address already in use" in said.splitlines()[-1]


@pytest.mark.parametrize("missing", ["starlette", "uvicorn"])
def test_without_the_extra_it_says_how_to_install_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    for name in [each for each in sys.modules if each.partition(".")[0] == missing]:
        monkeypatch.delitem(sys.modules, name)
    for name in [each for each in sys.modules if each.startswith("fleetplan.planner.commands.page.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(SystemExit) as ended:
        main(["serve", str(write_fleet(tmp_path))])
    assert ended.value.code == 2
    assert capsys.readouterr().err == (
        "plan serve: the page needs starlette and uvicorn, which are not installed; "
        "pip install 'fleetplan[serve]'\n"
    )


def test_a_fleet_with_mistakes_starts_no_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_fleet(tmp_path, "version: 1\nservcies: []\n")
    with pytest.raises(SystemExit) as ended:
        main(["serve", str(path)])
    assert ended.value.code == 2
    assert f"{path}:2:1: servcies:" in capsys.readouterr().err
