"""Every reader against every hostile file: exit code 2 in words, soon, in little memory, nothing written."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hostile.inputs import inputs_of
from tests.hostile.readers import READERS
from tests.parts import first_of
from tests.planner.command_line import run
from tests.warm import WarmProcess

ROOT = Path(__file__).parents[2]

BAD_INPUT = 2

MOST_SECONDS = 5.0
"""For one file; two thirds of them take less than 10 ms. [s]"""

MOST_MIB = 1200.0
"""Peak of a process that has every library of the project loaded."""

MOST_LINES = 12
"""Of an answer: an issue a line, and a hint."""

MOST_LETTERS = 3_000
"""Of a line: a message, a hint and a path."""


@pytest.fixture(scope="module")
def driver() -> Iterator[subprocess.Popen[str]]:
    path = f"{ROOT / 'src'}{os.pathsep}{ROOT}"
    with WarmProcess(
        ["-m", "tests.hostile.driver"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": path},
    ) as started:
        yield started


@pytest.mark.parametrize("every", first_of((5, 1), 1), ids=("a fifth", "all"))
@pytest.mark.parametrize("name", list(READERS))
def test_a_hostile_file_is_one_error_in_words(
    name: str, every: int, driver: subprocess.Popen[str], tmp_path: Path
) -> None:
    """Of all inputs, or of a fifth of them: five readers have all of them together."""
    assert driver.stdin is not None
    assert driver.stdout is not None
    inputs = inputs_of(READERS[name])[list(READERS).index(name) % every :: every]
    print(name, tmp_path, json.dumps(inputs), sep="\t", file=driver.stdin, flush=True)
    assert driver.stdout.readline() == "0\n", (tmp_path / "errors").read_text(encoding="utf-8")
    lines = (tmp_path / "answers").read_text(encoding="utf-8").splitlines()
    answers = {row["input"]: row for row in map(json.loads, lines)}
    assert list(answers) == inputs
    wrong = {each: fault for each, row in answers.items() if (fault := _fault(row))}
    assert wrong == {}


FITTING = ("8", "1024")
"""Numbers of which one fits any file: a size of a host, and a length."""

NEVER_TAKEN = frozenset({"answers of Prometheus"})
"""Files whose every number is refused: a server may have answered at any time."""


@pytest.mark.parametrize("name", [each for each in READERS if READERS[each].good and each not in NEVER_TAKEN])
def test_the_files_that_hostile_ones_are_made_of_are_good(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Operator tables are kept among the user's data.
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    reader, folder = READERS[name], tmp_path / "own"
    folder.mkdir()
    path = tmp_path / f"good.{reader.form}"
    codes = []
    for number in FITTING:
        path.write_text(reader.good.replace("VALUE", number), encoding="utf-8")
        codes.append(run(*reader.command(path, folder)))
    assert 0 in codes


def _fault(row: dict[str, object]) -> str:
    """Return the fault of an answer; empty without one."""
    said = str(row["err"])
    shown = f"code {row['code']}: {said[-300:]}"
    if row["code"] != BAD_INPUT:
        return shown
    faults = {
        "says nothing": not said.strip(),
        "a traceback": "Traceback" in said,
        f"{len(said.splitlines())} lines": len(said.splitlines()) > MOST_LINES,
        "a line without an end": max(map(len, said.splitlines()), default=0) > MOST_LETTERS,
        f"{row['seconds']:.1f} s": float(str(row["seconds"])) > MOST_SECONDS,
        f"{row['peak_mib']:.0f} MiB": float(str(row["peak_mib"])) > MOST_MIB,
        f"wrote {row['written']}": bool(row["written"]),
    }
    found = [fault for fault, is_so in faults.items() if is_so]
    return f"{'; '.join(found)}: {shown}" if found else ""
