"""What stands and what is bought, for those who provide it: node pools, and purchases as planned changes."""

from __future__ import annotations

import json
import math
from typing import Final

import pandas as pd

from fleetplan.planner.cells import as_text
from fleetplan.planner.export.launch.deployments import dns_name
from fleetplan.planner.export.launch.nodes import POOL_LABEL
from fleetplan.planner.export.launch.tools import tools
from fleetplan.planner.plan import Plan

CHANGES_FORMAT: Final = "1.0"
"""Version of the document of changes; its shape follows `resource_changes` of Terraform's plan JSON."""


def node_pools(plan: Plan) -> pd.DataFrame:
    """Return the nodes of each pool and period, with how many of them run something.

    A node is a host; of a pool of single accelerators, as many as a host of their kind holds.
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
    return pd.DataFrame(rows)


def purchase_changes(plan: Plan) -> str:
    """Return purchases, rents and retirements as a JSON document of planned changes."""
    changes = [
        {
            "address": f"fleetplan_{row.kind}.{dns_name(f'{row.offer}-{row.region}-{row.period}')}",
            "type": f"fleetplan_{row.kind}",
            "name": row.offer,
            "change": {
                "actions": ["create"],
                "before": None,
                "after": row.model_dump(
                    include={
                        "period", "region", "pool", "hardware", "units", "unit", "accelerators", "capex_usd",
                        "usd", "price_source", "price_as_of",
                    }
                ),
            },
        }
        for row in plan.purchases
    ]  # fmt: skip
    changes += [
        {
            "address": f"fleetplan_owned.{dns_name(f'{row.pool}-{row.period}')}",
            "type": "fleetplan_owned",
            "name": row.pool,
            "change": {
                "actions": ["delete"],
                "before": row.model_dump(
                    include={"period", "region", "hardware", "hosts", "usd", "resale_usd"}
                ),
                "after": None,
            },
        }
        for row in plan.retirements
    ]
    document = {
        "format_version": CHANGES_FORMAT,
        "fleet": plan.fleet,
        "plan_format_version": plan.format_version,
        "created": plan.provenance.created,
        "resource_changes": changes,
    }
    return json.dumps(document, indent=2) + "\n"
