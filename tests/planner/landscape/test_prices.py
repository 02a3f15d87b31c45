"""Cost of an accelerator-hour in a fleet."""

from __future__ import annotations

from pathlib import Path

import pytest

from fleetplan.planner.landscape.prices import cheapest_usd_per_accelerator_hour
from fleetplan.planner.landscape.question import SearchSpace, question_of_service
from fleetplan.scenarios.load import load_fleet

FLEET = """\
version: 1
pools: [{name: own, hardware: H100-SXM, hosts: HOSTS, owned: {capex_usd_per_host: 297000}}]
offers: [{name: rent, hardware: H200-SXM, rent_usd_per_accelerator_hour: 2}]
services:
  - {name: chat, model: llama3-8b, workload: {input_tokens: 500, output_tokens: 100}, demand: 5}
"""


def test_a_pool_without_hosts_costs_what_its_hosts_would(tmp_path: Path) -> None:
    """`plan solve --out` draws the frontier of every part that the file names."""
    found = []
    for hosts in (0, 3):
        path = tmp_path / f"{hosts}.yaml"
        path.write_text(FLEET.replace("HOSTS", str(hosts)), encoding="utf-8")
        fleet = load_fleet(path)
        found.append(cheapest_usd_per_accelerator_hour(fleet, fleet.hardware["H100-SXM"]))
        question = question_of_service(fleet, "chat", SearchSpace())
        assert [note.split(":")[0] for note in question.price_notes] == ["H100-SXM", "H200-SXM"]
    assert found[0] == found[1]
    # A sixteenth of the price in a quarter of 2,190 hours of eight cards.
    assert found[0][0] == pytest.approx(297_000 / 16 / (8 * 2190))
