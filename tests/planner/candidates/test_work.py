"""The work of building candidates grows linearly with their number; it is counted, not timed."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import CodeType
from typing import Any

import pytest
from tests.cache_home import own_cache_home

from fleetplan.fleet.inventory import Fleet
from fleetplan.perfmodel.landscape import cache
from fleetplan.perfmodel.operators import OperatorKind
from fleetplan.perfmodel.optables import OperatorSource, OperatorTimes
from fleetplan.planner.candidates import build_candidates, remote
from fleetplan.scenarios.load import load_fleet

MONITORED = ("planner/candidates/", "planner/problem/")
"""Where passes through loops are counted; functions are counted wherever they are called."""

GROWTH = 1.25
"""Work of each candidate among twice as many or more, over its work among few of them; it was 1.5 where each
was compared with each. What is done once a service, or sorted, makes it differ from 1."""


def fleet_of(folder: Path, services: int, distances: int = 0, accelerators: int = 8) -> Fleet:
    """Return a fleet of services, each served from one region over several distances."""
    far = {f"r{n}": 30 + 7 * n for n in range(1, distances + 1)}
    regions = "".join(f"  {name}: {{round_trip_ms: {{r0: {ms}}}}}\n" for name, ms in far.items())
    served = ", ".join(f"{name}: [r0]" for name in far)
    text = "version: 1\nregions:\n  r0: {}\n" + regions
    text += "offers:\n  - {name: rent, hardware: MI300X, regions: [r0], rent_usd_per_accelerator_hour: 2.0}\n"
    text += "services:\n"
    for number in range(services):
        text += f"  - name: s{number}\n    model: llama3-8b\n    slo: {{ttft_ms: 400, tpot_ms: 60}}\n"
        text += f"    workload: {{input_tokens: {800 + number}, output_tokens: 100}}\n"
        text += f"    search: {{max_accelerators: {accelerators}}}\n"
        text += "    demand: {" + ", ".join(f"{name}: 1" for name in ("r0", *far)) + "}\n"
        text += f"    serve_from: {{{served}}}\n" if far else ""
    path = folder / "fleet.yaml"
    path.write_text(text, encoding="utf-8")
    return load_fleet(path)


def counted(build: Callable[[], Any]) -> int:
    """Functions that are called, and lines that are run where `MONITORED` says so."""
    steps = 0
    monitored: dict[CodeType, bool] = {}

    def line(frame: Any, event: str, argument: object) -> Any:
        nonlocal steps
        steps += event == "line"
        return line

    def call(frame: Any, event: str, argument: object) -> Any:
        nonlocal steps
        steps += 1
        code = frame.f_code
        if code not in monitored:
            monitored[code] = any(place in code.co_filename for place in MONITORED)
        return line if monitored[code] else None

    sys.settrace(call)
    try:
        build()
    finally:
        sys.settrace(None)
    return steps


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(own_cache_home(tmp_path / "cache")))
    monkeypatch.setenv("FLEETPLAN_EVALUATE_AHEAD", "off")
    cache.forget()


def steps_each(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> tuple[int, float]:
    """Candidates that were made, and steps of each, of a fleet whose landscapes are known."""
    found: list[int] = []
    whole = remote.landscape_candidates

    def counting(*arguments: Any) -> Any:
        candidates, tables = whole(*arguments)
        found.append(len(candidates))
        return candidates, tables

    build_candidates(fleet, lambda _: None)
    with monkeypatch.context() as inside:
        inside.setattr(remote, "landscape_candidates", counting)
        steps = counted(lambda: build_candidates(fleet, lambda _: None))
    return sum(found), steps / sum(found)


@pytest.mark.parametrize(
    ("few", "many"),
    [
        (
            {"services": 1, "distances": 3, "accelerators": 8},
            {"services": 1, "distances": 3, "accelerators": 64},
        ),
        ({"services": 1, "distances": 3}, {"services": 1, "distances": 7}),
        ({"services": 2}, {"services": 4}),
    ],
    ids=["layouts", "ways", "services"],
)
def test_more_candidates_take_as_much_more_work(
    few: Mapping[str, int], many: Mapping[str, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, of_few = steps_each(fleet_of(tmp_path, **few), monkeypatch)
    second, of_many = steps_each(fleet_of(tmp_path, **many), monkeypatch)
    assert second >= 1.9 * first
    assert of_many < GROWTH * of_few


def test_services_are_looked_up_by_table_and_phase(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither configurations, nor what they rest on, nor distances have look-ups of their own."""
    asked = 0
    times = OperatorSource.times_of_distinct

    def counting(self: OperatorSource, kind: OperatorKind, dtype: str, dims: Any) -> OperatorTimes:
        nonlocal asked
        asked += 1
        return times(self, kind, dtype, dims)

    monkeypatch.setattr(OperatorSource, "times_of_distinct", counting)

    def look_ups(**size: int) -> int:
        nonlocal asked
        asked = 0
        cache.forget()
        for kept in cache.cache_folder().glob("*.npz"):
            kept.unlink()
        build_candidates(fleet_of(tmp_path, **size), lambda _: None)
        return asked

    # A dense model has eight kinds of operators at most, and five steps: prompts, generation, iterations of
    # both by servers with the batch that is their default and with larger ones, and what those rows rest on.
    of_few = look_ups(services=1, accelerators=4)
    of_many = look_ups(services=1, accelerators=16)
    assert 0 < of_few <= of_many <= 5 * 8
    assert look_ups(services=3, distances=4, accelerators=4) <= 3 * of_few
