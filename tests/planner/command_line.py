"""The command line as a test calls it."""

from __future__ import annotations

from pathlib import Path

import pytest

from fleetplan.planner.cli import main


def run(*arguments: object) -> int:
    """Run `plan` in this process; its exit code."""
    with pytest.raises(SystemExit) as stopped:
        main([str(each) for each in arguments])
    return int(stopped.value.code or 0)


def in_folder(folder: Path, monkeypatch: pytest.MonkeyPatch, fleet: str, engines: str) -> None:
    """Go to a folder that holds a fleet file and its table of engines."""
    monkeypatch.chdir(folder)
    Path("fleet.yaml").write_text(fleet, encoding="utf-8")
    Path("engines.csv").write_text(engines, encoding="utf-8")
