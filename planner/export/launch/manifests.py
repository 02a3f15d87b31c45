"""Manifests: a Dynamo graph deployment and llm-d values for each service and region."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Sequence
from typing import Final

import yaml

from fleetplan.planner.export.launch.commands import engine_arguments, launch
from fleetplan.planner.export.launch.deployments import LaunchedGroup, NotLaunched, dns_name

DYNAMO_API: Final = "nvidia.com/v1beta1"
"""API version of DynamoGraphDeployment that docs.nvidia.com/dynamo v1.6.0 documents (read November 2026)."""

DYNAMO_RUNTIMES: Final = {
    "vllm": ("dynamo.vllm", "nvcr.io/nvidia/ai-dynamo/vllm-runtime:1.3.1"),
    "sglang": ("dynamo.sglang", "nvcr.io/nvidia/ai-dynamo/sglang-runtime:1.3.1"),
    "trtllm": ("dynamo.trtllm", "nvcr.io/nvidia/ai-dynamo/tensorrtllm-runtime:1.3.1"),
}
"""Module and image of each framework, of ai-dynamo/dynamo@04521f4, examples/backends/*/deploy/disagg.yaml."""

LLM_D_CHART: Final = "llm-d-modelservice v0.4.0"
"""Helm chart of llm-d-incubation/llm-d-modelservice@024c0f2. llm-d 0.7 moved to Kustomize and keeps the chart
for older guides: llm-d.ai/docs/0.7/proposals/modelservice (read November 2026)."""

LLM_D_IMAGE: Final = "ghcr.io/llm-d/llm-d:v0.4.0"

RESOURCES: Final = {
    "NVIDIA": ("nvidia.com/gpu", "nvidia"),
    "AMD": ("amd.com/gpu", "amd"),
    "Intel": ("habana.ai/gaudi", "intel-gaudi"),
    "Google": ("google.com/tpu", "google"),
}
"""Name of the device plug-in's resource by vendor, and what the llm-d chart calls the kind (values.yaml)."""

POOL_LABEL: Final = "fleetplan/pool"
"""Label of the nodes of a pool; the table of node pools has its value."""


def dynamo_graphs(found: Sequence[LaunchedGroup]) -> tuple[dict[str, str], tuple[NotLaunched, ...]]:
    """Return a DynamoGraphDeployment for each service and region, by file name.

    Parameters
    ----------
    found : Sequence[LaunchedGroup]
        All of one period.

    Returns
    -------
    tuple[dict[str, str], tuple[NotLaunched, ...]]
        YAML texts; and what Dynamo cannot run: parts of other vendors, layouts without options.
    """
    groups: dict[tuple[str, str], list[dict[str, object]]] = defaultdict(list)
    frameworks: dict[tuple[str, str], str] = {}
    refused = []
    for each in found:
        if each.hardware.vendor != "NVIDIA":
            refused.append(NotLaunched(each.placement, "Dynamo runs on NVIDIA parts"))
            continue
        component = _component(each)
        if isinstance(component, NotLaunched):
            refused.append(component)
            continue
        key = (each.placement.service, each.placement.region)
        groups[key].append(component)
        frameworks[key] = each.service.framework
    texts = {}
    for key, components in groups.items():
        name = dns_name("-".join(key))
        image = DYNAMO_RUNTIMES[frameworks[key]][1]
        frontend = {
            "name": "frontend",
            "type": "frontend",
            "replicas": 1,
            "podTemplate": {"spec": {"containers": [{"name": "main", "image": image}]}},
        }
        graph = {
            "apiVersion": DYNAMO_API,
            "kind": "DynamoGraphDeployment",
            "metadata": {"name": name},
            "spec": {"backendFramework": frameworks[key], "components": [frontend, *components]},
        }
        texts[f"{name}.dynamo.yaml"] = yaml.safe_dump(graph, sort_keys=False)
    return texts, tuple(refused)


def _component(each: LaunchedGroup) -> dict[str, object] | NotLaunched:
    framework = each.service.framework
    started = launch(each, framework)
    if isinstance(started, NotLaunched):
        return started
    module, image = DYNAMO_RUNTIMES[framework]
    nodes, per_node = _nodes(each)
    phase = each.placement.phase
    container: dict[str, object] = {
        "name": "main",
        "image": image,
        "command": ["python3", "-m", module],
        "args": _dynamo_arguments(each, started.words),
        "resources": {"limits": {"nvidia.com/gpu": str(per_node)}},
    }
    component: dict[str, object] = {
        "name": each.name,
        "type": "worker" if phase == "aggregated" else phase,
        "replicas": each.placement.replicas,
        "podTemplate": {
            "spec": {
                "nodeSelector": {POOL_LABEL: dns_name(each.placement.pool)},
                "containers": [container],
            }
        },
    }
    if nodes > 1:
        component["multinode"] = {"nodeCount": nodes}
    return component


def _dynamo_arguments(each: LaunchedGroup, words: Sequence[str]) -> list[str]:
    """The options of the framework as Dynamo's worker takes them, and the phase that it serves."""
    model, phase = each.variant.model, each.placement.phase
    if each.service.framework == "trtllm":
        # This worker has no option for most of the engine: it takes the engine's own arguments in one.
        engine = json.dumps(engine_arguments(each), sort_keys=True)
        arguments = ["--model-path", model, "--override-engine-args", engine]
    else:
        name = "--model" if each.service.framework == "vllm" else "--model-path"
        arguments = [name, model, *words[words.index(model) + 1 :]]
    if phase != "aggregated" and "--disaggregation-mode" not in arguments:
        arguments += ["--disaggregation-mode", phase]
    return arguments


def _nodes(each: LaunchedGroup) -> tuple[int, int]:
    """Hosts of a replica, and its accelerators on each."""
    nodes = math.ceil(each.layout.accelerators / each.hardware.accelerators_per_host)
    return nodes, math.ceil(each.layout.accelerators / nodes)


def llm_d_values(found: Sequence[LaunchedGroup]) -> tuple[dict[str, str], tuple[NotLaunched, ...]]:
    """Return values of the llm-d chart, one release a set of replicas, by file name.

    The releases of a service carry the same model label, so that one pool routes to all of them.

    Parameters
    ----------
    found : Sequence[LaunchedGroup]
        All of one period.
    """
    texts, refused = {}, []
    for each in found:
        started = launch(each, "vllm")
        if isinstance(started, NotLaunched):
            refused.append(started)
        elif each.hardware.vendor not in RESOURCES:
            refused.append(NotLaunched(each.placement, f"llm-d has no resource for {each.hardware.vendor}"))
        else:
            texts[f"{each.name}.llm-d.yaml"] = yaml.safe_dump(_values(each, started.words), sort_keys=False)
    return texts, tuple(refused)


def _values(each: LaunchedGroup, words: Sequence[str]) -> dict[str, object]:
    vendor = each.hardware.vendor or ""
    nodes, _ = _nodes(each)
    role = "prefill" if each.placement.phase == "prefill" else "decode"
    other = "decode" if role == "prefill" else "prefill"
    ranks = {
        "tensor": each.layout.tp * each.layout.cp * each.layout.pp,
        "data": each.layout.dp,
        "workers": nodes,
    }
    container = {
        "name": "vllm",
        "image": LLM_D_IMAGE,
        "modelCommand": "custom",
        "command": list(words[:2]),
        "args": list(words[2:]),
    }
    labels = {"llm-d.ai/inferenceServing": "true", "llm-d.ai/model": dns_name(each.placement.service)}
    return {
        "multinode": nodes > 1,
        "modelArtifacts": {
            "name": each.variant.model,
            "uri": f"hf://{each.variant.model}",
            "labels": labels,
        },
        "accelerator": {"type": RESOURCES[vendor][1]},
        "routing": {"proxy": {"enabled": each.placement.phase == "decode"}},
        role: {
            "create": True,
            "replicas": each.placement.replicas,
            "nodeSelector": {POOL_LABEL: dns_name(each.placement.pool)},
            "parallelism": ranks,
            "containers": [container],
        },
        other: {"create": False, "replicas": 0},
    }
