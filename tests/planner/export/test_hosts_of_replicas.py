"""Replicas on several hosts: ranks and addresses in scripts, Dynamo and llm-d."""

from __future__ import annotations

import shlex
from dataclasses import replace

import pytest
from tests.planner.export.launched_plans import deployment, options_of, plan
from tests.planner.export.started_replicas import (
    on_hosts_of,
    reason,
    started,
    values_of,
    with_phase,
    with_service,
    with_variant,
)

from fleetplan.fleet.document.plain import read_yaml
from fleetplan.planner.export.launch.commands import FRAMEWORKS
from fleetplan.planner.export.launch.deployments import LaunchedGroup, deployments
from fleetplan.planner.export.launch.dynamo import dynamo_graphs
from fleetplan.planner.export.launch.files import ExportOptions, export_launch
from fleetplan.planner.export.launch.llm_d import llm_d_values
from fleetplan.planner.export.launch.replica import FOLLOWER, LEADER
from fleetplan.planner.plan.inputs import HardwareInput


def test_every_host_of_a_replica_has_its_rank_and_the_address_of_the_first() -> None:
    each = on_hosts_of(deployment("TP16"), 8)
    vllm, sglang = started(each), started(each, "sglang")
    assert vllm.on_host is not None
    assert sglang.on_host is not None
    leader, follower = vllm.on_host(LEADER), vllm.on_host(FOLLOWER)
    assert follower[-1] == "--headless"
    assert "--headless" not in leader
    assert leader[leader.index("--node-rank") + 1] == "0"
    lines = [line for line in vllm.text.splitlines() if not line.startswith("#")]
    assert len(lines) == 2
    assert all("--nnodes 2" in line and '--master-addr "$LEADER_ADDRESS"' in line for line in lines)
    assert '--node-rank "$NODE_RANK"' in lines[1]
    assert '--dist-init-addr "$LEADER_ADDRESS:29500"' in sglang.text
    trtllm = started(with_variant(each, checkpoint="a/b-FP8"), "trtllm")
    assert trtllm.words[:6] == ("srun", "--mpi=pmix", "--nodes", "2", "--ntasks", "16")
    assert trtllm.words[-2:] == ("--gpus_per_node", "8")
    assert trtllm.by_hand[-1] == "starts all ranks on 2 hosts, in an allocation of Slurm"


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_servers_of_a_script_answer_other_hosts(framework: str) -> None:
    # SGLang and TensorRT-LLM listen on localhost unless told, vLLM on all addresses.
    one = with_variant(deployment(), checkpoint="a/b-FP8")
    for each in (one, with_variant(on_hosts_of(deployment("TP16"), 8), checkpoint="a/b-FP8")):
        lines = [line for line in started(each, framework).text.splitlines() if not line.startswith("#")]
        assert lines
        assert all(("--host 0.0.0.0" in line) is (framework != "vllm") for line in lines)


def test_hosts_that_are_not_filled_evenly_are_refused() -> None:
    assert "evenly" in reason(on_hosts_of(deployment("TP10"), 4))


@pytest.mark.parametrize("hosts", [1, 2])
def test_names_of_components_fit_the_webhook(hosts: int) -> None:
    long = deployments(plan(), None)[0]
    each = [
        on_hosts_of(replace(part, layout=deployment("TP8").layout), 8 // hosts)
        for part in long
        if part.service.name == long[0].service.name
    ]
    texts, refused = dynamo_graphs(each)
    assert not refused
    for text in texts.values():
        graph = read_yaml(text)
        names = [component["name"] for component in graph["spec"]["components"]]
        assert len(set(names)) == len(names)
        for name, component in zip(names, graph["spec"]["components"], strict=True):
            roles = len(name) + len("-ldr") if "multinode" in component else 0
            assert len(graph["metadata"]["name"]) + len(name) + roles <= 45


@pytest.mark.parametrize(
    ("layout", "per_host", "pod", "workers"),
    [
        ("DP8-EP8", 8, 8, 1),
        ("TP8", 8, 8, 1),
        ("DP16-EP16", 8, 8, 2),
        ("TP16", 8, 8, 2),
        ("PP2-TP4", 8, 8, 1),
        ("PP2-TP8", 4, 4, 4),
    ],
)
def test_a_pod_of_llm_d_has_the_accelerators_of_a_host(
    layout: str, per_host: int, pod: int, workers: int
) -> None:
    values = values_of(with_phase(on_hosts_of(deployment(layout), per_host), "aggregated"))
    degrees = values["decode"]["parallelism"]
    assert degrees["tensor"] * degrees["dataLocal"] == pod
    assert degrees["workers"] == workers
    assert values["multinode"] is (workers > 1)


def test_hosts_of_llm_d_have_ranks_and_addresses() -> None:
    container = values_of(on_hosts_of(deployment("TP16"), 8))["decode"]["containers"][0]
    assert container["command"] == ["/bin/sh", "-c"]
    (script,) = container["args"]
    first, second = script.split("; else exec ")
    assert first.startswith('if [ "$LWS_WORKER_INDEX" = 0 ]; then exec vllm serve ')
    for text in (first, second.removesuffix("; fi")):
        words = shlex.split(text)
        assert words[words.index("--master-addr") + 1] == "$LWS_LEADER_ADDRESS"
        assert words[words.index("--port") + 1] == "8200"
    assert "--headless" in second


@pytest.mark.parametrize(("phase", "port"), [("decode", 8200), ("prefill", 8000), ("aggregated", 8000)])
def test_decode_listens_behind_the_sidecar(phase: str, port: int) -> None:
    values = values_of(with_phase(deployment(), phase))
    assert values["routing"]["proxy"]["enabled"] is (phase == "decode")
    container = values["prefill" if phase == "prefill" else "decode"]["containers"][0]
    assert container["args"][-2:] == ["--port", str(port)]
    assert container["ports"] == [{"containerPort": port, "protocol": "TCP"}]


@pytest.mark.parametrize(("vendor", "family"), [("NVIDIA", "cuda"), ("AMD", "rocm"), ("Intel", "hpu")])
def test_images_are_those_of_the_vendor(vendor: str, family: str) -> None:
    values = values_of(on_hosts_of(deployment(), 4, vendor))
    assert f"llm-d-{family}:" in values["decode"]["containers"][0]["image"]


def test_llm_d_refuses_what_it_would_turn_into_something_else() -> None:
    def refused(each: LaunchedGroup) -> str:
        texts, found = llm_d_values([each])
        assert not texts
        return found[0].reason

    assert "planned with sglang" in refused(with_service(deployment(), framework="sglang"))
    assert "no image for Google" in refused(on_hosts_of(deployment(), 4, "Google"))
    assert "not the folder" in refused(with_variant(deployment(), checkpoint="../weights"))


@pytest.mark.parametrize(
    ("framework", "port"),
    [("vllm", "VLLM_NIXL_SIDE_CHANNEL_PORT"), ("sglang", "--disaggregation-bootstrap-port")],
)
def test_a_script_says_what_replicas_that_share_a_host_need(framework: str, port: str) -> None:
    """Commands that share a host need accelerators and ports of their own, and the script says so."""
    script = export_launch(plan(), ExportOptions(framework=framework)).files["launch.sh"].decode()
    (said,) = [line for line in script.splitlines() if "share a host" in line]
    assert all(word in said for word in ("CUDA_VISIBLE_DEVICES", "--port", port))


def test_a_chip_of_two_devices_has_two_ranks_of_vllm() -> None:
    """`--tensor-parallel-size` counts devices, and four chips of TPU-7x are eight."""
    for name, ranks in (("TPU-7x", "8"), ("TPU-v6e", "4"), ("H100-SXM", "4")):
        each = deployment("TP4")
        hardware = HardwareInput(name=f"{name}-x4", accelerators_per_host=4, vendor="Google", part=name)
        each = replace(each, hardware=hardware)
        assert options_of(started(each))["--tensor-parallel-size"] == ranks
