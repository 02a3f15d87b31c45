"""Nodes in the format of Kubernetes and Slurm."""

from __future__ import annotations

from typing import Any

from fleetplan.fleet.document.plain import read_yaml
from fleetplan.planner.importing.clusters import PoolOptions

OPTIONS = PoolOptions("2026-11-24")


def node(name: str, labels: dict[str, str], capacity: dict[str, str], **spec: object) -> dict[str, Any]:
    """A node by the API of Kubernetes 1.37, without what no importer reads."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": spec,
        "status": {"capacity": capacity, "conditions": [{"type": "Ready", "status": "True"}]},
    }


def nvidia(name: str, product: str, gpus: int, region: str = "east", **spec: object) -> dict[str, Any]:
    labels = {"nvidia.com/gpu.product": product, "nvidia.com/gpu.count": "8"}
    return node(
        name,
        labels | {"topology.kubernetes.io/region": region},
        {"cpu": "96", "nvidia.com/gpu": str(gpus)},
        **spec,
    )


def listed(*nodes: object) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "List", "items": list(nodes)}


NODES = listed(*(nvidia(f"h{n}", "NVIDIA-H100-80GB-HBM3", 8) for n in range(3)))


def pools(text: str) -> dict[str, dict[str, Any]]:
    return {pool["name"]: pool for pool in read_yaml(text)["pools"]}


SINFO = {
    "sinfo": [
        {"partition": {"name": name}, "node": {"state": ["IDLE"]}, "gres": {"total": "gpu:h100:8(S:0-1)"},
         "nodes": {"total": 2, "nodes": ["h1", "h2"]}}
        for name in ("batch", "debug")
    ]
    + [
        {"node": {"state": ["IDLE", "DRAIN"]}, "gres": {"total": "gpu:nvidia_h200:8"},
         "nodes": {"nodes": ["x1"]}},
        {"node": {"state": ["IDLE"]}, "gres": {"total": ""}, "nodes": {"nodes": ["c1", "c2"]}},
        {"node": {"state": ["IDLE"]}, "gres": {"total": "gpu:8"}, "nodes": {"nodes": ["u1"]}},
        {"node": {"state": ["IDLE"]}, "gres": {"total": "gpu:h100:4,gpu:h200:4"}, "nodes": {"nodes": ["m1"]}},
    ],
    "meta": {"plugins": {"data_parser": "data_parser/v0.0.42"}},
}  # fmt: skip
"""By the schema of data_parser v0.0.42 (Slurm 24.11): rows of partitions, nodes that are alike together."""
