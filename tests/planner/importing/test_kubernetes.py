"""Kubernetes nodes as pools."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from tests.planner.command_line import run
from tests.planner.importing.cluster_nodes import NODES, OPTIONS, listed, node, nvidia, pools

from fleetplan.fleet.document.plain import read_yaml, yaml_text
from fleetplan.fleet.errors import InputError
from fleetplan.planner.importing.clusters import kubernetes_pools
from fleetplan.planner.importing.slurm import slurm_pools
from fleetplan.scenarios.load import load_fleet


def test_nodes_that_are_alike_are_one_pool() -> None:
    document = listed(
        *(nvidia(f"h{n}", "NVIDIA-H100-80GB-HBM3", 8) for n in range(3)),
        nvidia("west", "NVIDIA-H100-80GB-HBM3", 8, "west"),
        nvidia("cordoned", "NVIDIA-H100-80GB-HBM3", 8, unschedulable=True),
        node("amd", {"amd.com/gpu.product-name": "AMD_Instinct_MI300X_OAM"}, {"amd.com/gpu": "8"}),
        node("cpu1", {}, {"cpu": "64"}),
        node("cpu2", {}, {"cpu": "64"}),
    )
    found = kubernetes_pools(document, "nodes.json", OPTIONS)
    assert pools(found.text) == {
        "east-h100-sxm": {"name": "east-h100-sxm", "region": "east", "hardware": "H100-SXM", "hosts": 4},
        "west-h100-sxm": {"name": "west-h100-sxm", "region": "west", "hardware": "H100-SXM", "hosts": 1},
        "mi300x": {"name": "mi300x", "hardware": "MI300X", "hosts": 1},
    }
    assert found.taken == 6
    assert [(each.place, each.reason) for each in found.rejected] == [
        ("cpu1 and 1 more", "has no accelerators")
    ]
    assert "2026-11-24: 6 nodes with accelerators, 1 of them out of service" in found.text
    assert "Fill in the cost of each pool" in found.text


def test_hosts_of_another_size_are_a_kind_of_their_own() -> None:
    found = kubernetes_pools(listed(nvidia("half", "NVIDIA-H100-80GB-HBM3", 4)), "nodes.json", OPTIONS)
    document = read_yaml(found.text)
    assert document["hardware"] == {"H100-SXM-x4": {"like": "H100-SXM", "accelerators_per_host": 4}}
    assert document["pools"][0]["hardware"] == "H100-SXM-x4"


@pytest.mark.parametrize(
    ("item", "hardware", "accelerators"),
    [
        # The instance type tells what no label does.
        (
            node(
                "trn", {"node.kubernetes.io/instance-type": "trn2.48xlarge"}, {"aws.amazon.com/neuron": "16"}
            ),
            "Trainium2",
            16,
        ),
        (
            node("tpu", {"cloud.google.com/gke-tpu-accelerator": "tpu-v6e-slice"}, {"google.com/tpu": "4"}),
            "TPU-v6e",
            4,
        ),
        # Ten shares of each of eight cards: by NVIDIA's plugin, the same under another name, and by GKE.
        (nvidia("shared", "NVIDIA-H100-80GB-HBM3-SHARED", 80), "H100-SXM", 8),
        (
            node(
                "renamed",
                {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3", "nvidia.com/gpu.count": "8"},
                {"nvidia.com/gpu": "0", "nvidia.com/gpu.shared": "80"},
            ),
            "H100-SXM",
            8,
        ),
        (
            node(
                "gke",
                {
                    "cloud.google.com/gke-accelerator": "nvidia-h100-80gb",
                    "cloud.google.com/gke-max-shared-clients-per-gpu": "10",
                },
                {"nvidia.com/gpu": "80"},
            ),
            "H100-SXM",
            8,
        ),
        # AMD's labeller: an unknown product name beside a known device id, and whole cards by their mode.
        (
            node(
                "amd",
                {"amd.com/gpu.product-name": "Next_Name", "amd.com/gpu.device-id": "75a3"},
                {"amd.com/gpu": "8"},
            ),
            "MI355X",
            8,
        ),
        (
            node("spx", {"amd.com/gpu.product-name": "AMD_Instinct_MI355_OAM"}, {"amd.com/spx_nps1": "8"}),
            "MI355X",
            8,
        ),
    ],
)
def test_other_ways_of_telling_the_kind(item: object, hardware: str, accelerators: int) -> None:
    document = read_yaml(kubernetes_pools(listed(item), "nodes.json", OPTIONS).text)
    (pool,) = document["pools"]
    assert pool["hardware"].startswith(hardware)
    if pool["hardware"] != hardware:
        assert document["hardware"][pool["hardware"]]["accelerators_per_host"] == accelerators


@pytest.mark.parametrize(
    ("item", "reason"),
    [
        (nvidia("mig", "NVIDIA-H100-80GB-HBM3-MIG-1g.10gb", 56), "MIG"),
        (nvidia("pcie", "NVIDIA-H200-NVL", 8), "is a PCIe card"),
        (nvidia("new", "NVIDIA-H999", 8), "allowed: one of"),
        (nvidia("many", "NVIDIA-H200", 10**9), "no host has that many"),
        (node("bare", {}, {"nvidia.com/gpu": "8"}), "give --hardware"),
        # Parts of cards, as the plugins of NVIDIA (strategy mixed), GKE and AMD (single, mixed) count them.
        (
            node("mixed", {"nvidia.com/gpu.product": "NVIDIA-H200"}, {"nvidia.com/mig-1g.18gb": "56"}),
            "nvidia.com/mig-1g.18gb: parts of a card",
        ),
        (
            node(
                "gke-mig",
                {
                    "cloud.google.com/gke-accelerator": "nvidia-h100-80gb",
                    "cloud.google.com/gke-gpu-partition-size": "1g.10gb",
                },
                {"nvidia.com/gpu": "56"},
            ),
            "1g.10gb: parts of a card",
        ),
        (
            node(
                "cpx",
                {
                    "amd.com/gpu.product-name": "AMD_Instinct_MI300X_OAM",
                    "amd.com/gpu.compute-memory-partition": "cpx_nps4",
                },
                {"amd.com/gpu": "64"},
            ),
            "cpx_nps4: parts of a card",
        ),
        (node("cpx-mixed", {}, {"amd.com/cpx_nps4": "64"}), "amd.com/cpx_nps4: parts of a card"),
        ("text", "has no accelerators"),
    ],
)
def test_nodes_that_are_not_taken_have_their_reason(item: object, reason: str) -> None:
    found = kubernetes_pools(listed(item, nvidia("good", "NVIDIA-H200", 8)), "nodes.json", OPTIONS)
    (rejected,) = found.rejected
    assert reason in rejected.reason
    assert list(pools(found.text)) == ["east-h200-sxm"]


def test_what_is_no_list_of_nodes_is_refused() -> None:
    for document in ({"items": [{"kind": "Pod"}]}, {"kind": "Pod"}, [], "text"):
        with pytest.raises(InputError, match="is not a list of nodes"):
            kubernetes_pools(document, "nodes.json", OPTIONS)
    with pytest.raises(InputError, match="sinfo --json"):
        slurm_pools({"jobs": []}, "sinfo.json", OPTIONS)


def test_a_node_alone_is_read_and_yaml_is_told_from_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert pools(kubernetes_pools(nvidia("h", "NVIDIA-H200", 8), "node.json", OPTIONS).text)
    path = tmp_path / "nodes.yaml"
    path.write_text(yaml_text(NODES), encoding="utf-8")
    assert run("import", "kubernetes", path, "--out", tmp_path / "pools.yaml") == 2
    assert "it looks like YAML" in capsys.readouterr().err


def test_the_pools_are_part_of_a_fleet(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nodes = tmp_path / "nodes.json"
    nodes.write_text(
        json.dumps(listed(*(nvidia(f"h{n}", "NVIDIA-H100-80GB-HBM3", 4) for n in range(3)))), "utf-8"
    )
    words = ("import", "kubernetes", nodes, "--out", tmp_path / "pools.yaml")
    assert run(*words, "--rent-usd-per-accelerator-hour", 2) == 0
    assert "3 rows taken" in capsys.readouterr().err
    (tmp_path / "fleet.yaml").write_text(
        "version: 1\nimports: [pools.yaml]\nregions: {east: {}}\nservices:\n  - {name: chat, "
        "model: llama3.1-8b, workload: {input_tokens: 9, output_tokens: 9}, slo: {tpot_ms: 50}, demand: 1}\n",
        encoding="utf-8",
    )
    fleet = load_fleet(tmp_path / "fleet.yaml", (), ())
    assert [(pool.name, pool.hosts, pool.accelerators_per_host) for pool in fleet.pools] == [
        ("east-h100-sxm-x4", 3, 4)
    ]
    capsys.readouterr()
    assert run(*words, "--rent-usd-per-accelerator-hour", 2, "--capex-usd-per-host", 5) == 2
    assert "not both" in capsys.readouterr().err


def test_cards_that_no_device_plugin_offers_are_those_that_discovery_counts() -> None:
    labels = {"nvidia.com/gpu.product": "NVIDIA-B200", "nvidia.com/gpu.count": "8"}
    document = listed(
        # With Dynamic Resource Allocation a node has no such resource; a plugin that fails offers none.
        node("dra", labels, {"cpu": "96"}),
        node("broken", labels, {"cpu": "96", "nvidia.com/gpu": "0"}),
        node("mixed", labels, {"cpu": "96", "nvidia.com/gpu": "0", "nvidia.com/mig-1g.23gb": "7"}),
    )
    found = kubernetes_pools(document, "nodes.json", OPTIONS)
    assert pools(found.text)["b200-sxm"]["hosts"] == 2
    assert "2 nodes with accelerators, 1 of them out of service" in found.text
    assert [(each.place, each.rows) for each in found.rejected] == [("mixed", 1)]


def test_cards_of_intel_ask_for_their_kind() -> None:
    document = listed(node("arc", {}, {"gpu.intel.com/xe": "4"}))
    found = kubernetes_pools(document, "nodes.json", OPTIONS)
    assert [each.reason for each in found.rejected] == [
        "4 gpu.intel.com/xe without a label for their kind: give --hardware"
    ]
    given = kubernetes_pools(document, "nodes.json", replace(OPTIONS, hardware="Arc-Pro-B60"))
    assert pools(given.text)["arc-pro-b60-x4"]["hosts"] == 1


def test_shapes_of_oracle_say_what_they_have() -> None:
    labels = {"node.kubernetes.io/instance-type": "BM.GPU.H100.8"}
    found = kubernetes_pools(listed(node("oke", labels, {"nvidia.com/gpu": "8"})), "nodes.json", OPTIONS)
    assert pools(found.text)["h100-sxm"]["hosts"] == 1


def test_nodes_without_their_list_are_read_as_well() -> None:
    items = NODES["items"]
    assert kubernetes_pools(items, "nodes.json", OPTIONS) == kubernetes_pools(NODES, "nodes.json", OPTIONS)


def test_one_price_for_several_kinds_is_told() -> None:
    document = listed(
        nvidia("a", "NVIDIA-H100-80GB-HBM3", 8), nvidia("b", "NVIDIA-L40S", 8), nvidia("c", "NVIDIA-L40S", 8)
    )
    priced = replace(OPTIONS, capex_usd_per_host=297_000.0)
    found = kubernetes_pools(document, "nodes.json", priced)
    assert found.notes == ("one price for 2 kinds of hosts: change it for those with another price",)
    assert kubernetes_pools(NODES, "nodes.json", priced).notes == ()


def test_rows_that_are_left_out_are_all_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = listed(*NODES["items"], *(node(f"cpu{n}", {}, {"cpu": "64"}) for n in range(7)))  # type: ignore[misc]
    path = tmp_path / "nodes.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    assert run("import", "kubernetes", path, "--out", tmp_path / "pools.yaml") == 0
    assert "3 rows taken, 7 not" in capsys.readouterr().err


def test_a_day_that_is_none_is_refused_before_anything_is_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "nodes.json"
    path.write_text(json.dumps(NODES), encoding="utf-8")
    for day in ("yesterday", "2026-02-30"):
        assert run("import", "kubernetes", path, "--as-of", day, "--out", tmp_path / "pools.yaml") == 2
        assert f"--as-of: {day!r} is not a date" in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "pools.yaml").exists()
