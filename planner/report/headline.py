"""First lines of a plan: cost, decision, optimality gap and unmet demand."""

from __future__ import annotations

from collections import defaultdict
from typing import Final

from rich.console import Console
from rich.markup import escape

from fleetplan.fleet.figures import (
    figure,
    how_sure_all_unmet,
    how_sure_unmet,
    money,
    percent,
    rate_text,
    span,
)
from fleetplan.planner.plan import MomentKey, Plan, StatedGoal, currency_of
from fleetplan.planner.report.after_tax import after_tax
from fleetplan.planner.report.brief_console import MOST_LISTED, print_brief_unmet
from fleetplan.planner.report.decision import DEFAULT_REGION, asked_by, decision, simpler, where_and_when
from fleetplan.planner.report.extension import print_extension
from fleetplan.planner.report.inaccurate_hardware import print_weak_parts

_STATUS_TEXT: Final = {
    "within_gap": "within the requested gap",
    "limit": "time limit reached",
    "no_plan": "no plan within the time limit",
}
"""How a search ended in words, where they are others than in plan.json."""

_STOPPED: Final = "stopped or out of time"

MOST_OF_TIME: Final = 0.9
"""Share of the time limit. A search that ends earlier without reaching its gap was interrupted, or began late
because evaluating its configurations took long.
"""


def status_text(plan: Plan) -> str:
    """Return in words how the search ended; a plan does not record an interruption by the user."""
    early = plan.solve.wall_s < MOST_OF_TIME * plan.provenance.time_limit_s
    return _STOPPED if plan.status == "limit" and early else status_words(plan.status)


def status_words(status: str) -> str:
    """Return a status of plan.json, or of a point of a sweep, in words."""
    return _STATUS_TEXT.get(status, status)


def print_headline(plan: Plan, brief: bool, console: Console) -> None:
    """Print cost, decision, gap, currency, the price of a simpler plan, weak predictions and unmet demand.

    Parameters
    ----------
    plan : Plan
        A verified plan.
    brief : bool
        Whether to print long lists of shortages as one line per service.
    console : Console
        Output console.
    """
    when = escape(where_and_when(DEFAULT_REGION, span(plan.periods)))
    parts = [f"[bold]{escape(plan.fleet)}[/]{when}: TCO [bold]{money(plan.objective_usd)}[/]"]
    if plan.shortages:
        parts.append(_unmet(plan))
    if plan.goal is not None:
        parts.append(_goal(plan.goal))
    if plan.usd_per_million_tokens is not None:
        parts.append(f"{money(plan.usd_per_million_tokens, 3)} per million tokens at peak traffic")
    console.print(", ".join(parts))
    console.print(f"[bold]Decision[/]: {escape(decision(plan))}")
    console.print(
        f"[bold]Optimality gap[/] {percent(plan.gap)} (lower bound {money(plan.bound_usd)}"
        f"{plan.bound_scope}, proven by {plan.solve.bound_source}); "
        f"{_ended(plan)}"
    )
    currency = currency_of(plan)
    if currency is not None:
        console.print(f"[bold]Currency[/]: {escape(rate_text(currency))}")
    tax = after_tax(plan)
    if tax:
        console.print(f"[bold]Income tax[/]: {escape(tax)}")
    print_extension(plan, console)
    simplified = simpler(plan)
    if simplified:
        console.print(f"[bold]Simpler plan[/]: {simplified}")
    print_weak_parts(plan.provenance.model_errors, console)
    if brief and len(plan.shortages) > MOST_LISTED:
        print_brief_unmet(plan, console)
    else:
        _unmet_rows(plan, console)
    # The first line already states the gap over all priorities.
    for each in plan.shortage_gaps if len(plan.shortage_gaps) > 1 else ():
        console.print(f"[bold red]unmet[/] {how_sure_unmet(each.priority, each.gap)}")


def _unmet_rows(plan: Plan, console: Console) -> None:
    for row in plan.shortages:
        console.print(
            f"[bold red]unmet[/] {escape(asked_by(row))}: {figure(row.requests_per_s)} requests/s",
            soft_wrap=True,
        )


def _unmet(plan: Plan) -> str:
    """Return the largest unmet demand of a moment and the part of it that another plan might serve."""
    at_moment: dict[MomentKey, float] = defaultdict(float)
    for row in plan.shortages:
        at_moment[row.moment_key] += row.requests_per_s
    most = "up to " if len(at_moment) > 1 else ""
    text = f"[bold red]{most}{figure(max(at_moment.values()))} requests/s unmet[/]"
    if plan.goal is not None and plan.goal.objective == "served":
        # The goal below the cost carries the bound on served requests.
        return text
    gap = max((each.gap for each in plan.shortage_gaps), default=0.0)
    return f"{text} ({how_sure_all_unmet(gap)})"


def _goal(goal: StatedGoal) -> str:
    """Return a goal other than TCO with its gap: `energy 123,400 kWh, gap 0.20% (lower bound ...)`."""
    side = "upper" if goal.objective == "served" else "lower"
    # For a goal in accelerators, the unit repeats the name of the goal.
    unit = "" if goal.unit == goal.objective else f" {goal.unit}"
    reached = f"{goal.objective} [bold]{figure(goal.value)}[/]{unit}"
    return f"{reached}, gap {percent(goal.gap)} ({side} bound {figure(goal.bound)})"


def _ended(plan: Plan) -> str:
    """Return why and when the search ended; an early end adds the time limit of all steps."""
    said = status_text(plan)
    ended = f"{said} after {plan.solve.wall_s:.1f} s of search"
    return f"{ended}, of {plan.provenance.time_limit_s:g} s in all" if said == _STOPPED else ended
