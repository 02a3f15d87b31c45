"""Objects for Kueue and LeaderWorkerSet with unique names, and purchases as a Terraform plan."""

from __future__ import annotations

import json
import shlex
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from tests.interop.objects import refusals
from tests.interop.rules import rules_of
from tests.planner.export.cluster_plans import HOSTILE, LOCATIONS, objects, of_catalogue, renamed
from tests.planner.export.launched_plans import deployment, plan

from fleetplan.fleet.document.plain import read_yaml, yaml_text
from fleetplan.planner.cli import main
from fleetplan.planner.export.launch.cloud_nodes import gke_pools, karpenter_pools
from fleetplan.planner.export.launch.deployments import deployments, dns_name
from fleetplan.planner.export.launch.dynamo import dynamo_graphs
from fleetplan.planner.export.launch.kueue import QUEUE_LABEL, kueue_quotas
from fleetplan.planner.export.launch.leader_worker_sets import leader_worker_sets
from fleetplan.planner.export.launch.pools import standing_pools
from fleetplan.planner.export.launch.supply import node_pools
from fleetplan.planner.export.launch.terraform import purchase_changes


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
    assert "has at most 64 flavors, and the region has 65 pools" in crowded.reason


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
    """Manifests have no YAML anchors, which some tools do not read."""
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
        (["--as", "kueue", "--location", "here=us-east4"], "kueue has no locations"),
        (["--as", "karpenter"], "cannot express any part of the plan"),
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
