"""A LeaderWorkerSet for each set of replicas, on one or several hosts."""

from __future__ import annotations

import json
from collections.abc import Sequence

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
from fleetplan.planner.export.launch.replica import ROUTED, Host, Launch, shell_line
from fleetplan.planner.export.launch.tools import tools

SERVICE_LABEL = "fleetplan/service"
PHASE_LABEL = "fleetplan/phase"
"""Labels of pods, for the selector of a Kubernetes Service or a router."""


def leader_worker_sets(found: Sequence[LaunchedGroup]) -> tuple[dict[str, str], tuple[NotLaunched, ...]]:
    """Return a LeaderWorkerSet for each set of replicas, by file name.

    Parameters
    ----------
    found : Sequence[LaunchedGroup]
        Deployments of one period.

    Returns
    -------
    tuple[dict[str, str], tuple[NotLaunched, ...]]
        YAML texts, and the deployments without a known image or command.
    """
    texts, refused = {}, []
    for each in found:
        framework, vendor = each.service.framework, each.hardware.vendor or ""
        image = tools().images.get(framework, {}).get(vendor)
        if image is None:
            reason = f"no image of {framework} for {vendor or 'this hardware'} is known"
            refused.append(NotLaunched(each.placement, reason))
            continue
        started = launch(each, framework)
        if isinstance(started, NotLaunched):
            refused.append(started)
        else:
            texts[f"{each.name}.lws.yaml"] = _text(each, started, image)
    return texts, tuple(refused)


def _text(each: LaunchedGroup, started: Launch, image: str) -> str:
    rules, row = tools().lws, each.placement
    template: dict[str, object] = {"size": each.hosts, "restartPolicy": "RecreateGroupOnPodRestart"}
    if each.hosts > 1:
        template["leaderTemplate"] = _pod(each, started, image, LEADER)
    template["workerTemplate"] = _pod(each, started, image, FOLLOWER if each.hosts > 1 else LEADER)
    manifest = {
        "apiVersion": rules.api,
        "kind": "LeaderWorkerSet",
        "metadata": {"name": each.name, "labels": {SERVICE_LABEL: dns_name(row.service)}},
        "spec": {"replicas": row.replicas, "leaderWorkerTemplate": template},
    }
    notes = list(started.notes)
    if row.phase != "aggregated":
        notes.append(ROUTED)
    return documents(f"LeaderWorkerSet {rules.version}: {json.dumps(each.label)}", notes, [manifest])


def _pod(each: LaunchedGroup, started: Launch, image: str, host: Host) -> dict[str, object]:
    row, framework = each.placement, each.service.framework
    rules = tools().framework(framework)
    port = rules.port
    words = started.words if started.on_host is None else started.on_host(host)
    listening = (*rules.listening, "--port", str(port))
    container: dict[str, object] = {
        "name": framework,
        "image": image,
        # The shell expands rank and address, which the controller sets as variables.
        "command": ["/bin/sh", "-c"],
        "args": [f"exec {shell_line((*words, *listening))}"],
        **address_variables(started),
        "resources": {
            "limits": {tools().resources[each.hardware.vendor or ""]: str(each.accelerators_on_a_host)}
        },
        "volumeMounts": [dict(SHARED_MEMORY_MOUNT)],
    }
    if host is LEADER:
        container["ports"] = [{"containerPort": port, "protocol": "TCP"}]
    return {
        "metadata": {"labels": {SERVICE_LABEL: dns_name(row.service), PHASE_LABEL: row.phase}},
        "spec": {
            "nodeSelector": {POOL_LABEL: dns_name(row.pool)},
            "containers": [container],
            "volumes": [dict(SHARED_MEMORY)],
        },
    }
