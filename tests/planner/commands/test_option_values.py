"""Errors for invalid option values quote the value and state what is allowed."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import typer
from tests.planner.command_line import run

from fleetplan.planner.commands.shared import output_folder

TINY = Path(__file__).parents[3] / "scenarios" / "tiny.yaml"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--time-limit", "abc"), "'--time-limit': 'abc' is not a number of 0.1 or more"),
        (("--time-limit", "10s"), "'--time-limit': '10s' is not a number of 0.1 or more"),
        (("--time-limit", "nan"), "'--time-limit': 'nan' is not a number of 0.1 or more"),
        (("--time-limit", "0"), "'--time-limit': '0' is not a number of 0.1 or more"),
        (("--workers", "1.5"), "'--workers': '1.5' is not a whole number from 1 to 1024"),
        (("--workers", "0"), "'--workers': '0' is not a whole number from 1 to 1024"),
        (("--seed", "9" * 30), f"'--seed': '{'9' * 30}' is not a whole number from 0 to 2,147,483,647"),
    ],
)
def test_a_number_that_is_none_is_quoted_with_its_limits(
    options: tuple[str, str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The error quotes the value, its option and the allowed range."""
    assert run("solve", TINY, *options) == 2
    assert capsys.readouterr().err.splitlines()[-1].endswith(message)


def test_an_option_for_any_number_asks_for_a_number(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("import", "kubernetes", TINY, "--out", "o", "--rent-usd-per-accelerator-hour", "-3") == 2
    said = capsys.readouterr().err.splitlines()[-1]
    assert said.endswith("'--rent-usd-per-accelerator-hour': '-3' is not a number of 0 or more")


def test_a_word_that_is_no_choice_is_quoted_with_the_choices(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("merge", "a", "b", "c", "--out", "d", "--prefer", "mien") == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert last == "Error: Invalid value for '--prefer': 'mien' is not one of 'mine', 'theirs'"


@pytest.mark.parametrize("option", ["--hardware", "--weights", "--kv"])
def test_a_list_of_no_names_is_refused(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A list option without a name is an error of one line."""
    asked = {"--model": "llama3-8b", "--hardware": "H100-SXM", "--input": 100, "--output": 10, option: " ,"}
    assert run("landscape", *(each for pair in asked.items() for each in pair)) == 2
    assert f"{option}: names nothing" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (("report", "plan.json", "--out", "x.pdf"), "'x.pdf' must end in .html or .htm"),
        (("diff", "plan.json", "plan.json", "--out", "x.pdf"), "'x.pdf' must end in .html or .htm"),
        (("pareto", "plan.json", "--against", "energy", "--csv", "x.xlsx"), "'x.xlsx' must end in .csv or"),
        (("explain", "plan.json", "--marginal", "--csv", "x.xlsx"), "'x.xlsx' must end in .csv or .txt"),
        (("landscape", "fleet.yaml", "--csv", "x.parquet"), "'x.parquet' must end in .csv or .txt"),
    ],
)
def test_a_suffix_of_what_is_not_written_is_refused(
    command: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """An output file needs the suffix of a format that the command writes."""
    assert run(*command) == 2
    assert message in capsys.readouterr().err


def test_options_of_a_fleet_file_need_one(capsys: pytest.CaptureFixture[str]) -> None:
    """`--service` and `--set` are refused without a fleet file."""
    model = ("--model", "llama3-8b", "--hardware", "H100-SXM", "--input", 100, "--output", 10)
    assert run("landscape", "--service", "zz", "--set", "name=x", *model) == 2
    assert "--service, --set: needs a fleet file" in capsys.readouterr().err


@pytest.mark.parametrize(
    "command",
    [
        ("solve", TINY, "--out", "x" * 300),
        ("solve", TINY, "--out", TINY / "xxx"),
        ("dump", TINY, "--out", "x" * 300),
        ("landscape", TINY, "--csv", f"{'x' * 300}/rows.csv"),
    ],
)
def test_a_name_that_is_too_long_is_one_error(
    command: tuple[object, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A file name that is too long is an error, not a traceback."""
    monkeypatch.chdir(tmp_path)
    assert run(*command) == 2
    said = capsys.readouterr().err
    assert "xxx" in said
    assert "solving" not in said


def test_an_unknown_service_has_the_nearest_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("landscape", TINY, "--service", "chta") == 2
    assert "'chta' is not in the fleet; allowed: chat; did you mean 'chat'?" in capsys.readouterr().err


@contextmanager
def as_nobody() -> Iterator[None]:
    """Ask as a user without rights, where root runs the tests."""
    if os.getuid():
        yield
        return
    nobody = 65_534
    os.setresuid(nobody, nobody, 0)
    try:
        yield
    finally:
        os.setresuid(0, 0, 0)


def test_a_folder_that_may_not_be_written_to_is_refused_before_anything_is_solved() -> None:
    """A read-only output folder is an error at the start of the command."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        folder.chmod(0o555)
        with as_nobody():
            for out in (folder, folder / "out", folder / "deep" / "out"):
                with pytest.raises(typer.BadParameter, match="cannot be written: Permission denied"):
                    output_folder(out)
        folder.chmod(0o777)
        with as_nobody():
            assert output_folder(folder / "deep" / "out") == folder / "deep" / "out"
    assert output_folder(Path("/dev/null")) == Path("/dev/null")
