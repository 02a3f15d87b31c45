"""Frontiers of the report: what no other configuration of a hardware beats, thinned with both ends."""

from __future__ import annotations

from itertools import groupby, pairwise
from pathlib import Path

import pytest

from fleetplan.planner.landscape import frontier_points as module
from fleetplan.planner.landscape.frontier_points import FrontierPoint, frontier_points
from fleetplan.scenarios.load import load_fleet

SCENARIOS = Path(__file__).parents[3] / "scenarios"


@pytest.fixture(scope="module")
def points() -> tuple[FrontierPoint, ...]:
    return frontier_points(load_fleet(SCENARIOS / "tiny.yaml"), ["chat"])


def line(point: FrontierPoint) -> tuple[str, str]:
    return point.phase, point.hardware


def test_more_latency_always_buys_more_rate(points: tuple[FrontierPoint, ...]) -> None:
    lines = {key: list(own) for key, own in groupby(points, key=line)}
    assert {phase for phase, _ in lines} == {"prefill", "decode", "aggregated"}
    assert {hardware for _, hardware in lines} == {"H100-SXM", "H200-SXM"}
    for own in lines.values():
        assert len(own) > 3
        for before, after in pairwise(own):
            assert before.latency_ms < after.latency_ms
            assert before.requests_per_s_per_accelerator < after.requests_per_s_per_accelerator


def test_limits_are_left_aside(points: tuple[FrontierPoint, ...]) -> None:
    # The service asks for 40 ms; what is slower is shown as well.
    assert max(point.latency_ms for point in points if point.phase == "decode") > 40


def test_a_long_line_keeps_both_ends(
    points: tuple[FrontierPoint, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_POINTS", 3)
    thin = frontier_points(load_fleet(SCENARIOS / "tiny.yaml"), ["chat"])
    for key, own in groupby(thin, key=line):
        kept, whole = list(own), [point for point in points if line(point) == key]
        assert len(kept) == 3
        assert (kept[0], kept[-1]) == (whole[0], whole[-1])


def test_services_that_are_not_asked_or_bring_their_own_rates_have_none() -> None:
    assert frontier_points(load_fleet(SCENARIOS / "tiny.yaml"), []) == ()
    own = load_fleet(SCENARIOS / "bring-your-own-rates" / "fleet.yaml")
    assert frontier_points(own, [service.name for service in own.services]) == ()
