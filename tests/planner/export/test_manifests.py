"""Cluster manifests: Dynamo graphs, llm-d values, node pools, and changes to them."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from tests.planner.export.launched_plans import plan
from tests.planner.whole_fleet import EVIL

from fleetplan.fleet.document.plain import read_yaml
from fleetplan.perfmodel.parallelism import Parallelism
from fleetplan.planner.export.launch.deployments import deployments
from fleetplan.planner.export.launch.dynamo import dynamo_graphs
from fleetplan.planner.export.launch.files import FORMATS, ExportOptions
from fleetplan.planner.export.launch.llm_d import llm_d_values
from fleetplan.planner.export.launch.supply import node_pools
from fleetplan.planner.export.launch.terraform import purchase_changes
from fleetplan.planner.plan.inputs import HardwareInput


def test_a_dynamo_graph_holds_the_phases_of_a_service_in_a_region() -> None:
    found, _ = deployments(plan(), None)
    wide = [
        replace(each, layout=Parallelism(tp=8, ffn_tp=8)) if each.placement.phase == "decode" else each
        for each in found
    ]
    texts, refused = dynamo_graphs(wide)
    assert refused == ()
    graphs = {name: read_yaml(text) for name, text in texts.items()}
    graph = next(each for each in graphs.values() if len(each["spec"]["components"]) == 3)
    assert (graph["apiVersion"], graph["kind"]) == ("nvidia.com/v1beta1", "DynamoGraphDeployment")
    parts = {each["type"]: each for each in graph["spec"]["components"]}
    assert set(parts) == {"frontend", "prefill", "decode"}
    decode = parts["decode"]
    rows = {each.placement.phase: each.placement for each in wide if each.service.name == EVIL}
    assert decode["replicas"] == rows["decode"].replicas
    # Eight ranks are two hosts of four.
    assert decode["multinode"] == {"nodeCount": 2}
    assert len(graph["metadata"]["name"]) + 2 * len(decode["name"]) + len("-ldr") <= 45
    container = decode["podTemplate"]["spec"]["containers"][0]
    assert container["resources"] == {"limits": {"nvidia.com/gpu": "4"}}
    assert container["args"][:2] == ["--model", "meta-llama/Llama-3.1-70B"]
    assert container["args"][-2:] == ["--disaggregation-mode", "decode"]
    assert "multinode" not in parts["prefill"]


def test_dynamo_takes_the_engine_arguments_of_tensorrt_llm_and_refuses_other_vendors() -> None:
    found, _ = deployments(plan(), None)
    first = replace(
        found[0],
        service=found[0].service.model_copy(update={"framework": "trtllm"}),
        variant=found[0].variant.model_copy(update={"checkpoint": "nvidia/Llama-3.1-70B-FP8"}),
    )
    amd = replace(found[1], hardware=HardwareInput(name="MI300X", accelerators_per_host=8, vendor="AMD"))
    texts, refused = dynamo_graphs([first, amd])
    assert [each.reason for each in refused] == ["Dynamo runs on NVIDIA parts"]
    (text,) = texts.values()
    # The operator starts the ranks, and its frontend finds both phases.
    assert first.placement.phase != "aggregated"
    assert "trtllm-serve disaggregated" not in text
    graph = read_yaml(text)
    arguments = graph["spec"]["components"][1]["podTemplate"]["spec"]["containers"][0]["args"]
    engine = json.loads(arguments[arguments.index("--override-engine-args") + 1])
    assert engine["tensor_parallel_size"] == first.layout.tp
    assert engine["kv_cache_config"]["dtype"] == "fp8"


def test_llm_d_values_have_one_role_each() -> None:
    found, _ = deployments(plan(), None)
    texts, refused = llm_d_values(found)
    assert refused == ()
    assert len(texts) == len(found)
    for each in found:
        values = read_yaml(texts[f"{each.name}.llm-d.yaml"])
        role = "prefill" if each.placement.phase == "prefill" else "decode"
        other = "decode" if role == "prefill" else "prefill"
        assert (values[role]["create"], values[other]["create"]) == (True, False)
        assert values[role]["replicas"] == each.placement.replicas
        container = values[role]["containers"][0]
        assert container["command"] == ["vllm", "serve"]
        assert container["args"][0] == each.variant.model


def test_node_pools_are_whole_hosts() -> None:
    table = node_pools(plan())
    row = table[(table["pool"] == "old") & (table["period"] == "2027Q2")].iloc[0]
    assert (row["nodes"], row["accelerators"], row["nodes_needed"]) == (3, 12, 3)
    assert row["resource"] == "nvidia.com/gpu"
    rented = table[(table["pool"] == "here/more") & (table["period"] == "2027Q2")].iloc[0]
    assert (rented["accelerators"], rented["nodes"]) == (6, 2)


def test_a_plan_without_pools_has_an_empty_table_of_nodes() -> None:
    nothing = plan().model_copy(update={"pools": (), "placements": ()})
    exported = FORMATS["node-pools"].write(nothing, ExportOptions("2027Q1"))
    assert exported.files["node-pools.csv"].decode().startswith("period,slice,scenario,region,pool,")
    assert list(node_pools(nothing).columns) == list(node_pools(plan()).columns)


def test_purchases_are_changes_with_what_comes_and_goes() -> None:
    document = json.loads(purchase_changes(plan()))
    changes = {change["address"]: change["change"] for change in document["resource_changes"]}
    assert len(changes) == len(plan().purchases) + len(plan().retirements)
    created = [each for each in changes.values() if each["actions"] == ["create"]]
    assert sum(each["after"]["usd"] for each in created) == pytest.approx(
        sum(row.usd for row in plan().purchases)
    )
    old, aged = [each for each in changes.values() if each["actions"] == ["delete"]]
    assert (old["before"]["hosts"], old["after"]) == (2, None)
    assert (aged["before"]["hosts"], aged["before"]["period"]) == (1, "2027Q2")
