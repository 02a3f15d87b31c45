"""What all manifests share: the label of a pool's nodes, hosts of a LeaderWorkerSet, comments, documents."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import yaml

from fleetplan.planner.export.launch.replica import Host

POOL_LABEL: Final = "fleetplan/pool"
"""Label of the nodes of a pool; the table of node pools has its value."""

LEADER: Final = Host("0", "$LWS_LEADER_ADDRESS")
FOLLOWER: Final = Host("$LWS_WORKER_INDEX", "$LWS_LEADER_ADDRESS")
"""Hosts of a LeaderWorkerSet, by the variables that its controller sets in every container. Source:
lws.sigs.k8s.io, environment variables of a LeaderWorkerSet."""


def commented(title: str, notes: Iterable[str]) -> str:
    """Return lines of comments for the head of a YAML file; no text ends the comment that it stands in."""
    lines = [title, *dict.fromkeys(notes)]
    return "".join(f"# {' '.join(line.split())}\n" for line in lines)


def documents(title: str, notes: Iterable[str], objects: Iterable[object]) -> str:
    """Return objects of Kubernetes as one YAML file, behind a head of comments."""
    return commented(title, notes) + yaml.safe_dump_all(objects, sort_keys=False, explicit_start=True)
