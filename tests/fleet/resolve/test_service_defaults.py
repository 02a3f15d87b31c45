"""`service_defaults` states common keys once; twelve services fit on a page."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from fleetplan.fleet.errors import InputError
from fleetplan.fleet.inventory import Fleet
from fleetplan.scenarios.load import load_fleet

TWELVE = Path(__file__).with_name("twelve-services.yaml")
LONG_FORM = Path(__file__).parents[4] / "shared" / "data" / "bugs" / "fleet12" / "fleet.yaml"
"""The same fleet with a figure for each service, region, quarter and slice, rounded to four digits."""

MOST_LINES = 199
FOUR_DIGITS = 5e-4
"""Relative error of a figure that was rounded to four digits."""

HEAD = """\
version: 1
horizon:
  periods: [2027Q1]
  slices: [{name: night, hours: 8}, {name: day, hours: 16}]
day_shapes: {people: {by_slice: {night: 0.5}}}
pools: [{name: p, hardware: H100-SXM, hosts: 1, owned: {capex_usd_per_host: 1}}]
"""
CHAT = "name: chat, model: llama3-8b, workload: {input_tokens: 300, output_tokens: 100}"


def loaded(tmp_path: Path, text: str) -> Fleet:
    path = tmp_path / "fleet.yaml"
    path.write_text(HEAD + text, encoding="utf-8")
    return load_fleet(path)


def without_places(value: Any) -> Any:
    """Return a resolved block without the lines that it came from."""
    if isinstance(value, dict):
        return {key: without_places(each) for key, each in value.items() if not str(key).endswith("source")}
    return [without_places(each) for each in value] if isinstance(value, list | tuple) else value


def test_a_default_is_what_every_service_would_state(tmp_path: Path) -> None:
    short = f"""\
service_defaults: {{headroom: 0.2, demand_by_slice: people, growth: 5 %/year, priority: 2}}
services:
  - {{{CHAT}, demand: 10}}
  - {{{CHAT.replace("chat", "o")}, demand: {{night: 1, day: 3}}, headroom: 0.1, priority: 3}}
  - {{{CHAT.replace("chat", "batch")}, offline: {{requests_per_day: 10}}}}
  - {{{CHAT.replace("chat", "check")}, follows: {{service: chat, ratio: 1}}, priority: 1}}
"""
    long = f"""\
services:
  - {{{CHAT}, demand: 10, headroom: 0.2, demand_by_slice: people, growth: 5 %/year, priority: 2}}
  - {{{CHAT.replace("chat", "o")}, demand: {{night: 1, day: 3}}, growth: 5 %/year,
     headroom: 0.1, priority: 3}}
  - {{{CHAT.replace("chat", "batch")}, offline: {{requests_per_day: 10}}, headroom: 0.2, priority: 2}}
  - {{{CHAT.replace("chat", "check")}, follows: {{service: chat, ratio: 1}}, headroom: 0.2, priority: 1}}
"""
    assert loaded(tmp_path, short).services == loaded(tmp_path, long).services


def test_a_mistake_in_the_defaults_is_told_once_and_where_it_stands(tmp_path: Path) -> None:
    text = f"""\
service_defaults:
  headroom: -1
  demand_by_slice: peple
services:
  - {{{CHAT}, demand: 10}}
  - {{{CHAT.replace("chat", "other")}, demand: 10}}
"""
    with pytest.raises(InputError) as caught:
        loaded(tmp_path, text)
    assert [(issue.line, issue.column) for issue in caught.value.issues] == [(8, 13), (9, 20)]
    assert "people" in caught.value.issues[1].hint


def test_twelve_services_fit_on_a_page_and_grow_as_they_say() -> None:
    assert len(TWELVE.read_text("utf-8").splitlines()) <= MOST_LINES
    fleet = load_fleet(TWELVE)
    chat = next(each for each in fleet.services if each.name == "chat")
    assert chat.demand.of(("eu-day", None))["us-west", "2027Q4", "all"] == pytest.approx(330 * 0.3 * 1.1**3)


@pytest.mark.skipif(not LONG_FORM.is_file(), reason="the fleet in its long form is not beside the repository")
def test_the_short_form_is_the_same_fleet_as_the_long_one() -> None:
    short, long = load_fleet(TWELVE), load_fleet(LONG_FORM)
    assert [each.name for each in short.services] == [each.name for each in long.services]
    for ours, theirs in zip(short.services, long.services, strict=True):
        cases = [(part.name, None) for part in short.slices]
        for case in cases:
            asked, stated = ours.demand.of(case), theirs.demand.of(case)
            assert asked.keys() == stated.keys()
            assert list(asked.values()) == pytest.approx(list(stated.values()), rel=FOUR_DIGITS)
    left_out = {"name", "path", "input_hashes", "warnings"}
    ours, theirs = (
        {key: without_places(value) for key, value in asdict(each).items() if key not in left_out}
        for each in (short, long)
    )
    for fleet in (ours, theirs):
        for service in fleet["services"]:
            del service["demand"]
            if service["variants"]:  # each states a precision of its own, so nothing reads the service's
                assert all(variant["weights"] and variant["kv"] for variant in service["variants"])
                del service["precision"]
    assert ours == theirs
