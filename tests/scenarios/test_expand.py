"""Scenarios, overrides and assignments laid on a fleet file."""

from pathlib import Path

import pytest

from fleetplan.fleet.document import Document, read_document
from fleetplan.fleet.errors import InputError
from fleetplan.fleet.inventory import Fleet
from fleetplan.fleet.resolve import build_fleet
from fleetplan.scenarios.expand import expand

FLEET = """\
version: 1
offers:
  - {name: h200-rent, hardware: H200-SXM, rent_usd_per_accelerator_hour: 2.5, max_hosts: 8}
services:
  - name: chat
    model: llama3-8b
    workload: {input_tokens: 100, output_tokens: 10}
    slo: {ttft_ms: 350}
    demand: 5
  - {name: v1.5, model: llama3-8b, workload: {input_tokens: 1, output_tokens: 1}, demand: 1}
overrides:
  cheap: {offers: [{name: h200-rent, rent_usd_per_accelerator_hour: 1.8}]}
  tight: {services: [{name: chat, slo: {ttft_ms: 200, tpot_ms: 20}}]}
  tighter: {services: [{name: chat, slo: {ttft_ms: 150}}]}
  broken: 5
scenarios:
  squeeze: [cheap, tight]
  hard: [tight, tighter]
  growth: {services: [{name: chat, demand: 50}]}
  odd: [cheep]
  odder: cheap
  oddest: [broken]
"""


@pytest.fixture
def document(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Document:
    monkeypatch.chdir(tmp_path)
    Path("fleet.yaml").write_text(FLEET, encoding="utf-8")
    return read_document("fleet.yaml")


def fleet_of(document: Document, scenarios: list[str], assignments: list[str]) -> Fleet:
    return build_fleet(expand(document, scenarios, assignments))


def messages_of(document: Document, scenarios: list[str], assignments: list[str]) -> list[str]:
    with pytest.raises(InputError) as caught:
        fleet_of(document, scenarios, assignments)
    return [str(issue) for issue in caught.value.issues]


def test_without_a_scenario_nothing_changes(document: Document) -> None:
    assert expand(document, [], []).root == document.root
    assert fleet_of(document, [], []).services[0].ttft_ms == 350


def test_a_scenario_lays_its_overrides_on_in_order(document: Document) -> None:
    fleet = fleet_of(document, ["squeeze"], [])
    assert fleet.offers[0].rent_usd_per_accelerator_hour == (1.8,)
    assert fleet.offers[0].max_units == (8,)
    assert (fleet.services[0].ttft_ms, fleet.services[0].tpot_ms) == (200, 20)
    hard = fleet_of(document, ["hard"], []).services[0]
    assert (hard.ttft_ms, hard.tpot_ms) == (150, 20)


def test_scenarios_may_be_mappings_and_are_laid_on_in_order(document: Document) -> None:
    fleet = fleet_of(document, ["squeeze", "growth"], [])
    assert fleet.services[0].demand.peak["default", "now", "all"] == 50
    assert fleet.services[0].ttft_ms == 200


def test_assignments_win_over_scenarios(document: Document) -> None:
    assignments = ["services.chat.slo.ttft_ms=300", "offers.h200-rent.max_hosts=10", "budget={tco_usd: 1e6}"]
    fleet = fleet_of(document, ["squeeze"], assignments)
    assert (fleet.services[0].ttft_ms, fleet.services[0].tpot_ms) == (300, 20)
    assert fleet.offers[0].max_units == (10,)
    assert fleet.budget.tco_usd == 1e6


@pytest.mark.parametrize(
    "assignment",
    [
        "services.v1.5.demand=7",
        "services.1.demand=7",
        "services.v1.5.demand={default: 7}",
        " services.1.demand = 7",
    ],
)
def test_items_by_name_or_position(document: Document, assignment: str) -> None:
    assert fleet_of(document, [], [assignment]).services[1].demand.peak["default", "now", "all"] == 7


def test_a_key_that_the_file_leaves_out_can_be_set(document: Document) -> None:
    fleet = fleet_of(document, [], ["services.chat.slo.tpot_ms=9", "policy.reserve_hosts_per_pool=2"])
    assert (fleet.services[0].tpot_ms, fleet.policy.reserve_hosts_per_pool) == (9, 2)


def test_an_assigned_price_is_sourced_to_its_option(document: Document) -> None:
    fleet = fleet_of(document, [], ["offers.h200-rent.rent_usd_per_accelerator_hour=3"])
    assert fleet.offers[0].price_source == "--set offers.h200-rent.rent_usd_per_accelerator_hour=3"


def test_the_document_itself_stays_as_it_is(document: Document) -> None:
    before = document.root.plain()
    expand(document, ["squeeze"], ["services.chat.demand=1"])
    assert document.root.plain() == before


@pytest.mark.parametrize(
    ("scenarios", "assignments", "expected"),
    [
        (
            ["sqeeze"],
            [],
            "fleet.yaml:16:1: scenarios: there is no scenario 'sqeeze'; "
            "allowed: squeeze, hard, growth, odd, odder, oddest; did you mean 'squeeze'?",
        ),
        (
            ["odd"],
            [],
            "fleet.yaml:20:9: scenarios.odd[0]: there is no override 'cheep'; "
            "allowed: cheap, tight, tighter, broken; did you mean 'cheap'?",
        ),
        (
            ["odder"],
            [],
            "fleet.yaml:21:10: scenarios.odder: must be a list of names of overrides, or a mapping",
        ),
        (["oddest"], [], "fleet.yaml:15:11: overrides.broken: must be a mapping"),
        (
            [],
            ["services.chta.demand=1"],
            "--set services.chta.demand=1: services.chta.demand: services has no item 'chta'; "
            "allowed: chat, v1.5; did you mean 'chat'?",
        ),
        (
            [],
            ["services.chat.slo.tfft_ms=1"],
            "--set services.chat.slo.tfft_ms=1: services.chat.slo.tfft_ms: unknown key; "
            "allowed: ttft_ms, tpot_ms, ttft_p50_ms, ttft_p90_ms, ttft_p95_ms, ttft_p99_ms, tpot_p50_ms, "
            "tpot_p90_ms, tpot_p95_ms, tpot_p99_ms, goodput_ratio; did you mean 'ttft_ms'?",
        ),
        (
            [],
            ["services.chat.slo.ttft_ms=fast"],
            "--set services.chat.slo.ttft_ms=fast: services.chat.slo.ttft_ms: must be a number, not 'fast'",
        ),
        (
            [],
            ["version.x=1"],
            "--set version.x=1: version.x: version is 1 and has no keys; set version itself, "
            "such as version={x: ...}",
        ),
        ([], ["demand"], "--set demand: must be key.path=value; such as services.chat.slo.ttft_ms=300"),
        ([], ["=1"], "--set =1: must be key.path=value; such as services.chat.slo.ttft_ms=300"),
        ([], ["name=[1"], "--set name=[1: not valid YAML: while parsing a flow sequence"),
    ],
)
def test_mistakes(document: Document, scenarios: list[str], assignments: list[str], expected: str) -> None:
    (message,) = messages_of(document, scenarios, assignments)
    assert message.startswith(expected)


def test_all_mistakes_come_at_once(document: Document) -> None:
    messages = messages_of(document, ["gone", "odd"], ["services.chta.demand=1", "x"])
    assert len(messages) == 4
