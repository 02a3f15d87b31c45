"""Frontiers are swept once for all fleets that differ in demand, prices and supply alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cache_home import own_cache_home

from fleetplan.fleet.files import SWITCH, user_cache
from fleetplan.fleet.inventory import Fleet
from fleetplan.planner.landscape import frontier_cache
from fleetplan.planner.landscape.frontier_cache import kept_frontier_points
from fleetplan.planner.landscape.frontier_points import frontier_points
from fleetplan.scenarios.load import load_fleet

TINY = Path(__file__).parents[3] / "scenarios" / "tiny.yaml"


@pytest.fixture
def swept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The services that were swept, with a cache of one's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(own_cache_home(tmp_path)))
    monkeypatch.delenv(SWITCH, raising=False)
    found: list[str] = []

    def noted(fleet: Fleet, services: tuple[str, ...]) -> object:
        found.extend(services)
        return frontier_points(fleet, services)

    monkeypatch.setattr(frontier_cache, "frontier_points", noted)
    return found


def tiny(*assignments: str) -> Fleet:
    return load_fleet(TINY, (), assignments)


def test_they_come_back_as_they_were(swept: list[str]) -> None:
    first = kept_frontier_points(tiny(), ["chat"])
    assert first == frontier_points(tiny(), ["chat"])
    assert kept_frontier_points(tiny(), ["chat"]) == first
    assert swept == ["chat"]
    assert kept_frontier_points(tiny(), []) == ()


@pytest.mark.parametrize(
    ("assignment", "again"),
    [
        ("services.chat.demand=7", False),
        ("services.chat.headroom=0.5", False),
        ("pools.own-h100.hosts=3", False),
        ("policy.reserve_hosts_per_pool=1", True),
        ("services.chat.workload.input_tokens=900", True),
        ("services.chat.precision={weights: fp8, kv: bf16}", True),
    ],
)
def test_what_changes_none_is_no_reason_to_sweep_again(
    assignment: str, again: bool, swept: list[str]
) -> None:
    kept_frontier_points(tiny(), ["chat"])
    found = kept_frontier_points(tiny(assignment), ["chat"])
    assert len(swept) == 1 + again
    assert found == frontier_points(tiny(assignment), ["chat"])


@pytest.mark.parametrize(
    "damage", [lambda path: path.write_text("{"), lambda path: path.write_text('{"key": "x", "points": []}')]
)
def test_a_file_that_is_for_something_else_is_not_believed(
    damage: Callable[[Path], object], swept: list[str]
) -> None:
    first = kept_frontier_points(tiny(), ["chat"])
    (path,) = user_cache("frontiers").glob("*.json")
    damage(path)
    assert kept_frontier_points(tiny(), ["chat"]) == first
    assert len(swept) == 2


def test_nothing_is_kept_where_the_cache_is_off(swept: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SWITCH, "off")
    kept_frontier_points(tiny(), ["chat"])
    kept_frontier_points(tiny(), ["chat"])
    assert len(swept) == 2
    assert not user_cache("frontiers").exists()
