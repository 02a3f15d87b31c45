"""Keys of placement, failure and maintenance: what they become, and how they are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from fleetplan.fleet.errors import InputError
from fleetplan.fleet.inventory import Fleet
from fleetplan.scenarios.load import load_fleet

FLEET = """\
version: 1
horizon: {periods: [2027Q1, 2027Q2]}
regions: {us-east: {}, eu-west: {}}
pools:
  - {name: p, region: us-east, hardware: H200-SXM, hosts: 4, rented: {usd_per_accelerator_hour: 2}}
services:
  - name: chat
    model: llama3-70b
    workload: {input_tokens: 2048, output_tokens: 150}
    demand: {us-east: 1}
policy: {unmet: forbid}
"""


def loaded(*changes: tuple[str, str]) -> Fleet:
    text = FLEET
    for old, new in changes:
        assert old in text
        text = text.replace(old, new, 1)
    Path("fleet.yaml").write_text(text, encoding="utf-8")
    return load_fleet("fleet.yaml")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def refused(*changes: tuple[str, str]) -> str:
    with pytest.raises(InputError) as caught:
        loaded(*changes)
    return str(caught.value)


def test_none_is_the_default() -> None:
    fleet = loaded()
    assert (fleet.policy.max_share_per_pool, fleet.policy.survive_region_loss) == (None, ())
    assert fleet.pools[0].maintenance_hosts == ()


def test_the_rules_are_read() -> None:
    rules = "unmet: forbid, max_share_per_pool: 0.6, survive_region_loss: [chat, chat]"
    fleet = loaded(("unmet: forbid", rules), ("hosts: 4", "hosts: 4, maintenance_hosts: {2027Q2: 3}"))
    assert (fleet.policy.max_share_per_pool, fleet.policy.survive_region_loss) == (0.6, ("chat",))
    assert fleet.pools[0].maintenance_hosts == (0, 3)
    assert fleet.warnings == loaded().warnings


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("forbid", "forbid, survive_region_loss: [chta]", "there is no service 'chta'"),
        ("forbid", "forbid, max_share_per_pool: 1.5", "max_share_per_pool"),
        ("forbid", "forbid, max_share_per_pool: 0", "max_share_per_pool"),
        ("hosts: 4", "hosts: 4, maintenance_hosts: {2027Q2: 5}", "5 of 4 are out of service"),
        ("hosts: 4", "hosts: 4, maintenance_hosts: {2028Q1: 1}", "there is no period '2028Q1'"),
        ("hosts: 4", "hosts: 4, maintenance_hosts: {2027Q1: -1}", "maintenance_hosts.2027Q1"),
        (
            "rented: {usd_per_accelerator_hour: 2}",
            "maintenance_hosts: {2027Q2: 1}, owned: {capex_usd_per_host: 9, in_service: 2026Q1, "
            "end_of_life: 2027Q2}",
            "cannot be combined with hosts that may retire",
        ),
    ],
)
def test_mistakes_are_named(old: str, new: str, message: str) -> None:
    assert message in refused((old, new))


def test_allowed_regions() -> None:
    services = ("    demand:", "    regions: [us-east]\n    demand:")
    assert loaded(services, ("forbid", "forbid, survive_region_loss: [chat]")).warnings == ()
    fleet = loaded(services)
    assert fleet.services[0].allowed_regions == ("us-east",)
    text = "has no effect: neither serve_from nor policy.survive_region_loss moves it"
    assert fleet.warnings == (f"services.chat.regions: {text}",)
    assert "there is demand in us-east" in refused((services[0], services[1].replace("us-east", "eu-west")))
    assert "there is no region 'us-west'" in refused((services[0], services[1].replace("us-east", "us-west")))


def test_one_region_cannot_be_lost() -> None:
    one = (("{us-east: {}, eu-west: {}}", "{us-east: {}}"), ("forbid", "forbid, survive_region_loss: [chat]"))
    assert "with a single region, nothing is left after its loss" in refused(*one)
