"""Name the services whose latencies are means without queueing."""

from __future__ import annotations

from typing import Final

from rich.console import Console
from rich.markup import escape

from fleetplan.fleet.figures import counted
from fleetplan.planner.plan import Plan

MOST_NAMES: Final = 4
"""Services listed by name; a count replaces the others."""


def print_unqueued(plan: Plan, console: Console) -> None:
    """Print a line that names the services whose limits hold only without queueing, if there are any.

    Parameters
    ----------
    plan : Plan
        Plan; its inputs state which services have limits under load.
    console : Console
        Output console.
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
