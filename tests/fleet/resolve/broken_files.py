"""A fleet file for tests to break, and the messages that it gives then."""

from __future__ import annotations

from pathlib import Path

import pytest

from fleetplan.fleet.errors import InputError
from fleetplan.scenarios.load import load_fleet

FLEET = """\
version: 1
name: small
horizon: {periods: [2027Q1, 2027Q2]}
regions:
  us-east: {power_kw: 4000, pue: 1.15, energy_usd_per_kwh: 0.07}
  eu-west: {}
pools:
  - {name: east-h200, region: us-east, hardware: H200-SXM, hosts: 4, owned: {capex_usd_per_host: 300000}}
offers:
  - {name: h100-rent, hardware: H100-SXM, regions: [us-east, eu-west], rent_usd_per_accelerator_hour: 1.99}
services:
  - name: chat
    model: llama3-70b
    workload: {input_tokens: 2048, output_tokens: 150}
    slo: {ttft_ms: 350, tpot_ms: 30}
    demand: {us-east: {2027Q1: 9, 2027Q2: 10}}
policy: {unmet: forbid}
"""

TOP_LEVEL = (
    "version, name, horizon, regions, hardware, pools, offers, services, service_defaults, calibration, "
    "kv_links, policy, budget, finance, day_shapes, uncertainty, objective, scenarios, overrides"
)
"""The keys of a fleet file, as messages name them."""

BrokenTarget = tuple[str, str, str, list[str]]
"""What is broken, the text that is replaced, its replacement, and the messages without the file's name."""


def cases(broken: list[BrokenTarget]) -> pytest.MarkDecorator:
    """Return the mark of a test that is called with each of these."""
    return pytest.mark.parametrize(
        ("old", "new", "expected"), [case[1:] for case in broken], ids=[case[0] for case in broken]
    )


def messages_of(text: str) -> list[str]:
    path = Path("fleet.yaml")
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        load_fleet(path)
    assert str(caught.value).split("\n") == [str(issue) for issue in caught.value.issues]
    return [str(issue).removeprefix("fleet.yaml:") for issue in caught.value.issues]


def check_messages(old: str, new: str, expected: list[str]) -> None:
    """The fleet file with a text replaced gives exactly these messages."""
    assert old in FLEET
    assert messages_of(FLEET.replace(old, new, 1)) == expected
