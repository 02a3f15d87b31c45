"""Ways between regions, links and hardware for KV caches, and services that other regions may serve."""

from pathlib import Path

import pytest

from fleetplan.fleet.errors import InputError
from fleetplan.fleet.inventory import Fleet, KvLink
from fleetplan.scenarios.load import load_fleet

FILE = """\
version: 1
regions:
  east: {round_trip_ms: {west: 60, eu: 85}, network_usd_per_gb: {west: 0.02}}
  west: {}
  eu: {}
hardware: {own: {accelerators_per_host: 1}}
pools:
  - {name: p, region: east, hardware: H200-SXM, hosts: 2, rented: {usd_per_accelerator_hour: 2}}
  - {name: q, region: west, hardware: MI300X, hosts: 2, rented: {usd_per_accelerator_hour: 2}}
  - {name: r, region: east, hardware: H100-SXM, hosts: 2, rented: {usd_per_accelerator_hour: 2}}
services:
  - name: chat
    model: llama3-8b
    workload: {input_tokens: 100, output_tokens: 10}
    slo: {ttft_ms: 400}
    demand: {east: 5, eu: 2}
"""


def loaded(folder: Path, service: str = "", more: str = "", *changes: tuple[str, str]) -> Fleet:
    text = FILE + (f"    {service}\n" if service else "") + more
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path = folder / "fleet.yaml"
    path.write_text(text, encoding="utf-8")
    return load_fleet(path)


def refused(folder: Path, service: str = "", more: str = "", *changes: tuple[str, str]) -> str:
    with pytest.raises(InputError) as caught:
        loaded(folder, service, more, *changes)
    return str(caught.value)


def test_a_way_holds_in_both_directions(tmp_path: Path) -> None:
    regions = {region.name: region for region in loaded(tmp_path).regions}
    assert regions["east"].round_trip_ms == {"west": 60, "eu": 85}
    assert regions["west"].round_trip_ms == {"east": 60}
    assert regions["west"].network_usd_per_gb == {"east": 0.02}


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("any", {"east": ("west", "eu"), "west": ("east",), "eu": ("east",)}),
        ("[east]", {"west": ("east",), "eu": ("east",)}),
        ("{eu: [east]}", {"eu": ("east",)}),
        ("{eu: [east], east: any}", {"eu": ("east",), "east": ("west", "eu")}),
    ],
)
def test_who_may_serve_whom(tmp_path: Path, rule: str, expected: dict[str, tuple[str, ...]]) -> None:
    fleet = loaded(tmp_path, f"serve_from: {rule}")
    assert fleet.services[0].serve_from == expected
    assert loaded(tmp_path).services[0].serve_from == {}


def test_a_service_may_be_served_elsewhere_alone(tmp_path: Path) -> None:
    asked = "serve_from: {eu: [east]}\n    regions: [east]"
    fleet = loaded(tmp_path, asked)
    assert fleet.services[0].allowed_regions == ("east",)
    assert not any("regions" in warning for warning in fleet.warnings)
    text = refused(tmp_path, "regions: [east]")
    assert "there is demand in eu, and no region that may serve it is named" in text


@pytest.mark.parametrize(
    ("service", "changes", "expected"),
    [
        ("serve_from: [wst]", (), "services.chat.serve_from[0]: there is no region 'wst'"),
        ("serve_from: {ue: [east]}", (), "services.chat.serve_from.ue: there is no region 'ue'"),
        ("serve_from: {eu: [west]}", (), "the round trip from eu to west is unknown"),
        ("serve_from: every", (), "services.chat.serve_from: must not be 'every'"),
        ("serve_from: {eu: every}", (), "services.chat.serve_from.eu: must not be 'every'"),
        ("", (("west: {}", "west: {round_trip_ms: {east: 61}}"),), "61, and 60 the other way round"),
        ("", (("west: {}", "west: {round_trip_ms: {west: 61}}"),), "is the region itself"),
        ("", (("west: {}", "west: {round_trip_ms: {wst: 61}}"),), "there is no region 'wst'"),
    ],
)
def test_mistakes_have_their_place(
    tmp_path: Path, service: str, changes: tuple[tuple[str, str], ...], expected: str
) -> None:
    assert expected in refused(tmp_path, service, "", *changes)


def test_ways_that_are_too_long_are_said(tmp_path: Path) -> None:
    fleet = loaded(tmp_path, "serve_from: {eu: [east]}", "", ("ttft_ms: 400", "ttft_ms: 80"))
    assert "services.chat.serve_from: east is too far from eu: 85 of 80 ms" in fleet.warnings
    under_load = loaded(tmp_path, "serve_from: {eu: [east]}", "", ("ttft_ms: 400", "ttft_p95_ms: 80"))
    assert "services.chat.serve_from: east is too far from eu: 85 of 80 ms" in under_load.warnings
    fleet = loaded(tmp_path, "mb_per_request: 2", "", (", network_usd_per_gb: {west: 0.02}", ""))
    assert any("mb_per_request: has no effect" in warning for warning in fleet.warnings)


def test_caches_pass_between_parts_of_one_vendor(tmp_path: Path) -> None:
    policy = loaded(tmp_path).policy
    assert policy.may_pair("H200-SXM", "H100-SXM")
    assert policy.may_pair("MI300X", "MI300X")
    assert not policy.may_pair("H200-SXM", "MI300X")
    assert loaded(tmp_path, more="policy: {kv_pairs: any}\n").policy.kv_pairs is None
    listed = loaded(tmp_path, more="policy: {kv_pairs: [{prefill: MI300X, decode: H200-SXM}]}\n").policy
    assert listed.may_pair("MI300X", "H200-SXM")
    assert not listed.may_pair("H200-SXM", "MI300X")
    assert not listed.may_pair("H200-SXM", "H100-SXM")
    assert listed.may_pair("H100-SXM", "H100-SXM")


def test_one_vendor_needs_no_pairs(tmp_path: Path) -> None:
    assert loaded(tmp_path, "", "", ("hardware: MI300X", "hardware: B200-SXM")).policy.kv_pairs is None


def test_a_part_without_figures_goes_with_every_other(tmp_path: Path) -> None:
    policy = loaded(tmp_path, "", "", ("hardware: H100-SXM", "hardware: own")).policy
    assert policy.may_pair("own", "MI300X")
    assert policy.may_pair("H200-SXM", "own")


LINK = "kv_links: [{prefill: east, decode: west, gb_per_s: 50, added_ms: 30}]\n"
FAR = "policy: {kv_transfer: cross-region}\n"


def test_links_are_resolved(tmp_path: Path) -> None:
    fleet = loaded(tmp_path, "", LINK + FAR)
    assert fleet.kv_links == (KvLink("east", "west", 50.0, 30.0),)
    assert fleet.policy.kv_transfer == "cross-region"
    pools = loaded(tmp_path, "", "kv_links: [{prefill: p, decode: r, gb_per_s: 5}]\n")
    assert pools.kv_links == (KvLink("p", "r", 5.0, 0.0),)


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        (LINK, "kv_links[0]: leads to another region, and policy.kv_transfer is same-region"),
        (FAR, "policy.kv_transfer: needs a link between two regions"),
        (LINK.replace("west", "wst") + FAR, "there is no region or pool 'wst'"),
        (LINK.replace("west", "east"), "kv_links[0].added_ms: is within a region"),
        (LINK.replace("50", "0") + FAR, "kv_links[0].gb_per_s: must be more than 0"),
        ("policy: {kv_pairs: [{prefill: H999-SXM, decode: MI300X}]}\n", "there is no hardware 'H999-SXM'"),
        ("policy: {kv_pairs: none}\n", "policy.kv_pairs: must not be 'none'"),
        ("policy: {kv_transfer: same-host}\n", "must not be 'same-host'"),
    ],
)
def test_links_and_pairs_that_make_no_sense_are_refused(tmp_path: Path, more: str, expected: str) -> None:
    assert expected in refused(tmp_path, "", more)


def test_a_shared_budget_is_one_of_means(tmp_path: Path) -> None:
    follower = """\
  - name: safety
    model: llama3-8b
    workload: {input_tokens: 100, output_tokens: 1}
    follows: {service: chat, ratio: 1, ttft_share: 0.25}
"""
    text = refused(tmp_path, "", follower, ("ttft_ms: 400", "ttft_p95_ms: 400"))
    assert "services.safety.follows.ttft_share: chat limits TTFT under load" in text


def test_a_region_whose_block_is_no_block_is_one_mistake(tmp_path: Path) -> None:
    said = refused(tmp_path, "serve_from: [eu]", "", ("  eu: {}", "  eu: 10 %"))
    assert "regions.eu: must be a mapping" in said
    assert len(said.splitlines()) == 1
