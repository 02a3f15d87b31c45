"""A sweep of the scenario with its own rates, and its table."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from fleetplan.planner import cli
from fleetplan.planner.commands import run_sweep as sweep_command

SCENARIOS = Path(__file__).parents[3] / "scenarios"
SCENARIO = SCENARIOS / "bring-your-own-rates" / "fleet.yaml"
GRID = ("demand=0.5,1,2", "price.big-gpu=0.8,1")


def run(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(cli.app, [str(each) for each in arguments])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout


def swept(folder: Path, *options: object, grid: tuple[str, ...] = GRID, drawn: bool = False) -> str:
    """The table of a sweep of the scenario that brings its own rates; its figures take as long as it does."""
    axes = [text for axis in grid for text in ("--grid", axis)]
    with pytest.MonkeyPatch.context() as patched:
        if not drawn:
            patched.setattr(sweep_command, "write_sweep_plots", lambda *_: [])
        code, _ = run("sweep", SCENARIO, *axes, "--out", folder, *options)
    assert code == 0
    return (folder / "sweep.csv").read_text(encoding="utf-8")
