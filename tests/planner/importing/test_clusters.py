"""Nodes of Kubernetes and Slurm as pools."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.planner.command_line import run

from fleetplan.fleet.document.plain import read_yaml, yaml_text
from fleetplan.fleet.errors import InputError
from fleetplan.planner.importing.clusters import PoolOptions, kubernetes_pools
from fleetplan.planner.importing.slurm import slurm_pools
from fleetplan.scenarios.load import load_fleet

OPTIONS = PoolOptions("2026-11-24")


def node(name: str, labels: dict[str, str], capacity: dict[str, str], **spec: object) -> dict[str, Any]:
    """A node by the API of Kubernetes 1.37, without what no importer reads."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": spec,
        "status": {"capacity": capacity, "conditions": [{"type": "Ready", "status": "True"}]},
    }


def nvidia(name: str, product: str, gpus: int, region: str = "east", **spec: object) -> dict[str, Any]:
    labels = {"nvidia.com/gpu.product": product, "nvidia.com/gpu.count": "8"}
    return node(
        name,
        labels | {"topology.kubernetes.io/region": region},
        {"cpu": "96", "nvidia.com/gpu": str(gpus)},
        **spec,
    )


def listed(*nodes: object) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "List", "items": list(nodes)}


NODES = listed(*(nvidia(f"h{n}", "NVIDIA-H100-80GB-HBM3", 8) for n in range(3)))


def pools(text: str) -> dict[str, dict[str, Any]]:
    return {pool["name"]: pool for pool in read_yaml(text)["pools"]}


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
    assert "is yours to fill in" in found.text


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
        (nvidia("many", "NVIDIA-H200", 10**9), "no host has so many"),
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


SINFO = {
    "sinfo": [
        {"partition": {"name": name}, "node": {"state": ["IDLE"]}, "gres": {"total": "gpu:h100:8(S:0-1)"},
         "nodes": {"total": 2, "nodes": ["h1", "h2"]}}
        for name in ("batch", "debug")
    ]
    + [
        {"node": {"state": ["IDLE", "DRAIN"]}, "gres": {"total": "gpu:nvidia_h200:8"},
         "nodes": {"nodes": ["x1"]}},
        {"node": {"state": ["IDLE"]}, "gres": {"total": ""}, "nodes": {"nodes": ["c1", "c2"]}},
        {"node": {"state": ["IDLE"]}, "gres": {"total": "gpu:8"}, "nodes": {"nodes": ["u1"]}},
        {"node": {"state": ["IDLE"]}, "gres": {"total": "gpu:h100:4,gpu:h200:4"}, "nodes": {"nodes": ["m1"]}},
    ],
    "meta": {"plugins": {"data_parser": "data_parser/v0.0.42"}},
}  # fmt: skip
"""By the schema of data_parser v0.0.42 (Slurm 24.11): rows of partitions, nodes that are alike together."""

SLURM_NODES = {
    "nodes": [
        {"name": "h1", "gres": "gpu:h100:8(S:0-1)", "state": "idle", "state_flags": []},
        {"name": "h2", "gres": "gpu:h100:8(S:0-1)", "state": "down", "state_flags": ["DRAIN"]},
    ]
}
"""By the schema of Slurm 22.05, which is also that of `scontrol show nodes --json`."""


def test_a_node_of_several_partitions_counts_once() -> None:
    options = PoolOptions("2026-11-24", region="east", rent_usd_per_accelerator_hour=2.0)
    found = slurm_pools(SINFO, "sinfo.json", options)
    rented = {"usd_per_accelerator_hour": 2.0, "price_as_of": "2026-11-24"}
    assert pools(found.text) == {
        "east-h100-sxm": {"name": "east-h100-sxm", "region": "east", "hardware": "H100-SXM", "hosts": 2,
                          "rented": rented},
        "east-h200-sxm": {"name": "east-h200-sxm", "region": "east", "hardware": "H200-SXM", "hosts": 1,
                          "rented": rented},
    }  # fmt: skip
    assert "3 nodes with accelerators, 1 of them out of service" in found.text
    assert {each.place: each.reason for each in found.rejected} == {
        "c1 and 1 more": "has no accelerators",
        "u1": "gres gpu:8 names no kind: give --hardware",
        "m1": "has accelerators of several kinds: gpu:h100:4,gpu:h200:4",
    }
    odd = {"nodes": [{"name": "n", "gres": "gpu:h100:8x", "state": "idle"}, SLURM_NODES["nodes"][0]]}
    (rejected,) = slurm_pools(odd, "sinfo.json", OPTIONS).rejected
    assert rejected.reason == "gres 'gpu:h100:8x' is not understood"
    told = PoolOptions("2026-11-24", hardware="b200")
    assert "B200-SXM" in slurm_pools(SINFO, "sinfo.json", told).text


def test_a_node_alone_is_read_and_yaml_is_told_from_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert pools(kubernetes_pools(nvidia("h", "NVIDIA-H200", 8), "node.json", OPTIONS).text)
    path = tmp_path / "nodes.yaml"
    path.write_text(yaml_text(NODES), encoding="utf-8")
    assert run("import", "kubernetes", path, "--out", tmp_path / "pools.yaml") == 2
    assert "it looks like YAML" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"nodes": {"nodes": ["gpu[01-04]"]}, "node": {"state": ["IDLE"]}}, "stands for several nodes"),
        ({"nodes": {"nodes": [], "total": 4}, "node": {"state": ["IDLE"]}}, "stands for several nodes"),
        ({"nodes": {"nodes": ["c1"]}, "node": {"state": ["IDLE", "CLOUD", "POWERED_DOWN"]}}, "of a cloud"),
        ({"nodes": {"nodes": ["c1"]}, "node": {"state": ["FUTURE"]}}, "FUTURE"),
    ],
)
def test_nodes_of_slurm_that_are_not_one_host_are_not_counted(row: dict[str, object], reason: str) -> None:
    document = {"sinfo": [{**row, "gres": {"total": "gpu:h100:8"}}, SINFO["sinfo"][0]]}  # type: ignore[index]
    found = slurm_pools(document, "sinfo.json", OPTIONS)
    assert [reason in each.reason for each in found.rejected] == [True]
    assert pools(found.text)["h100-sxm"]["hosts"] == 2


def test_older_slurm_lists_nodes() -> None:
    found = slurm_pools(SLURM_NODES, "sinfo.json", OPTIONS)
    assert pools(found.text) == {"h100-sxm": {"name": "h100-sxm", "hardware": "H100-SXM", "hosts": 2}}
    assert "1 of them out of service" in found.text


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
        "4 gpu.intel.com/xe without a label that says which: give --hardware"
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
    assert found.notes == ("one price for 2 kinds of hosts: change it where it is not theirs",)
    assert kubernetes_pools(NODES, "nodes.json", priced).notes == ()


def test_states_of_sinfo_are_those_of_its_json() -> None:
    rows = [
        {
            "node": {"state": states},
            "nodes": {"total": 1, "nodes": [f"n{number}"]},
            "gres": {"total": "gpu:h100:8(S:0-1)"},
        }
        for number, states in enumerate(
            (["IDLE"], ["IDLE", "MAINTENANCE", "RESERVED"], ["DOWN", "INVALID_REG"], ["PLANNED"])
        )
    ]
    found = slurm_pools({"sinfo": rows}, "sinfo.json", OPTIONS)
    assert "4 nodes with accelerators, 2 of them out of service" in found.text


@pytest.mark.parametrize("kind", ["1g.10gb", "nvidia_h100_80gb_hbm3_1g.10gb"])
def test_parts_of_cards_in_gres_are_no_other_hardware(kind: str) -> None:
    row = {
        "node": {"state": ["IDLE"]},
        "nodes": {"total": 1, "nodes": ["n"]},
        "gres": {"total": f"gpu:{kind}:56(S:0-1)"},
    }
    (rejected,) = slurm_pools({"sinfo": [row]}, "sinfo.json", OPTIONS).rejected
    assert rejected.reason == f"{kind}: parts of a card (MIG) are no accelerators of the catalogue"


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
        assert f"--as-of: {day!r} is no date" in " ".join(capsys.readouterr().err.split())
    assert not (tmp_path / "pools.yaml").exists()
