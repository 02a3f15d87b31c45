"""Values of the llm-d chart: one release per set of replicas."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Final

from fleetplan.planner.export.launch.checkpoints import launched
from fleetplan.planner.export.launch.commands import launch
from fleetplan.planner.export.launch.deployments import LaunchedGroup, NotLaunched, dns_name
from fleetplan.planner.export.launch.nodes import (
    FOLLOWER,
    LEADER,
    POOL_LABEL,
    SHARED_MEMORY,
    SHARED_MEMORY_MOUNT,
    address_variables,
    documents,
)
from fleetplan.planner.export.launch.replica import Launch, shell_line
from fleetplan.planner.export.launch.tools import VendorRules, tools
from fleetplan.planner.export.launch.vllm import MOONCAKE, PUSHED, connector

HUB_NAME: Final = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")
"""Owner and name of a checkpoint on a hub."""

REPLICAS_LABEL: Final = "fleetplan/replicas"
"""Label of the pods of one release. The chart selects pods only by labels, so no two releases may share them.
"""


FIRST_WITH_UNLIKE_STAGES: Final = (0, 31, 0)
"""First version in which Mooncake transfers caches between any numbers of pipeline stages: vLLM 0.31.0 has
`remote_pp_size` in kv_connector/v1/mooncake/mooncake_connector.py, 0.26.0 does not.
"""


def llm_d_values(found: Sequence[LaunchedGroup]) -> tuple[dict[str, str], tuple[NotLaunched, ...]]:
    """Return values of the llm-d chart, one release per set of replicas, by file name.

    The releases of a service share a model label, so that one InferencePool routes to all of them.

    Parameters
    ----------
    found : Sequence[LaunchedGroup]
        Deployments of one period.

    Returns
    -------
    tuple[dict[str, str], tuple[NotLaunched, ...]]
        YAML texts, and what the chart cannot run: other frameworks, other vendors, layouts without options.
    """
    rules, texts, refused = tools().llm_d, {}, []
    for each in found:
        vendor = rules.vendors.get(each.hardware.vendor or "")
        if each.service.framework != rules.framework:
            reason = f"llm-d is exported with {rules.framework}, and the service is planned with " + (
                f"{each.service.framework}: its rates would be others"
            )
            refused.append(NotLaunched(each.placement, reason))
        elif vendor is None:
            refused.append(NotLaunched(each.placement, f"llm-d has no image for {each.hardware.vendor}"))
        elif problem := _handing_over_problem(each, vendor):
            refused.append(NotLaunched(each.placement, problem))
        else:
            started = launch(each, rules.framework)
            if isinstance(started, NotLaunched):
                refused.append(started)
            elif not HUB_NAME.fullmatch(launched(each)):
                reason = f"llm-d needs a checkpoint on a hub, not the folder {launched(each)}"
                refused.append(NotLaunched(each.placement, reason))
            else:
                texts[f"{each.name}.llm-d.yaml"] = _text(each, started, vendor)
    return texts, tuple(refused)


def _handing_over_problem(each: LaunchedGroup, vendor: VendorRules) -> str:
    """Return why the sidecar or the image of llm-d cannot transfer caches as planned; empty if it can."""
    used = connector(each)
    without = "set `search: {pipeline_stages: [1]}` of the service to plan without"
    if used == PUSHED:
        return (
            "on this hardware vLLM transfers caches of several pipeline stages only by NixlPushConnector, "
            f"which {tools().llm_d.sidecar} does not support: {without}"
        )
    several, own = each.answer_stages - {1}, tuple(int(part) for part in vendor.vllm.split("."))
    alike = not several or (several == each.prompt_stages and len(several) == 1)
    if used == MOONCAKE and own < FIRST_WITH_UNLIKE_STAGES and not alike:
        return (
            f"the image has vLLM {vendor.vllm}, which transfers caches to the same number of pipeline stages "
            f"as in prefill, or to one: {without}"
        )
    return ""


def _text(each: LaunchedGroup, started: Launch, vendor: VendorRules) -> str:
    title = f"llm-d-modelservice {tools().llm_d.version}: {json.dumps(each.label)}"
    notes = [*started.notes, f"the image has vLLM {vendor.vllm}"]
    return documents(title, notes, [_values(each, started, vendor)])


def _values(each: LaunchedGroup, started: Launch, vendor: VendorRules) -> dict[str, object]:
    phase = each.placement.phase
    role = "prefill" if phase == "prefill" else "decode"
    other = "decode" if role == "prefill" else "prefill"
    model = launched(each)
    labels = {
        "llm-d.ai/inference-serving": "true",
        "llm-d.ai/model": dns_name(each.placement.service),
        REPLICAS_LABEL: each.name,
    }
    proxied = phase == "decode"
    proxy: dict[str, object] = {"enabled": proxied}
    if proxied:
        proxy["image"] = tools().llm_d.sidecar
        if connector(each) == MOONCAKE:
            proxy["connector"] = tools().llm_d.mooncake
    return {
        "multinode": each.hosts > 1,
        "modelArtifacts": {"name": model, "uri": f"hf://{model}", "labels": labels},
        "accelerator": {"type": vendor.type},
        "routing": {"servicePort": tools().llm_d.service_port, "proxy": proxy},
        role: {
            "create": True,
            "replicas": each.placement.replicas,
            "nodeSelector": {POOL_LABEL: dns_name(each.placement.pool)},
            "parallelism": parallelism(each),
            "containers": [_container(each, started, vendor)],
            "volumes": [dict(SHARED_MEMORY)],
        },
        other: {"create": False, "replicas": 0},
    }


def parallelism(each: LaunchedGroup) -> dict[str, int]:
    """Return the chart's degrees: `tensor` times `dataLocal` are the accelerators of a pod."""
    layout, on_host = each.layout, each.accelerators_on_a_host
    # Attention data-parallel ranks that fit entirely on a host; a rank across several hosts counts as one.
    local = max(1, on_host // (layout.accelerators // layout.dp))
    return {
        "tensor": on_host // local,
        "data": layout.dp,
        "dataLocal": local,
        "workers": each.hosts,
    }


def _container(each: LaunchedGroup, started: Launch, vendor: VendorRules) -> dict[str, object]:
    rules = tools().llm_d
    port = rules.proxied_port if each.placement.phase == "decode" else rules.service_port
    container: dict[str, object] = {
        "name": "vllm",
        "image": vendor.image,
        "modelCommand": "custom",
        "ports": [{"containerPort": port, "protocol": "TCP"}],
        **address_variables(started),
        "volumeMounts": [dict(SHARED_MEMORY_MOUNT)],
    }
    extra = ("--port", str(port))
    if started.on_host is None:
        words = (*started.words, *extra)
        return container | {"command": list(words[:2]), "args": list(words[2:])}
    leader, follower = (shell_line((*started.on_host(host), *extra)) for host in (LEADER, FOLLOWER))
    script = f'if [ "{FOLLOWER.rank}" = 0 ]; then exec {leader}; else exec {follower}; fi'
    return container | {"command": ["/bin/sh", "-c"], "args": [script]}
