"""Says whose latencies are means without queueing, before a replay or an on-call engineer does."""

from __future__ import annotations

from typing import Final

from rich.console import Console
from rich.markup import escape

from fleetplan.fleet.figures import counted
from fleetplan.planner.plan import Plan

MOST_NAMES: Final = 4
"""Services that are named; more are counted."""


def print_unqueued(plan: Plan, console: Console) -> None:
    """Print a line for the services whose limits hold without queueing; none where there are none.

    Parameters
    ----------
    plan : Plan
        Which services have limits under load is one of its inputs.
    console : Console
        Where to.
    """
    if plan.inputs is None:
        return
    placed = {row.service for row in plan.placements}
    names = [
        each.name
        for each in plan.inputs.services
        if each.name in placed and not each.load_limits and (each.ttft_ms or each.tpot_ms)
    ]
    if names:
        who = ", ".join(map(escape, names)) if len(names) <= MOST_NAMES else counted(len(names), "service")
        console.print(
            f"[bold]Without queueing[/]: TTFT and TPOT of {who}. `plan replay` simulates it; `traffic` or "
            "percentile limits in the fleet file plan for it"
        )
