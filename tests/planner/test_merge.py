"""`plan merge`: the file that it writes, what it says of it, and conflicts that are named at their place."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.planner.command_line import run

from fleetplan.scenarios.load import load_fleet

FLEET = """\
# owned by capacity planning
version: 1
offers:
- {name: rent, hardware: H100-SXM, rent_usd_per_accelerator_hour: 2.0}
services:
- name: chat
  model: llama3-8b
  workload: {input_tokens: 300, output_tokens: 100}
  demand: 100       # measured in July
"""


def versions(folder: Path, mine: tuple[str, str], theirs: tuple[str, str]) -> list[str]:
    (folder / "base.yaml").write_text(FLEET, encoding="utf-8")
    (folder / "mine.yaml").write_text(FLEET.replace(*mine), encoding="utf-8")
    (folder / "theirs.yaml").write_text(FLEET.replace(*theirs), encoding="utf-8")
    return [str(folder / name) for name in ("base.yaml", "mine.yaml", "theirs.yaml")]


def test_two_versions_become_one_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = versions(tmp_path, ("demand: 100", "demand: 120"), ("hour: 2.0", "hour: 1.8"))
    assert run("merge", *files, "--out", str(tmp_path / "new.yaml")) == 0
    assert "offers.rent.rent_usd_per_accelerator_hour: 2.0 -> 1.8" in capsys.readouterr().out
    text = (tmp_path / "new.yaml").read_text(encoding="utf-8")
    assert "# owned by capacity planning" in text
    assert "demand: 120       # measured in July" in text
    fleet = load_fleet(tmp_path / "new.yaml")
    assert fleet.offers[0].rent_usd_per_accelerator_hour == (1.8,)


def test_a_conflict_is_named_and_nothing_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = versions(tmp_path, ("demand: 100", "demand: 120"), ("demand: 100", "demand: 90"))
    assert run("merge", *files, "--out", str(tmp_path / "new.yaml")) == 2
    said = capsys.readouterr().err
    assert "theirs.yaml:9:11: services.chat.demand: 90 here, 120 in" in said
    assert "mine.yaml:9, 100 in" in said
    assert not (tmp_path / "new.yaml").exists()
    assert run("merge", *files, "--out", str(tmp_path / "new.yaml"), "--prefer", "theirs") == 0
    assert "services.chat.demand: theirs; 90 here" in capsys.readouterr().err
    assert "demand: 90" in (tmp_path / "new.yaml").read_text(encoding="utf-8")


def test_what_is_no_fleet_together_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One takes the hardware away that the other names."""
    files = versions(
        tmp_path, ("demand: 100", "hardware: [H200-SXM]\n  demand: 100"), ("demand: 100", "demand: -1")
    )
    assert run("merge", *files, "--out", str(tmp_path / "new.yaml")) == 2
    assert "new.yaml" in capsys.readouterr().err
    assert run("merge", *files[:2], str(tmp_path / "none.yaml"), "--out", str(tmp_path / "new.yaml")) == 2
