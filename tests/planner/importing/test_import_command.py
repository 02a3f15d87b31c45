"""The command `plan import`: output, files and errors."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pandas as pd
import pytest
from tests.planner.command_line import run
from tests.planner.importing.benchmark_results import GUIDELLM

from fleetplan.planner.commands.importing import FORMATS
from fleetplan.planner.importing.benchmark_formats import READERS


def test_the_command_says_what_it_took_and_what_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, out = tmp_path / "result.json", tmp_path / "bench.csv"
    path.write_text(json.dumps(GUIDELLM), encoding="utf-8")
    options = ["--model", "llama3.1-8b", "--hardware", "h100", "--tp", "1", "--weights", "bf16"]
    options += ["--framework-version", "0.24.0", "--out", str(out)]
    assert run("import", "benchmark", "guidellm", str(path), *options) == 0
    said = capsys.readouterr().err
    assert "1 row taken, 1 not" in said
    assert "row 2: skipped: strategy throughput" in said
    assert pd.read_csv(out)["hardware"].tolist() == ["H100-SXM"]
    assert run("import", "benchmark", "guidelm", str(path), *options) == 2
    assert "did you mean 'guidellm'" in capsys.readouterr().err
    path.write_text("{", encoding="utf-8")
    assert run("import", "benchmark", "vllm", str(path), *options) == 2


def test_a_model_is_described_or_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("import", "model", "llama3.1-8b") == 0
    assert "32 layers, dense" in capsys.readouterr().out
    assert run("import", "model", str(tmp_path / "nothing.json")) == 2
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "zebra"}), encoding="utf-8")
    assert run("import", "model", str(tmp_path)) == 2
    assert "zebra" in capsys.readouterr().err


def test_a_model_that_is_no_ordinary_file_is_said_to_be_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    places = {tmp_path / "pipe": "it is a pipe", tmp_path / "folder": "it is a folder"}
    for place, words in (places | {Path("/dev/zero"): "it is a device"}).items():
        assert run("import", "model", str(place)) == 2
        assert f"{place}: cannot be read: {words}" in capsys.readouterr().err


def test_the_command_line_names_the_formats_that_there_are() -> None:
    assert tuple(READERS) == FORMATS
