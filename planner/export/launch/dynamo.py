"""Manifests of Dynamo: a DynamoGraphDeployment per service and region."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from functools import partial

from fleetplan.planner.export.launch.commands import launch
from fleetplan.planner.export.launch.deployments import (
    LaunchedGroup,
    NotLaunched,
    dns_name,
    dns_names,
    left_out,
)
from fleetplan.planner.export.launch.nodes import POOL_LABEL, documents
from fleetplan.planner.export.launch.replica import Launch
from fleetplan.planner.export.launch.sglang import sglang
from fleetplan.planner.export.launch.tensorrt_llm import engine_arguments
from fleetplan.planner.export.launch.tools import tools
from fleetplan.planner.export.launch.vllm import MOONCAKE, connector


def dynamo_graphs(found: Sequence[LaunchedGroup]) -> tuple[dict[str, str], tuple[NotLaunched, ...]]:
    """Return a DynamoGraphDeployment for each service and region, by file name.

    Parameters
    ----------
    found : Sequence[LaunchedGroup]
        Deployments of one period.

    Returns
    -------
    tuple[dict[str, str], tuple[NotLaunched, ...]]
        YAML texts, and what Dynamo cannot run: hardware of other vendors, layouts without options.
    """
    groups: dict[tuple[str, str], list[tuple[LaunchedGroup, Launch]]] = defaultdict(list)
    refused = []
    for each in found:
        if each.hardware.vendor != "NVIDIA":
            refused.append(NotLaunched(each.placement, "Dynamo runs on NVIDIA parts"))
            continue
        started = _start(each)
        if isinstance(started, NotLaunched):
            refused.append(started)
        else:
            groups[each.placement.service, each.placement.region].append((each, started))
    texts = {}
    letters = {}
    most = tools().dynamo.components - 1
    for key, parts in groups.items():
        if len(parts) > most:
            reason = (
                f"a Dynamo graph has room for {most} sets of replicas plus its frontend, not {len(parts)}"
            )
            refused += [NotLaunched(each.placement, reason) for each, _ in parts]
            continue
        letters[key] = _letters(parts)
    files = dns_names({key: "-".join(key) for key in letters})
    graphs = {
        graph: dns_names({key: "-".join(key) for key in letters}, graph) for graph, _ in set(letters.values())
    }
    for key, (graph, component) in letters.items():
        lacks = [left_out(each) for each in refused if (each.placement.service, each.placement.region) == key]
        texts[f"{files[key]}.dynamo.yaml"] = _graph(graphs[graph][key], groups[key], component, lacks)
    return texts, tuple(refused)


def _start(each: LaunchedGroup) -> Launch | NotLaunched:
    framework = each.service.framework
    # The image contains a fixed framework version, whose options may differ from the newest one.
    version = tools().dynamo.frameworks[framework].version
    return launch(each, framework, partial(sglang, version=version) if framework == "sglang" else None)


def _graph(
    name: str, parts: Sequence[tuple[LaunchedGroup, Launch]], component_letters: int, lacks: Sequence[str]
) -> str:
    rules = tools().dynamo
    framework = parts[0][0].service.framework
    runtime = rules.frameworks[framework]
    frontend = {
        "name": "frontend",
        "type": "frontend",
        "replicas": 1,
        "podTemplate": {"spec": {"containers": [{"name": "main", "image": runtime.image}]}},
    }
    called = {_set_of(each): "-".join(_set_of(each)) for each, _ in parts}
    names = dns_names(called, component_letters)
    components = [_component(each, started, names[_set_of(each)]) for each, started in parts]
    graph = {
        "apiVersion": rules.api,
        "kind": "DynamoGraphDeployment",
        "metadata": {"name": name},
        "spec": {"backendFramework": framework, "components": [frontend, *components]},
    }
    title = f"Dynamo {rules.version}, whose image has {framework} {runtime.version}"
    notes = [
        f"{component['name']}: {each.placement.replicas} x {json.dumps(each.label)}; {note}"
        for component, (each, started) in zip(components, parts, strict=True)
        for note in started.notes
    ]
    return documents(title, [*notes, *lacks], [graph])


def _letters(parts: Sequence[tuple[LaunchedGroup, Launch]]) -> tuple[int, int]:
    """Return the maximum lengths of the graph's and its components' names in the operator's webhook."""
    rules = tools().dynamo
    if any(each.hosts > 1 for each, _ in parts):
        component = rules.multihost_component_letters
        # A role of a multi-host component repeats the component's name.
        return rules.name_letters - 2 * component - rules.role_letters, component
    component = rules.name_letters // 2
    return rules.name_letters - component, component


def _set_of(each: LaunchedGroup) -> tuple[str, str, str]:
    """Return the key of a set of replicas within its service and region."""
    return each.placement.phase, each.placement.pool, each.placement.config


def _component(each: LaunchedGroup, started: Launch, name: str) -> dict[str, object]:
    runtime = tools().dynamo.frameworks[each.service.framework]
    row = each.placement
    container: dict[str, object] = {
        "name": "main",
        "image": runtime.image,
        "command": ["python3", "-m", runtime.module],
        "args": _arguments(each, started.words),
        **_reached(each),
        "resources": {"limits": {tools().resources["NVIDIA"]: str(each.accelerators_on_a_host)}},
    }
    component: dict[str, object] = {
        "name": name,
        "type": "worker" if row.phase == "aggregated" else row.phase,
        "replicas": row.replicas,
        "podTemplate": {
            "spec": {"nodeSelector": {POOL_LABEL: dns_name(row.pool)}, "containers": [container]}
        },
    }
    if each.hosts > 1:
        # The operator adds hosts, ranks and addresses to the arguments.
        component["multinode"] = {"nodeCount": each.hosts}
    return component


def _reached(each: LaunchedGroup) -> dict[str, object]:
    """Return the setting that gives Mooncake prefill workers the address of their pod.

    Dynamo gives decode workers the address of the first data-parallel rank, 127.0.0.1 by default (ai-dynamo
    1.6.1 of PyPI, dynamo/vllm/kv_connector_protocols.py; ai-dynamo/dynamo issue 14407). With several hosts,
    it is the address of the first host.
    """
    if not _advertises(each):
        return {}
    return {"env": [{"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}]}


def _advertises(each: LaunchedGroup) -> bool:
    mooncake = each.service.framework == "vllm" and connector(each) == MOONCAKE
    return mooncake and each.placement.phase == "prefill" and each.hosts == 1


def _arguments(each: LaunchedGroup, words: Sequence[str]) -> list[str]:
    """Return the framework's options in the form of Dynamo's worker, and its phase."""
    framework, phase = each.service.framework, each.placement.phase
    if framework == "trtllm":
        # This worker has few options of its own and takes the engine's arguments in one option.
        engine = json.dumps(engine_arguments(each), sort_keys=True)
        arguments = ["--model", words[words.index("serve") + 1], "--override-engine-args", engine]
    elif framework == "vllm":
        arguments = ["--model", *words[2:]]
    else:
        arguments = list(words[words.index("--model-path") :])
    if phase != "aggregated" and "--disaggregation-mode" not in arguments:
        arguments += ["--disaggregation-mode", phase]
    if _advertises(each):
        # Kubernetes expands the variable.
        arguments += ["--data-parallel-address", "$(POD_IP)"]
    return arguments
