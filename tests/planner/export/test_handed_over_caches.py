"""Cache transfer between prefill and decode servers, including several pipeline stages."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from tests.planner.export.launched_plans import deployment, facts, options_of, plan
from tests.planner.export.started_replicas import on_hosts_of, reason, started, values_of, with_phase
from tests.planner.whole_fleet import EVIL

from fleetplan.fleet.document.plain import read_yaml
from fleetplan.perfmodel.parallelism import parse_parallelism
from fleetplan.planner.export.launch.deployments import LaunchedGroup, deployments
from fleetplan.planner.export.launch.dynamo import dynamo_graphs
from fleetplan.planner.export.launch.files import ExportOptions, export_launch
from fleetplan.planner.export.launch.llm_d import llm_d_values


def transfer_of(each: LaunchedGroup) -> dict[str, str]:
    found: dict[str, str] = json.loads(options_of(started(each))["--kv-transfer-config"])
    return found


def test_servers_of_vllm_have_the_role_of_their_phase() -> None:
    """`kv_both` is deprecated in 0.33, and refused for ranks that share prompts."""
    for phase, role in (("prefill", "kv_producer"), ("decode", "kv_consumer")):
        found = transfer_of(with_phase(deployment(), phase))
        assert found == {"kv_connector": "NixlConnector", "kv_role": role}


def in_stages(prefill: str = "TP2", decode: str = "TP2", vendor: str = "NVIDIA") -> list[LaunchedGroup]:
    """A prefill and a decode deployment of one service."""
    both = [
        (with_phase(on_hosts_of(deployment(label), 8, vendor), phase))
        for label, phase in ((prefill, "prefill"), (decode, "decode"))
    ]
    stages = [frozenset({each.layout.pp}) for each in both]
    return [replace(each, prompt_stages=stages[0], answer_stages=stages[1]) for each in both]


@pytest.mark.parametrize(("prefill", "decode"), [("PP2-TP2", "TP2"), ("TP2", "PP2-TP2"), ("PP4", "PP2")])
def test_servers_of_vllm_in_stages_hand_caches_over_by_mooncake(prefill: str, decode: str) -> None:
    """NixlConnector reads the first stage alone, and its decode servers may have no more."""
    found = in_stages(prefill, decode)
    for each, role in zip(found, ("kv_producer", "kv_consumer"), strict=True):
        assert transfer_of(each) == {"kv_connector": "MooncakeConnector", "kv_role": role}
        assert any("mooncake-transfer-engine" in note for note in started(each).notes)
    # Servers that compute prompts and answers hand over nothing.
    both = replace(with_phase(found[0], "aggregated"), prompt_stages=frozenset({1, 2}))
    assert "--kv-transfer-config" not in started(both).words
    # Mooncake has no ranks that share contexts.
    latent = replace(found[1], layout=parse_parallelism("CP2-TP2"))
    latent = replace(latent, facts=latent.facts.model_copy(update={"latent_attention": True}))
    assert "no ranks share contexts" in reason(latent)


def test_parts_without_mooncake_write_caches_into_decode_servers_of_one_stage() -> None:
    prefill, decode = in_stages("PP2-TP2", "TP2", "AMD")
    for each in (prefill, decode):
        assert transfer_of(each)["kv_connector"] == "NixlPushConnector"
        assert any("NixlPushConnector" in note for note in started(each).notes)
    assert "on parts of this vendor" in reason(in_stages("TP2", "PP2-TP2", "AMD")[1])
    texts, refused = llm_d_values([prefill])
    assert not texts
    assert "does not support" in refused[0].reason


def test_dynamo_gives_decode_workers_the_address_of_prefill_pods() -> None:
    """It tells them that of the first rank, which is the host's own unless vLLM is told another."""
    texts, refused = dynamo_graphs(in_stages("PP2-TP2", "PP2-TP2"))
    assert not refused
    (text,) = texts.values()
    workers = {
        each["type"]: each["podTemplate"]["spec"]["containers"][0]
        for each in read_yaml(text)["spec"]["components"]
    }
    args = workers["prefill"]["args"]
    assert args[args.index("--data-parallel-address") + 1] == "$(POD_IP)"
    assert workers["prefill"]["env"][0]["valueFrom"] == {"fieldRef": {"fieldPath": "status.podIP"}}
    assert "--data-parallel-address" not in workers["decode"]["args"]
    # Readers of caches have the address of the prefill pod from its answer.
    assert "POD_IP" not in next(iter(dynamo_graphs(in_stages())[0].values()))


def test_the_sidecar_of_llm_d_is_told_of_mooncake() -> None:
    prefill, decode = in_stages("PP2-TP2", "TP2")
    assert values_of(decode)["routing"]["proxy"]["connector"] == "mooncake"
    assert "connector" not in values_of(prefill)["routing"]["proxy"]
    assert "connector" not in values_of(in_stages()[1])["routing"]["proxy"]
    # The image's vLLM hands caches over to as many stages or to one.
    assert values_of(in_stages("PP2-TP2", "PP2-TP2")[1])
    for each in in_stages("PP4", "PP2"):
        assert "the same number of pipeline stages" in llm_d_values([each])[1][0].reason


def test_stages_of_prefill_are_known_to_all_servers_of_the_service() -> None:
    whole = plan()
    rows = tuple(
        row.model_copy(update={"config": "small/PP2-TP2 b16" if row.phase == "prefill" else "small/TP2 b16"})
        if row.service != EVIL
        else row
        for row in whole.placements
    )
    assert whole.inputs is not None
    launches = {(row.service, row.phase, row.hardware, row.config) for row in rows}
    inputs = whole.inputs.model_copy(update={"launches": tuple(facts(*key) for key in launches)})
    found, _ = deployments(whole.model_copy(update={"placements": rows, "inputs": inputs}), None)
    phases = {each.placement.phase for each in found if each.service.name != EVIL}
    stages = {each.prompt_stages for each in found if each.service.name != EVIL}
    assert stages == {frozenset({2} if "prefill" in phases else ())}
    assert {each.prompt_stages for each in found if each.service.name == EVIL} == {frozenset({1})}


def test_stages_of_sglang_take_caches_of_as_many_stages() -> None:
    decode = with_phase(deployment("PP2-TP2"), "decode")
    assert started(replace(decode, prompt_stages=frozenset({2})), "sglang")
    for stages in ({1}, {2, 4}):
        found = reason(replace(decode, prompt_stages=frozenset(stages)), "sglang")
        assert "as many pipeline stages" in found
        assert found.startswith("sglang 0.5.23 cannot run PP2-TP2 for decode")
    one = with_phase(deployment(), "decode")
    assert started(replace(one, prompt_stages=frozenset({1, 4})), "sglang")


def test_scripts_say_that_servers_of_two_phases_need_a_router() -> None:
    script = export_launch(plan(), ExportOptions(framework="sglang")).files["launch.sh"].decode()
    blocks = script.split("\n\n")[1:]
    assert blocks
    for block in blocks:
        assert ("need a router" in block) == ("--disaggregation-mode" in block)
