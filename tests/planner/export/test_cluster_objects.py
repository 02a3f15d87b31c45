"""Objects for Kueue, Karpenter, Config Connector and LeaderWorkerSet; purchases as Terraform's plan."""

from __future__ import annotations

import json
import math
import shlex
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.interop.documents import read_all_yaml
from tests.interop.objects import refusals
from tests.interop.rules import rules_of
from tests.planner.export.test_launch import deployment, plan
from tests.planner.whole_fleet import EVIL

from fleetplan.fleet.document.plain import read_yaml, yaml_text
from fleetplan.fleet.errors import InputError
from fleetplan.planner.cli import main
from fleetplan.planner.export.launch.cloud_nodes import gke_pools, karpenter_pools
from fleetplan.planner.export.launch.deployments import deployments, dns_name
from fleetplan.planner.export.launch.dynamo import dynamo_graphs
from fleetplan.planner.export.launch.kueue import QUEUE_LABEL, kueue_quotas
from fleetplan.planner.export.launch.leader_worker_sets import leader_worker_sets
from fleetplan.planner.export.launch.pools import standing_pools
from fleetplan.planner.export.launch.supply import node_pools
from fleetplan.planner.export.launch.terraform import purchase_changes
from fleetplan.planner.export.launch.tools import tools
from fleetplan.planner.importing.records import known_hardware
from fleetplan.planner.plan import Plan
from fleetplan.planner.plan.inputs import HardwareInput

LOCATIONS = {"here": "us-east4", "there": "europe-west4-b"}

HOSTILE = ("a\nkind: Pod", "x" * 90, "9-lives", "..", "ünïcode/Ü", "- &a *a", "# no comment", "{}", "€")
"""Names of pools, services and regions that YAML, DNS or a comment would take amiss."""


def of_catalogue(whole: Plan, name: str = "H100-SXM", vendor: str = "NVIDIA") -> Plan:
    """A plan on hosts of eight parts that clouds have."""
    assert whole.inputs is not None
    kind = HardwareInput(name=name, accelerators_per_host=8, vendor=vendor)
    pools = tuple(use.model_copy(update={"hardware": name}) for use in whole.pools)
    inputs = whole.inputs.model_copy(update={"hardware": (*whole.inputs.hardware, kind)})
    return whole.model_copy(update={"pools": pools, "inputs": inputs})


def renamed(whole: Plan, pools: dict[str, str], service: str = "", region: str = "") -> Plan:
    """A plan with other names of its pools, and of one service and region."""

    def row(each: Any) -> Any:
        update = {"pool": pools.get(each.pool, each.pool)}
        if region and hasattr(each, "region") and each.region == "here":
            update["region"] = region
        if service and hasattr(each, "service") and each.service == EVIL:
            update["service"] = service
        return each.model_copy(update=update)

    assert whole.inputs is not None
    lines = tuple(row(line) for line in whole.inputs.cost_lines)
    return whole.model_copy(
        update={
            "pools": tuple(map(row, whole.pools)),
            "placements": tuple(map(row, whole.placements)),
            "purchases": tuple(map(row, whole.purchases)),
            "inputs": whole.inputs.model_copy(update={"cost_lines": lines}),
        }
    )


def objects(texts: dict[str, str]) -> list[dict[str, Any]]:
    return [each for text in texts.values() for each in read_all_yaml(text)]


def test_a_service_has_the_quota_of_its_busiest_moment_and_the_rest_is_lent() -> None:
    texts, left_out = kueue_quotas(plan(), "2027Q2")
    assert left_out == ()
    assert [*refusals(texts)] == []
    quotas: dict[str, int] = defaultdict(int)
    for each in objects(texts):
        if each["kind"] == "ClusterQueue":
            for group in each["spec"]["resourceGroups"]:
                for flavor in group["flavors"]:
                    quotas[flavor["name"]] += flavor["resources"][0]["nominalQuota"]
    standing = {dns_name(use.pool): use.accelerators for use in plan().pools if use.period == "2027Q2"}
    assert dict(quotas) == {name: most for name, most in standing.items() if most}
    used = {
        dns_name(row.service): row.accelerators
        for row in plan().placements
        if (row.period, row.region, row.phase) == ("2027Q2", "there", "aggregated")
    }
    assert used
    for service in used:
        assert f"{QUEUE_LABEL}: " in texts["there.kueue.yaml"], service


def test_quotas_follow_slices_and_say_where_they_are_more_than_a_pool() -> None:
    whole = plan()
    rows = [row for row in whole.placements if row.period == "2027Q1" and row.region == "here"]
    uses = [use for use in whole.pools if use.period == "2027Q1"]
    first = rows[0]
    day, night = (
        first.model_copy(update={"slice": part, "accelerators": n}) for part, n in (("day", 6), ("night", 2))
    )
    other = first.model_copy(update={"service": "other", "slice": "night", "accelerators": 4})
    pools = tuple(
        use.model_copy(
            update={"slice": part, "accelerators": 8 if use.pool == first.pool else use.accelerators}
        )
        for use in uses
        for part in ("day", "night")
    )
    sliced = whole.model_copy(update={"placements": (day, night, other), "pools": pools})
    texts, _ = kueue_quotas(sliced, None)
    queues = {each["metadata"]["name"]: each for each in objects(texts) if each["kind"] == "ClusterQueue"}

    def quota(name: str) -> int:
        (group,) = queues[name]["spec"]["resourceGroups"]
        flavor = next(each for each in group["flavors"] if each["name"] == dns_name(first.pool))
        return int(flavor["resources"][0]["nominalQuota"])

    assert quota(dns_name(f"{first.service}-here")) == 6
    assert quota("other-here") == 4
    assert "2 accelerators more than the pool has" in texts["here.kueue.yaml"]


def test_pools_without_a_known_resource_and_crowded_regions_have_no_quota() -> None:
    whole = plan()
    assert whole.inputs is not None
    anonymous = tuple(each.model_copy(update={"vendor": "anonymised"}) for each in whole.inputs.hardware)
    unknown = whole.model_copy(update={"inputs": whole.inputs.model_copy(update={"hardware": anonymous})})
    texts, left_out = kueue_quotas(unknown, None)
    assert texts == {}
    assert all("no resource of a device plug-in" in each.reason for each in left_out)
    use = whole.pools[0]
    many = tuple(use.model_copy(update={"pool": f"pool-{n}", "accelerators": 4}) for n in range(65))
    _, (crowded,) = kueue_quotas(whole.model_copy(update={"pools": many}), use.period)
    assert "holds 64 flavors, and the region has 65 pools" in crowded.reason


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
    with pytest.raises(InputError, match="no region or zone of Google Cloud"):
        gke_pools(whole, "2027Q2", {})


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


def on_tpus(name: str, chips: int) -> tuple[Plan, str]:
    """A plan on TPUs, and its rented pool, all replicas of which take so many chips."""
    whole = of_catalogue(plan(), name, "Google")
    rented = next(each for each in standing_pools(whole, "2027Q2") if not each.owned)
    rows = tuple(
        row.model_copy(update={"accelerators": chips * row.replicas}) if row.pool == rented.name else row
        for row in whole.placements
    )
    most = max(row.accelerators for row in rows if (row.period, row.pool) == ("2027Q2", rented.name))
    uses = tuple(
        use.model_copy(update={"accelerators": most + 8}) if use.pool == rented.name else use
        for use in whole.pools
    )
    return whole.model_copy(update={"placements": rows, "pools": uses}), rented.name


def labels_of(whole: Plan, pool: str) -> dict[str, str]:
    texts, _ = kueue_quotas(whole, "2027Q2")
    assert [*refusals(texts)] == []
    flavors = {each["metadata"]["name"]: each["spec"] for each in objects(texts)}
    found: dict[str, str] = flavors[dns_name(pool)]["nodeLabels"]
    return found


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
        ("TPU-v6e", 16, "us-east5", "stands in one zone"),
        ("TPU-v6e", 24, "us-east5-b", "takes 24 TPU-v6e together"),
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


def test_a_leader_worker_set_has_a_pod_a_host_with_its_rank() -> None:
    base = deployment("TP16")
    wide = replace(base, hardware=base.hardware.model_copy(update={"accelerators_per_host": 8}))
    texts, refused = leader_worker_sets([wide])
    assert refused == ()
    assert [*refusals(texts)] == []
    (several,) = objects(texts)
    template = several["spec"]["leaderWorkerTemplate"]
    assert template["size"] == 2
    assert several["spec"]["replicas"] == wide.placement.replicas
    leader, worker = (template[f"{role}Template"]["spec"]["containers"][0] for role in ("leader", "worker"))
    assert leader["resources"] == worker["resources"] == {"limits": {"nvidia.com/gpu": "8"}}
    words = {
        name: shlex.split(each["args"][0]) for name, each in (("0", leader), ("$LWS_WORKER_INDEX", worker))
    }
    for rank, said in words.items():
        assert said[said.index("--node-rank") + 1] == rank
        assert said[said.index("--master-addr") + 1] == "$LWS_LEADER_ADDRESS"
    assert "--headless" in words["$LWS_WORKER_INDEX"]
    assert "--headless" not in words["0"]
    texts, _ = leader_worker_sets([deployment("TP2")])
    (one,) = objects(texts)
    assert one["spec"]["leaderWorkerTemplate"]["size"] == 1
    assert "leaderTemplate" not in one["spec"]["leaderWorkerTemplate"]


def test_no_manifest_refers_to_parts_of_itself() -> None:
    """Anchors are YAML that some tools do not read, and that nobody expects in a manifest."""
    texts, _ = leader_worker_sets([deployment("TP8")])
    (text,) = texts.values()
    assert text.count("medium: Memory") == 2
    assert not any(each in text for each in ("&id", "*id"))


def test_servers_of_sglang_listen_to_others_and_those_without_an_image_are_left_out() -> None:
    base = deployment("TP2")
    service = base.service.model_copy(update={"framework": "sglang"})
    texts, _ = leader_worker_sets([replace(base, service=service)])
    (text,) = texts.values()
    container = read_yaml(text)["spec"]["leaderWorkerTemplate"]["workerTemplate"]["spec"]["containers"][0]
    assert container["args"][0].endswith("--host 0.0.0.0 --port 30000")
    assert container["ports"] == [{"containerPort": 30000, "protocol": "TCP"}]
    trtllm = base.service.model_copy(update={"framework": "trtllm"})
    texts, (left_out,) = leader_worker_sets([replace(base, service=trtllm)])
    assert texts == {}
    assert left_out.reason == "no image of trtllm for NVIDIA is known"


@pytest.mark.parametrize("name", HOSTILE)
def test_no_name_breaks_an_object_or_its_comments(name: str) -> None:
    first = standing_pools(of_catalogue(plan()), "2027Q2")
    pools = {pool.name: f"{name}{position}" for position, pool in enumerate(first)}
    whole = renamed(of_catalogue(plan()), pools, service=f"{name}s", region=f"{name}r")
    for texts, _ in (
        kueue_quotas(whole, "2027Q2"),
        karpenter_pools(whole, "2027Q2"),
        gke_pools(whole, "2027Q2", {f"{name}r": "us-east4"} | LOCATIONS),
    ):
        assert texts
        assert [*refusals(texts)] == []
        for text in texts.values():
            head = text.split("---\n")[0]
            assert all(line.startswith("# ") for line in head.splitlines())
    labels = {row["node_label"].split("=")[1] for _, row in node_pools(whole).iterrows()}
    assert {dns_name(pool) for pool in pools.values()} <= labels
    found, _ = deployments(renamed(plan(), pools), "2027Q2")
    texts, _ = leader_worker_sets(found)
    assert len(texts) == len(found)
    assert [*refusals(texts)] == []


def test_names_that_read_alike_are_told_apart() -> None:
    """`chat` in `us-east`, `chat-us` in `east`: the second of two would replace the first."""
    one = deployment()
    rows = [
        one.placement.model_copy(update={"service": service, "region": region, "pool": pool})
        for service, region, pool in (("chat", "us-east", "us-east-a"), ("chat-us", "east", "east-a"))
    ]
    graphs, _ = dynamo_graphs([replace(one, placement=row) for row in rows])
    assert len(graphs) == 2
    assert len({graph["metadata"]["name"] for graph in objects(graphs)}) == 2
    whole = plan()
    inputs = whole.inputs
    assert inputs is not None
    changed = {"pool": "us-a"}, {"pool": "a"}
    rows = [row.model_copy(update=update) for row, update in zip(rows, changed, strict=True)]
    service = next(each for each in inputs.services if each.name == one.placement.service)
    known = [service.model_copy(update={"name": row.service}) for row in rows]
    facts = [one.facts.model_copy(update={"service": row.service}) for row in rows]
    more = {"services": (*inputs.services, *known), "launches": (*inputs.launches, *facts)}
    found, _ = deployments(
        whole.model_copy(update={"placements": tuple(rows), "inputs": inputs.model_copy(update=more)}), None
    )
    assert len({each.name for each in found}) == 2
    # A service of the name of the queue that holds what no service has.
    queues = [
        each["metadata"]["name"]
        for each in objects(kueue_quotas(renamed(plan(), {}, service="spare"), "2027Q2")[0])
        if each["kind"] == "ClusterQueue"
    ]
    assert len(set(queues)) == len(queues)
    order = whole.purchases[0]
    orders = tuple(
        order.model_copy(update={"offer": offer, "region": region, "pool": f"{region}/{offer}"})
        for offer, region in (("rent", "us-east"), ("rent-us", "east"))
    )
    changes = json.loads(purchase_changes(whole.model_copy(update={"purchases": orders})))["resource_changes"]
    assert len({each["address"] for each in changes}) == len(changes)


def test_purchases_are_a_plan_as_terraform_writes_it() -> None:
    document = json.loads(purchase_changes(plan()))
    assert document["format_version"] == "1.2"
    changes = document["resource_changes"]
    assert len({each["address"] for each in changes}) == len(changes)
    for each in changes:
        assert each["address"] == f"{each['type']}.{each['name']}"
        assert each["name"] == dns_name(each["name"])
        before, after = each["change"]["before"], each["change"]["after"]
        assert each["change"]["actions"] == (["create"] if before is None else ["delete"])
        assert (before is None) != (after is None)
    planned = document["planned_values"]["root_module"]["resources"]
    created = [each for each in changes if each["change"]["actions"] == ["create"]]
    assert [each["values"] for each in planned] == [each["change"]["after"] for each in created]
    assert [each["values"]["offer"] for each in planned] == [row.offer for row in plan().purchases]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--as", "gke", "--location", "here"], "is not REGION=LOCATION"),
        (["--as", "gke", "--location", "her=us-east4"], "did you mean 'here'"),
        (["--as", "kueue", "--location", "here=us-east4"], "kueue names no locations"),
        (["--as", "karpenter"], "can hold nothing of the plan"),
    ],
)
def test_mistakes_are_named(
    tmp_path: Path, options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "plan.json"
    file.write_text(plan().model_dump_json(), encoding="utf-8")
    with pytest.raises(SystemExit) as ended:
        main(["export", str(file), *options, "--out", str(tmp_path / "out")])
    assert ended.value.code == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


DEFINITION = """
spec:
  group: kueue.x-k8s.io
  names: {kind: ClusterQueue}
  versions:
    - name: v1beta2
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec:
              type: object
              x-kubernetes-validations: [{rule: "self == oldSelf"}]
              properties:
                strategy: {type: string, default: BestEffortFIFO}
                groups:
                  type: array
                  items:
                    type: object
                    x-kubernetes-validations: [{rule: "size(self.names) > 0", message: names are missing}]
                labels:
                  type: object
                  additionalProperties:
                    type: string
                    x-kubernetes-validations: [{rule: "self != ''"}]
              required: [strategy]
              x-kubernetes-preserve-unknown-fields: true
"""


def test_rules_of_definitions_are_asked_of_each_value_with_defaults_filled_in(tmp_path: Path) -> None:
    # `make interop CRDS=DIR` evaluates them; what compares with the object before is asked of changes alone.
    whole = read_yaml(DEFINITION)
    spec = whole["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    spec["x-kubernetes-validations"].append({"rule": "self.strategy != ''"})
    (tmp_path / "crd.yaml").write_text(yaml_text(whole), encoding="utf-8")
    queue = {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "ClusterQueue",
        "metadata": {"name": "a"},
        "spec": {"groups": [{"names": ["x"]}, {"names": []}], "labels": {"team": "search"}},
    }
    other = {"apiVersion": "v1", "kind": "Other", "metadata": {"name": "b"}, "spec": {}}
    asked = dict(rules_of({"a.yaml": yaml.safe_dump_all([queue, other])}, tmp_path))
    place = "a.yaml ClusterQueue/a .spec"
    assert {where: case["self"] for where, case in asked.items() if where != place} == {
        f"{place}.groups[0]": {"names": ["x"]},
        f"{place}.groups[1]": {"names": []},
        f"{place}.labels.team": "search",
    }
    assert asked[place]["self"]["strategy"] == "BestEffortFIFO"
    assert asked[f"{place}.groups[1]"]["message"] == "names are missing"


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
