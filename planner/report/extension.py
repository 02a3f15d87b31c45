"""The extension of a plan's horizon in words: which periods it is, what it costs, what it assumes."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape

from fleetplan.fleet.figures import agreeing, counted, money, span
from fleetplan.planner.plan import Plan


def extension(plan: Plan) -> str:
    """Return one sentence on the extension of the horizon; empty where there is none."""
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
    """Print the sentence; nothing where there is no extension."""
    text = extension(plan)
    if text:
        console.print(f"[bold]Extension[/]: {escape(text)}")
