"""`plan` itself: its help, and the versions that a report of a bug needs."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from typing import Any

import pytest

from fleetplan.fleet.packages import PACKAGES
from fleetplan.planner import cli
from fleetplan.planner.cli import main

COLUMNS = 80
"""Of a terminal."""


def printed(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert not ended.value.code
    return capsys.readouterr().out


def groups(command: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Return the words of every command with subcommands."""
    if hasattr(command, "commands"):
        yield words
        for name, inner in command.commands.items():
            yield from groups(inner, (*words, name))


def test_the_versions_of_all_that_answers_depend_on_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    told = printed(["--version"], capsys)
    lines = dict(line.split(maxsplit=1) for line in told.splitlines())
    assert lines.keys() == {*PACKAGES, "Python"}
    assert lines["Python"].startswith(platform.python_version())
    assert {"ortools", "highspy", "aiconfigurator-core"} <= lines.keys()


@pytest.mark.parametrize("words", list(groups(cli._program())), ids=" ".join)
def test_help_says_what_every_command_does_in_one_whole_line(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(COLUMNS))
    told = printed([*words, "-h"], capsys)
    assert told == printed([*words, "--help"], capsys)
    lines = told.partition("Commands:\n")[2].splitlines()
    assert lines
    for line in lines:
        assert len(line) <= COLUMNS
        assert line.endswith("."), line
        assert not line.endswith("..."), line


ALL = cli._program()


@pytest.mark.parametrize("name", sorted(ALL.commands))
def test_a_command_is_the_same_whether_others_are_read_or_not(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(COLUMNS))
    assert [*cli._program(name).commands] == [name]
    told = printed([name, "--help"], capsys)
    with pytest.raises(SystemExit):
        ALL(args=[name, "--help"])
    assert told == capsys.readouterr().out


def test_a_command_that_there_is_not_is_told_with_those_that_there_are(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["slove"])
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert "No such command 'slove'" in said
    assert "solve" in said.partition("slove")[2]
