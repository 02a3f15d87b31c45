"""Servers of two phases hand their caches over as planned, also from several pipeline stages."""

from __future__ import annotations

import json
from dataclasses import replace

from tests.planner.export.launched_plans import deployment, facts, options_of, plan
from tests.planner.export.started_replicas import reason, started, with_phase
from tests.planner.whole_fleet import EVIL

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


def test_prefill_of_vllm_in_stages_writes_its_caches() -> None:
    """The connector that reads takes the first stage alone, and no decode server may have stages."""
    prefill = replace(with_phase(deployment("PP2-TP2"), "prefill"), prompt_stages=frozenset({1, 2}))
    decode = replace(with_phase(deployment(), "decode"), prompt_stages=frozenset({1, 2}))
    for each in (prefill, decode):
        assert transfer_of(each)["kv_connector"] == "NixlPushConnector"
        assert any("NixlPushConnector" in note for note in started(each).notes)
        for export in (dynamo_graphs, llm_d_values):
            texts, refused = export([each])
            assert not texts
            assert "several pipeline stages" in refused[0].reason
    assert "one pipeline stage alone" in reason(with_phase(deployment("PP2-TP2"), "decode"))
    # Servers that compute prompts and answers hand over nothing.
    both = replace(with_phase(deployment("PP2-TP2"), "aggregated"), prompt_stages=frozenset({1, 2}))
    assert "--kv-transfer-config" not in started(both).words
    assert dynamo_graphs([both])[0]


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
    one = with_phase(deployment(), "decode")
    assert started(replace(one, prompt_stages=frozenset({1, 4})), "sglang")


def test_scripts_say_that_servers_of_two_phases_need_a_router() -> None:
    script = export_launch(plan(), ExportOptions(framework="sglang")).files["launch.sh"].decode()
    blocks = script.split("\n\n")[1:]
    assert blocks
    for block in blocks:
        assert ("meet behind a router" in block) == ("--disaggregation-mode" in block)
