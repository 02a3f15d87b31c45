"""The seeded fleets that the solver is measured on."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.fleets import write_fleet

from fleetplan.scenarios.load import load_fleet


@pytest.mark.parametrize("seed", [72, 73])
def test_every_service_of_a_fleet_has_an_engine_or_a_model(tmp_path: Path, seed: int) -> None:
    """A service that no part runs is drawn again, as for seed 73."""
    fleet = load_fleet(write_fleet(tmp_path, "small", seed))
    assert len(fleet.services) == 5
