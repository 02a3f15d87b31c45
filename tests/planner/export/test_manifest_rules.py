"""Every manifest of every scenario against the rules of its reader, without network or cluster."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from tests.interop import judge
from tests.interop.__main__ import HERE, OBJECTS, exported
from tests.interop.documents import read_all_yaml
from tests.interop.objects import chart_refusals, refusals
from tests.interop.reading import cases_of
from tests.planner.export.cluster_plans import of_catalogue
from tests.planner.export.launched_plans import deployment, plan
from tests.planner.export.started_replicas import on_hosts_of, values_of, with_phase, with_service

from fleetplan.fleet.document.plain import read_yaml, yaml_text
from fleetplan.planner.api import plan_fleet
from fleetplan.planner.export.launch.cloud_nodes import gke_pools
from fleetplan.planner.export.launch.dynamo import dynamo_graphs
from fleetplan.planner.export.launch.files import ExportOptions, export_launch
from fleetplan.planner.export.launch.leader_worker_sets import leader_worker_sets
from fleetplan.planner.export.launch.llm_d import llm_d_values
from fleetplan.planner.export.launch.pools import standing_pools
from fleetplan.planner.export.launch.tools import tools
from fleetplan.planner.plan import Plan
from fleetplan.planner.search.result import SearchLimits
from fleetplan.scenarios.load import load_fleet

SCENARIOS = Path(__file__).parents[3] / "scenarios"
FLEETS = sorted(
    [*SCENARIOS.glob("*.yaml"), *SCENARIOS.glob("*/fleet.yaml"), *HERE.glob("fleets/*.yaml")], key=str
)
LONG = {"head-and-tail", "quarterly-year", "region-loss", "uncertain"}
"""Scenarios that take longer than the others together."""

MORE = {"drafts", "percentiles", "power-capped", "quarterly", "tidal"}
"""Scenarios whose objects are of the kinds of the others: hosts and pods, phases together and apart."""


def name_of(file: Path) -> str:
    return file.parent.name if file.name == "fleet.yaml" else file.stem


@cache
def any_plan_of(file: Path) -> Plan:
    """Return a plan of a fleet file at any cost, for tests of manifests."""
    planned = plan_fleet(load_fleet(file), SearchLimits(240.0, 1.0, seed=1, workers=2))
    assert isinstance(planned.outcome, Plan)
    return planned.outcome


@pytest.mark.parametrize(
    "file",
    [
        pytest.param(
            file,
            id=name_of(file),
            marks=pytest.mark.slow
            if name_of(file) in LONG
            else pytest.mark.more
            if name_of(file) in MORE
            else (),
        )
        for file in FLEETS
    ],
)
def test_manifests_of_a_scenario_are_taken_and_start_what_was_planned(file: Path, tmp_path: Path) -> None:
    plans = tmp_path / "plans" / name_of(file)
    plans.mkdir(parents=True)
    (plans / "plan.json").write_text(any_plan_of(file).model_dump_json(), encoding="utf-8")
    own = exported(plans.parent, tmp_path / "exports") / name_of(file)
    for form in OBJECTS:
        texts = {each.name: each.read_text("utf-8") for each in sorted((own / form).glob("*.yaml"))}
        assert [*refusals(texts)] == [], form
    values = {each.name: each.read_text("utf-8") for each in sorted((own / "llm-d").glob("*.yaml"))}
    assert [*chart_refusals(values)] == []
    assert [
        found for _, all_found in cases_of(any_plan_of(file), name_of(file), own) for found in all_found
    ] == []


def test_a_graph_of_dynamo_holds_no_more_components_than_the_api() -> None:
    each = deployment()
    many = [
        replace(each, placement=each.placement.model_copy(update={"pool": f"pool-{number}"}))
        for number in range(tools().dynamo.components)
    ]
    texts, refused = dynamo_graphs(many)
    assert not texts
    assert len(refused) == len(many)
    assert refused[0].reason == "a Dynamo graph has room for 24 sets of replicas plus its frontend, not 25"
    texts, refused = dynamo_graphs(many[:-1])
    assert not refused
    assert [*refusals(texts)] == []


def test_components_of_pools_and_variants_that_read_alike_have_names_of_their_own() -> None:
    """Variant `b` in pool `here-a` and `a-b` in pool `here` have components of different names."""
    each = deployment()
    rows = (("here-a", f"b/{each.placement.config}"), ("here", f"a-b/{each.placement.config}"))
    alike = [
        replace(each, placement=each.placement.model_copy(update={"pool": pool, "config": config}))
        for pool, config in rows
    ]
    texts, _ = dynamo_graphs(alike)
    assert [*refusals(texts)] == []


def test_the_rules_of_dynamo_refuse_what_its_operator_refuses() -> None:
    (text,) = dynamo_graphs([on_hosts_of(deployment("TP16"), 8)])[0].values()
    graph = read_yaml(text)

    def why(name: str, value: object, component: int = 1) -> str:
        changed = read_yaml(text)
        changed["spec"]["components"][component][name] = value
        return "; ".join(found for _, found in refusals({"graph": yaml_text(changed)}))

    assert [*refusals({"graph": text})] == []
    assert "is not one of" in why("type", "router")
    assert "should not be valid" in why("multinode", {"nodeCount": 2}, component=0)
    assert "less than the minimum of 2" in why("multinode", {"nodeCount": 1})
    assert "45 admitted" in why("name", "a" * 17)
    assert "two components of one name" in why("name", "Frontend")
    template = graph["spec"]["components"][1]["podTemplate"]
    template["spec"]["containers"][0]["image"] = "nvcr.io/nvidia/ai-dynamo/vllm-runtime:latest"
    assert "does not contain" in why("podTemplate", template)


def test_a_server_that_hands_over_caches_knows_the_address_of_its_pod() -> None:
    for phase, known in (("prefill", True), ("decode", True), ("aggregated", False)):
        each = with_service(with_phase(deployment(), phase), framework="vllm")
        values = values_of(each)
        of_chart = values["prefill" if phase == "prefill" else "decode"]["containers"][0]
        (text,) = leader_worker_sets([each])[0].values()
        template = read_yaml(text)["spec"]["leaderWorkerTemplate"]["workerTemplate"]
        for container in (of_chart, template["spec"]["containers"][0]):
            assert bool(container.get("env")) is known
            assert [*judge.address_differences(container)] == []
            alone = {key: value for key, value in container.items() if key != "env"}
            assert bool([*judge.address_differences(alone)]) is known
    script = export_launch(plan(), ExportOptions(framework="vllm")).files["launch.sh"].decode()
    assert "# VLLM_NIXL_SIDE_CHANNEL_HOST must be the address" in script


def test_ranks_of_a_pod_of_llm_d_share_memory() -> None:
    part = values_of(deployment())["decode"]
    (mount,) = part["containers"][0]["volumeMounts"]
    assert mount["mountPath"] == "/dev/shm"
    assert part["volumes"] == [{"name": mount["name"], "emptyDir": {"medium": "Memory"}}]


def test_no_release_of_llm_d_selects_the_pods_of_another() -> None:
    each = deployment()
    other = replace(each, placement=each.placement.model_copy(update={"pool": "another"}))
    texts, _ = llm_d_values([each, other])
    assert len(texts) == 2
    assert [*chart_refusals(texts)] == []
    labels = [read_yaml(text)["modelArtifacts"]["labels"] for text in texts.values()]
    assert labels[0]["llm-d.ai/model"] == labels[1]["llm-d.ai/model"]
    first = next(iter(texts.values()))
    assert [why for _, why in chart_refusals({"a": first, "b": first})] == ["selects the pods of a too"]


def test_the_sidecar_is_one_that_knows_the_options_of_the_chart() -> None:
    proxy = values_of(with_phase(deployment(), "decode"))["routing"]["proxy"]
    assert proxy == {"enabled": True, "image": "ghcr.io/llm-d/llm-d-routing-sidecar:v0.8.0"}
    (text,) = llm_d_values([deployment()])[0].values()
    assert "# the image has vLLM 0.26.0\n" in text


def test_nodes_of_a_region_are_those_of_all_its_zones() -> None:
    whole = of_catalogue(plan())
    nodes = {each.label: each.nodes for each in standing_pools(whole, "2027Q2") if not each.owned}
    for location in ("us-east4", "us-east4-b"):
        texts, _ = gke_pools(whole, "2027Q2", {"here": location, "there": location})
        assert [*refusals(texts)] == []
        found = [each for text in texts.values() for each in read_all_yaml(text)]
        assert found
        for each in found:
            spec = each["spec"]
            held = nodes[each["metadata"]["name"]]
            if location == "us-east4":
                assert "nodeCount" not in spec
                assert (
                    spec["autoscaling"]["totalMinNodeCount"]
                    == spec["autoscaling"]["totalMaxNodeCount"]
                    == held
                )
            else:
                assert "autoscaling" not in spec
                assert spec["nodeCount"] == held
