"""Whatever is typed after `plan` ends with one sentence and exit code 2, or does what it should."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fleetplan.planner.commands.shared import ExitCode
from tests.cache_home import own_cache_home
from tests.fuzz import command_lines
from tests.fuzz.command_lines import Command, commands, small_fleet, tried
from tests.fuzz.commands import CommandAnswer, run
from tests.fuzz.right_values import ALWAYS, RIGHT, right_value
from tests.parts import first_parts, those_with

ALL_LINES, LINES = 12, 1
"""Command lines of each command, and those of one test, the first of which is in `make test`.

`make soak` tries what one likes.
"""

COMMANDS = list(commands())
HALF = COMMANDS[::2]
"""Those of `make test`; `make test-more` tries the others."""


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("small")
    small_fleet(folder)
    return folder


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache of all command lines, with nothing of an earlier run but imported operator tables."""
    return own_cache_home(tmp_path_factory.mktemp("cache"))


@pytest.mark.parametrize("first", first_parts(range(0, ALL_LINES, LINES), 1))
@pytest.mark.parametrize(
    "command", those_with(COMMANDS, HALF.__contains__), ids=lambda command: "-".join(command.way)
)
def test_a_mistake_is_told_and_nothing_is_written(
    command: Command, first: int, small: Path, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    failures = []
    for seed in range(first, first + LINES):
        folder = tmp_path / str(seed)
        folder.mkdir()
        words, wrong = tried(command, seed, small, folder)
        failures += [f"plan {words}: {wrong}"] if wrong else []
    assert failures == []


def test_every_right_value_is_of_some_parameter() -> None:
    named = {parameter.name for command in commands() for parameter in command.parameters}
    assert sorted(set(RIGHT) - named) == []


def test_most_commands_are_reached() -> None:
    """Right values are known of all that a command asks for."""
    deep = [command for command in commands() if command.way not in (("serve",), *ALWAYS)]
    right = [
        command
        for command in deep
        if all(right_value(command.way, each) for each in command.parameters if each.required)
    ]
    assert len(right) >= 0.6 * len(deep)


@pytest.mark.parametrize(
    "words",
    [
        # Found by random lines: an overflow, an incompatible argument, a name that cannot be encoded.
        ("landscape", "fleet.yaml", "--every-batch", "99999999999999999999"),
        ("landscape", "--model", "llama3-8b", "--hardware", "L40S", "--input", "99999999999999999999"),
        ("alternatives", "out/plan.json", "--seed", "99999999999999999999"),
        ("solve", "fleet.yaml", "--seed", "2147483648"),
        ("import", "dcgm", "\ud83d", "--out", "power.yaml"),
        ("verify", "\ud83d", "fleet.yaml"),
        ("predict", "cases.csv", "--out", "written", "--calibration", "deep.json"),
        ("explain", "out/plan.json", "--service", ".", "--marginal", "--plot", "written.svg"),
        ("alternatives", "out/plan.json", "--workers", "99999999999999999999"),
        ("solve", "fleet.yaml", "--workers", "99999999999999999999"),
        ("sweep", "fleet.yaml", "--grid", "demand=1,2", "--out", "grid", "--jobs", "99999999999999999999"),
        ("pareto", "out/plan.json", "--against", "energy", "--plot", "text.yaml"),
        ("explain", "out/plan.json", "--marginal", "--plot", "written"),
        ("merge", "fleet.yaml", "fleet.yaml", "fleet.yaml", "--out", ""),
        ("import", "trace", "trace.csv", "--service", "\x00", "--out", "traffic"),
        ("import", "trace", "trace.csv", "--service", "../chat", "--out", "traffic"),
        ("import", "trace", "trace.csv", "--service", "chat", "--out", "table.csv"),
    ],
    ids=lambda words: words[0],
)
def test_a_mistake_that_was_a_traceback_is_told(
    words: tuple[str, ...], small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "fleet"
    command_lines.prepare(small, folder)
    before = command_lines.contents(folder)
    monkeypatch.chdir(folder)
    answer = run(words)
    assert answer.code == ExitCode.BAD_INPUT
    assert answer.errors
    assert "Traceback" not in answer.errors
    assert command_lines.contents(folder) == before


@pytest.mark.parametrize(
    ("answer", "wrong"),
    [
        (CommandAnswer(1, "", "a bug"), "exit code 1: a bug"),
        (CommandAnswer(2, "", ""), "not a word"),
        (CommandAnswer(2, "", "no \x1b[31m"), "control characters"),
        (CommandAnswer(2, "", "Traceback (most recent call last)"), "a traceback"),
        (ValueError("in a reader"), "ValueError at"),
    ],
)
def test_what_is_no_answer_is_a_failure(
    answer: CommandAnswer | ValueError, wrong: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ends(_: Any) -> CommandAnswer:
        if isinstance(answer, ValueError):
            raise answer
        return answer

    monkeypatch.setattr(command_lines, "run", ends)
    for name in ("small", "other"):
        (tmp_path / name).mkdir()
    assert wrong in tried(next(commands()), 0, tmp_path / "small", tmp_path / "other")[1]
