"""Fleets that once broke or misled the planner, where a folder of them stands beside the repository."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
FOLDER = REPOSITORY.parent / "shared" / "data" / "bugs"
LARGE = ("all-lead-times", "fleet12")
"""Fleets of minutes, with folders of several files."""

KNOWN_USD = {"B-247": 333.0e3, "B-517": 158.1e3}
"""Optima that a false proof once missed. [USD]"""

EXIT_CODES = (0, 3, 4)
"""A plan, a proof that there is none, or a limit: no crash, no failed verification, no bad input."""


def fleets() -> list[Path]:
    found = sorted(FOLDER.glob("*/fleet.yaml")) + sorted(FOLDER.glob("*/transformed/fleet.yaml"))
    return [path for path in found if path.relative_to(FOLDER).parts[0] not in LARGE]


@pytest.mark.slow
@pytest.mark.parametrize("path", fleets(), ids=lambda path: "-".join(path.relative_to(FOLDER).parts[:-1]))
def test_a_reported_fleet_has_an_answer(path: Path, tmp_path: Path) -> None:
    name = path.parent.name
    exact = ["--gap", "0.0001%"] if name in KNOWN_USD else []
    done = subprocess.run(
        [sys.executable, "-m", "fleetplan.planner", str(path), "--time-limit", "5", *exact, "--json"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY / "src")},
    )
    assert done.returncode in EXIT_CODES, done.stderr[-2000:]
    assert "Traceback" not in done.stderr
    if name in KNOWN_USD:
        assert json.loads(done.stdout)["objective_usd"] == pytest.approx(KNOWN_USD[name], rel=1e-3)
