"""Parts common to manifests: node labels, LeaderWorkerSet hosts, memory, pod addresses, documents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from fleetplan.fleet.document.plain import yaml_text
from fleetplan.planner.export.launch.replica import Host, Launch

POOL_LABEL: Final = "fleetplan/pool"
"""Label of the nodes of a pool; its value is in the table of node pools."""

LEADER: Final = Host("0", "$LWS_LEADER_ADDRESS")
FOLLOWER: Final = Host("$LWS_WORKER_INDEX", "$LWS_LEADER_ADDRESS")
"""Hosts of a LeaderWorkerSet, by the variables that its controller sets in every container. Source:
lws.sigs.k8s.io, environment variables of a LeaderWorkerSet.
"""

SHARED_MEMORY: Final[Mapping[str, object]] = {"name": "shared-memory", "emptyDir": {"medium": "Memory"}}
SHARED_MEMORY_MOUNT: Final[Mapping[str, object]] = {"name": "shared-memory", "mountPath": "/dev/shm"}
"""Memory through which ranks of a host exchange tensors; a container's default is 64 MiB."""


def address_variables(started: Launch) -> dict[str, object]:
    """Return the variable that gives a container's server the address of its pod; empty if not needed."""
    if started.own_address is None:
        return {}
    address = {"fieldRef": {"fieldPath": "status.podIP"}}
    return {"env": [{"name": started.own_address, "valueFrom": address}]}


def commented(title: str, notes: Iterable[str]) -> str:
    """Return comment lines for the head of a YAML file; no text can end its comment."""
    lines = [title, *dict.fromkeys(notes)]
    return "".join(f"# {' '.join(line.split())}\n" for line in lines)


def documents(title: str, notes: Iterable[str], objects: Iterable[object]) -> str:
    """Return Kubernetes objects as one YAML file with a head of comments."""
    return commented(title, notes) + "".join(yaml_text(each, explicit_start=True) for each in objects)
