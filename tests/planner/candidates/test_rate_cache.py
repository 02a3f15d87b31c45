"""Simulated rates are kept: under the name of all that they depend on, and believed for nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from fleetplan.fleet.files import SWITCH
from fleetplan.fleet.inventory import LatencyLimit
from fleetplan.perfmodel.replay import EnginePool, LoadTarget
from fleetplan.perfmodel.replay.engine_state import EngineLimits
from fleetplan.perfmodel.serving import RequestKind, StepCosts
from fleetplan.planner.candidates import rate_cache
from fleetplan.planner.candidates.rate_cache import cached_rate_per_s, rates_folder

POOL = EnginePool(StepCosts((0.0, 1.0), (0.0, 1.0), (0.0, 0.0), (0.0,)), EngineLimits(1, 10, 100), 1)
TARGET = LoadTarget(RequestKind(10, 5), 1.0, (LatencyLimit(0.95, 100.0),), ())
OTHER = LoadTarget(RequestKind(10, 6), 1.0, (LatencyLimit(0.95, 100.0),), ())


@pytest.fixture
def simulated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[LoadTarget]:
    """Return the simulated traffic: requests of six tokens at 3 requests/s, others at 2 requests/s."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv(SWITCH, raising=False)
    found: list[LoadTarget] = []

    def rate(pool: EnginePool, target: LoadTarget, most_per_s: float) -> float:
        found.append(target)
        return 3.0 if target == OTHER else 2.0

    monkeypatch.setattr(rate_cache, "sustained_rate_per_s", rate)
    return found


def test_a_rate_is_simulated_once(simulated: list[LoadTarget]) -> None:
    assert [cached_rate_per_s(POOL, each, 9.0) for each in (TARGET, OTHER, TARGET, OTHER)] == [2, 3, 2, 3]
    assert simulated == [TARGET, OTHER]
    assert cached_rate_per_s(POOL, TARGET, 8.0) == 2
    assert cached_rate_per_s(EnginePool(POOL.costs, POOL.limits, 2), TARGET, 9.0) == 2
    assert len(simulated) == 4


def test_a_file_under_another_name_or_of_anything_else_is_not_believed(simulated: list[LoadTarget]) -> None:
    for each in (TARGET, OTHER):
        cached_rate_per_s(POOL, each, 9.0)
    first, second = sorted(rates_folder().iterdir())
    ours, theirs = first.read_bytes(), second.read_bytes()
    first.write_bytes(theirs)
    second.write_bytes(ours)
    assert [cached_rate_per_s(POOL, each, 9.0) for each in (TARGET, OTHER)] == [2, 3]
    assert len(simulated) == 4
    key = first.stem
    for content in (b"", b"[1]", b"{", b"\xff", b"[" * 9999, b'{"requests_per_s": 1}',
                    f'{{"key": "{key}", "requests_per_s": -1}}'.encode(),
                    f'{{"key": "{key}", "requests_per_s": NaN}}'.encode()):  # fmt: skip
        first.write_bytes(content)
        assert [cached_rate_per_s(POOL, each, 9.0) for each in (TARGET, OTHER)] == [2, 3]
    assert len(simulated) == 12


def test_another_program_simulates_again(
    simulated: list[LoadTarget], monkeypatch: pytest.MonkeyPatch
) -> None:
    cached_rate_per_s(POOL, TARGET, 9.0)
    monkeypatch.setattr(rate_cache, "program_parts", lambda: ["another program"])
    cached_rate_per_s(POOL, TARGET, 9.0)
    assert len(simulated) == 2


def test_the_oldest_are_forgotten(simulated: list[LoadTarget], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rate_cache, "CACHED_RATES", 3)
    for most in range(1, 7):
        cached_rate_per_s(POOL, TARGET, float(most))
    assert len(list(rates_folder().iterdir())) == 3


def test_it_can_be_switched_off_and_a_folder_that_cannot_be_written_costs_no_answer(
    simulated: list[LoadTarget], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cache").write_text("no folder")
    assert [cached_rate_per_s(POOL, TARGET, 9.0) for _ in range(2)] == [2, 2]
    (tmp_path / "cache").unlink()
    monkeypatch.setenv(SWITCH, "off")
    assert cached_rate_per_s(POOL, TARGET, 9.0) == 2
    assert not (tmp_path / "cache").exists()
    assert len(simulated) == 3
