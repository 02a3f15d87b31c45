"""Machines for Karpenter, GKE and other clouds, including TPU slices."""

from __future__ import annotations

import math
import shlex

import pytest
from tests.interop.objects import refusals
from tests.planner.export.cluster_plans import LOCATIONS, labels_of, objects, of_catalogue, on_tpus
from tests.planner.export.launched_plans import plan

from fleetplan.fleet.errors import InputError
from fleetplan.planner.export.launch.cloud_nodes import gke_pools, karpenter_pools
from fleetplan.planner.export.launch.deployments import dns_name
from fleetplan.planner.export.launch.pools import standing_pools
from fleetplan.planner.export.launch.tools import tools
from fleetplan.planner.importing.records import known_hardware


def test_karpenter_starts_what_is_rented_and_no_more_than_that() -> None:
    whole = of_catalogue(plan())
    texts, left_out = karpenter_pools(whole, "2027Q2")
    assert [*refusals(texts)] == []
    standing = {pool.name: pool for pool in standing_pools(whole, "2027Q2")}
    assert {each.label for each in left_out} == {name for name, pool in standing.items() if pool.owned}
    made = {each["metadata"]["name"]: each["spec"] for each in objects(texts)}
    rented = [pool for pool in standing.values() if not pool.owned]
    assert set(made) == {pool.label for pool in rented}
    assert made
    for pool in rented:
        spec = made[pool.label]
        assert spec["limits"] == {"nvidia.com/gpu": str(-(-pool.accelerators // 8) * 8)}
        assert spec["template"]["metadata"]["labels"] == {"fleetplan/pool": pool.label}
        types = spec["template"]["spec"]["requirements"][0]
        assert types["values"] == ["p5.48xlarge"]


def test_power_caps_of_nodes_are_told() -> None:
    whole = of_catalogue(plan())
    assert whole.inputs is not None
    *others, own = whole.inputs.hardware
    capped = own.model_copy(update={"power_cap_w": 500.0})
    inputs = whole.inputs.model_copy(update={"hardware": (*others, capped)})
    texts, _ = karpenter_pools(whole.model_copy(update={"inputs": inputs}), "2027Q2")
    assert all("nvidia-smi -pl 500" in text for text in texts.values())


@pytest.mark.parametrize(
    ("kinds", "types"),
    [
        ({"spot"}, ["spot"]),
        ({"reserve"}, ["reserved"]),
        ({"rent"}, ["reserved", "on-demand"]),
        ({"rent", "spot"}, ["reserved", "on-demand"]),
    ],
)
def test_capacity_types_are_those_of_the_offers(kinds: set[str], types: list[str]) -> None:
    whole = of_catalogue(plan())
    pool = next(each for each in standing_pools(whole, "2027Q2") if not each.owned)
    row = next(row for row in whole.purchases)
    rows = tuple(row.model_copy(update={"pool": pool.name, "kind": kind}) for kind in sorted(kinds))
    texts, _ = karpenter_pools(whole.model_copy(update={"purchases": rows}), "2027Q2")
    spec = next(each["spec"] for each in objects(texts) if each["metadata"]["name"] == pool.label)
    assert spec["template"]["spec"]["requirements"][1]["values"] == types


@pytest.mark.parametrize(
    ("name", "vendor", "in_aws", "in_gcp"),
    [("MI300X", "AMD", False, False), ("TPU-v6e", "Google", False, True), ("B200-SXM", "NVIDIA", True, True)],
)
def test_clouds_start_what_they_have(name: str, vendor: str, in_aws: bool, in_gcp: bool) -> None:
    whole = of_catalogue(plan(), name, vendor)
    for (texts, left_out), has in (
        (karpenter_pools(whole, None), in_aws),
        (gke_pools(whole, None, LOCATIONS), in_gcp),
    ):
        assert bool(texts) == has
        assert [*refusals(texts)] == []
        if not has:
            assert any(f"with 8 {name} is known" in each.reason for each in left_out)


def test_gke_counts_nodes_and_names_the_accelerator() -> None:
    whole = of_catalogue(plan())
    texts, _ = gke_pools(whole, "2027Q2", LOCATIONS)
    assert [*refusals(texts)] == []
    pool = next(each for each in standing_pools(whole, "2027Q2") if not each.owned)
    spec = next(each["spec"] for each in objects(texts) if each["metadata"]["name"] == pool.label)
    count = spec.get("nodeCount", spec.get("autoscaling", {}).get("totalMaxNodeCount"))
    assert (spec["location"], count) == (LOCATIONS[pool.region], pool.nodes)
    assert spec["nodeConfig"]["machineType"] == "a3-highgpu-8g"
    assert spec["nodeConfig"]["guestAccelerator"] == [{"type": "nvidia-h100-80gb", "count": 8}]
    with pytest.raises(InputError, match="not a region or zone of Google Cloud") as refused:
        gke_pools(whole, "2027Q2", {})
    # The option that it names is one word of a shell, whatever signs the region holds.
    _, named = shlex.split(str(refused.value.issues[0].hint).removeprefix("add "))
    assert named == f"{pool.region}=us-east4"


@pytest.mark.parametrize(
    ("chips", "machine", "in_aws", "said"),
    [
        # Google Cloud starts no machine of fewer than eight H100 on demand.
        (1, "a3-highgpu-8g", "p5.4xlarge", "1 H100-SXM on 1 node, which has 7 more"),
        (4, "a3-highgpu-8g", "p5.48xlarge", "4 H100-SXM on 1 node, which has 4 more"),
        (5, "a3-highgpu-8g", "p5.48xlarge", "5 H100-SXM on 1 node, which has 3 more"),
        (12, "a3-highgpu-8g", "p5.48xlarge", "12 H100-SXM on 2 nodes, which have 4 more"),
    ],
)
def test_no_larger_machine_is_started_than_a_pool_needs(
    chips: int, machine: str, in_aws: str, said: str
) -> None:
    whole = of_catalogue(plan())
    rented = next(each for each in standing_pools(whole, "2027Q2") if not each.owned)
    uses = tuple(
        use.model_copy(update={"accelerators": chips}) if use.pool == rented.name else use
        for use in whole.pools
    )
    whole = whole.model_copy(update={"pools": uses})
    texts, _ = gke_pools(whole, "2027Q2", LOCATIONS)
    spec = next(each["spec"] for each in objects(texts) if each["metadata"]["name"] == rented.label)
    assert spec["nodeConfig"]["machineType"] == machine
    assert spec["nodeConfig"]["guestAccelerator"][0]["count"] == int(machine[-2])
    assert any(f"{said}\n" in text or f"{said};" in text for text in texts.values())
    texts, _ = karpenter_pools(whole, "2027Q2")
    spec = next(each["spec"] for each in objects(texts) if each["metadata"]["name"] == rented.label)
    assert spec["template"]["spec"]["requirements"][0]["values"] == [in_aws]
    assert int(spec["limits"]["nvidia.com/gpu"]) >= chips


def test_slices_of_tpus_have_their_topology() -> None:
    zones = dict.fromkeys(LOCATIONS, "us-east5-b")
    whole, pool = on_tpus("TPU-v6e", 8)
    texts, _ = gke_pools(whole, "2027Q2", LOCATIONS)
    assert [*refusals(texts)] == []
    (made,) = [each for each in objects(texts) if each["metadata"]["name"] == dns_name(pool)]
    assert made["spec"]["nodeConfig"]["machineType"] == "ct6e-standard-8t"
    assert not {"placementPolicy", "guestAccelerator"} & {*made["spec"], *made["spec"]["nodeConfig"]}
    labels = {
        "cloud.google.com/gke-tpu-accelerator": "tpu-v6e-slice",
        "cloud.google.com/gke-tpu-topology": "2x4",
    }
    assert labels_of(whole, pool) == {"fleetplan/pool": dns_name(pool)} | labels
    assert any("gke-tpu-topology: 2x4" in text for text in texts.values())

    # Sixteen chips are a slice of four machines, each a node pool; what is left of the pool are single hosts.
    whole, pool = on_tpus("TPU-v6e", 16)
    texts, _ = gke_pools(whole, "2027Q2", zones)
    assert [*refusals(texts)] == []
    own = [each["spec"] for each in objects(texts) if pool in each["spec"]["nodeConfig"]["labels"].values()]
    slices = [spec for spec in own if "placementPolicy" in spec]
    rows = [row for row in whole.placements if (row.period, row.pool) == ("2027Q2", pool)]
    assert len(slices) == max(row.replicas for row in rows)
    for spec in slices:
        assert spec["placementPolicy"] == {"type": "COMPACT", "tpuTopology": "4x4"}
        assert (spec["nodeConfig"]["machineType"], spec["nodeCount"]) == ("ct6e-standard-4t", 4)
    (single,) = [spec for spec in own if "placementPolicy" not in spec]
    assert (single["nodeConfig"]["machineType"], single["nodeCount"]) == ("ct6e-standard-8t", 1)
    # Nodes of two topologies: a pod says itself which one it needs.
    assert "cloud.google.com/gke-tpu-topology" not in labels_of(whole, pool)


@pytest.mark.parametrize(
    ("name", "chips", "location", "why"),
    [
        ("TPU-v6e", 16, "us-east5", "must be in one zone"),
        ("TPU-v6e", 24, "us-east5-b", "needs a slice of 24 TPU-v6e"),
    ],
)
def test_slices_that_gke_does_not_make_are_left_out(name: str, chips: int, location: str, why: str) -> None:
    whole, pool = on_tpus(name, chips)
    texts, left_out = gke_pools(whole, "2027Q2", dict.fromkeys(LOCATIONS, location))
    assert [each.label for each in left_out if why in each.reason] == [pool]
    assert dns_name(pool) not in {each["metadata"]["name"] for each in objects(texts)}


def test_tpus_of_every_kind_have_the_label_by_which_nodes_are_read() -> None:
    for name, part in tools().gke_tpu.parts.items():
        assert known_hardware(part.accelerator) == name
        for chips, topology in part.topologies.items():
            assert chips == math.prod(int(side) for side in topology.split("x"))


def test_hosts_of_another_size_are_machines_of_their_part() -> None:
    whole = of_catalogue(plan(), "L40S-x4")
    assert whole.inputs is not None
    kinds = tuple(
        each.model_copy(update={"accelerators_per_host": 4, "part": "L40S"})
        if each.name == "L40S-x4"
        else each
        for each in whole.inputs.hardware
    )
    whole = whole.model_copy(update={"inputs": whole.inputs.model_copy(update={"hardware": kinds})})
    texts, _ = karpenter_pools(whole, "2027Q2")
    rented = next(each for each in standing_pools(whole, "2027Q2") if not each.owned)
    spec = next(each["spec"] for each in objects(texts) if each["metadata"]["name"] == rented.label)
    assert spec["template"]["spec"]["requirements"][0]["values"] == ["g6e.12xlarge", "g6e.24xlarge"]
