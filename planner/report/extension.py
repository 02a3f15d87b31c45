"""Describe the extension of a plan's horizon: its periods, its cost and its assumptions."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape

from fleetplan.fleet.figures import agreeing, counted, money, span
from fleetplan.planner.plan import Plan


def extension(plan: Plan) -> str:
    """Return one sentence on the extension of the horizon, or an empty string without an extension."""
    if not plan.extension_periods:
        return ""
    stated_usd = plan.objective_usd - plan.extension_usd
    stated, repeated = len(plan.stated_periods), len(plan.extension_periods)
    parts = [
        f"{span(plan.stated_periods)} {agreeing(stated, 'cost')} {money(stated_usd)}",
        f"{span(plan.extension_periods)} {agreeing(repeated, 'repeat')} {plan.stated_periods[-1]} and "
        f"{agreeing(repeated, 'cost')} "
        f"{money(plan.extension_usd)} of the TCO",
    ]
    assumed = [row for row in plan.purchases if row.assumed]
    if assumed:
        orders = counted(len(assumed), "order")
        parts.append(f"{orders} assumed there ({money(sum(row.usd for row in assumed))})")
    return "; ".join(parts)


def print_extension(plan: Plan, console: Console) -> None:
    """Print the sentence on the extension, if there is one."""
    text = extension(plan)
    if text:
        console.print(f"[bold]Extension[/]: {escape(text)}")
