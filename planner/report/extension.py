"""The extension of a plan's horizon in words: which periods it is, what it costs, what it assumes."""

from __future__ import annotations

from rich.console import Console
from rich.markup import escape

from fleetplan.fleet.figures import money, span
from fleetplan.planner.plan import Plan


def extension(plan: Plan) -> str:
    """Return one sentence on the extension of the horizon; empty where there is none."""
    if not plan.extension_periods:
        return ""
    stated_usd = plan.objective_usd - plan.extension_usd
    repeats = "repeats" if len(plan.extension_periods) == 1 else "repeat"
    parts = [
        f"{span(plan.stated_periods)} cost {money(stated_usd)}",
        f"{span(plan.extension_periods)} {repeats} {plan.stated_periods[-1]} and cost "
        f"{money(plan.extension_usd)} of the TCO",
    ]
    assumed = [row for row in plan.purchases if row.assumed]
    if assumed:
        orders = "1 order" if len(assumed) == 1 else f"{len(assumed)} orders"
        parts.append(f"{orders} assumed there ({money(sum(row.usd for row in assumed))})")
    return "; ".join(parts)


def print_extension(plan: Plan, console: Console) -> None:
    """Print the sentence; nothing where there is no extension."""
    text = extension(plan)
    if text:
        console.print(f"[bold]Extension[/]: {escape(text)}")
