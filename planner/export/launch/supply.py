"""The table of nodes by pool and moment."""

from __future__ import annotations

import math
from typing import Final

import pandas as pd

from fleetplan.planner.cells import as_text
from fleetplan.planner.export.launch.deployments import dns_name
from fleetplan.planner.export.launch.nodes import POOL_LABEL
from fleetplan.planner.export.launch.tools import tools
from fleetplan.planner.plan import Plan

COLUMNS: Final = (
    "period",
    "slice",
    "scenario",
    "region",
    "pool",
    "node_label",
    "hardware",
    "resource",
    "accelerators_per_node",
    "nodes",
    "nodes_needed",
    "accelerators",
    "accelerators_used",
)
"""Columns of the table, which a plan without pools has too."""


def node_pools(plan: Plan) -> pd.DataFrame:
    """Return the nodes of each pool and period, and how many of them run something.

    A node is a host; for a pool of single accelerators, it has the size of a host of their kind.
    """
    hardware = {} if plan.inputs is None else {each.name: each for each in plan.inputs.hardware}
    rows = []
    for use in plan.pools:
        kind = hardware.get(use.hardware)
        per_node = 1 if kind is None else kind.accelerators_per_host
        vendor = "" if kind is None or kind.vendor is None else kind.vendor
        rows.append(
            {
                "period": use.period,
                "slice": use.slice,
                "scenario": use.scenario,
                "region": as_text(use.region),
                "pool": as_text(use.pool),
                "node_label": f"{POOL_LABEL}={dns_name(use.pool)}",
                "hardware": as_text(use.hardware),
                "resource": tools().resources.get(vendor, ""),
                "accelerators_per_node": per_node,
                "nodes": math.ceil(use.accelerators / per_node),
                "nodes_needed": math.ceil((use.used_accelerators + use.reserve_accelerators) / per_node),
                "accelerators": use.accelerators,
                "accelerators_used": use.used_accelerators,
            }
        )
    return pd.DataFrame(rows, columns=COLUMNS)
