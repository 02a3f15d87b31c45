"""The first lines of a plan: its cost, the decision, how far from optimal it may be, what is unmet."""

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
from fleetplan.planner.report.weak_parts import print_weak_parts

_STATUS_TEXT: Final = {
    "optimal": "optimal",
    "within_gap": "within the requested gap",
    "limit": "time limit reached",
}

_STOPPED: Final = "stopped or out of time"

MOST_OF_TIME: Final = 0.9
"""Share of the time limit; a search that ended without its gap after less of it was stopped, or began
late because its configurations took long to evaluate."""


def status_text(plan: Plan) -> str:
    """How the search ended, in words; of an interrupted one the plan does not say that somebody did it."""
    early = plan.solve.wall_s < MOST_OF_TIME * plan.provenance.time_limit_s
    return _STOPPED if plan.status == "limit" and early else _STATUS_TEXT[plan.status]


def print_headline(plan: Plan, brief: bool, console: Console) -> None:
    """Print cost, decision, gap, currency, the price of a simpler plan, weak parts and unmet demand.

    Parameters
    ----------
    plan : Plan
        A verified plan.
    brief : bool
        Whether more than a few shortages are one line a service.
    console : Console
        Where to.
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
    # The first line says it of all priorities together.
    for each in plan.shortage_gaps if len(plan.shortage_gaps) > 1 else ():
        console.print(f"[bold red]unmet[/] {how_sure_unmet(each.priority, each.gap)}")


def _unmet_rows(plan: Plan, console: Console) -> None:
    for row in plan.shortages:
        console.print(
            f"[bold red]unmet[/] {escape(asked_by(row))}: {figure(row.requests_per_s)} requests/s",
            soft_wrap=True,
        )


def _unmet(plan: Plan) -> str:
    """What is unmet where most is, and how much of it another plan might serve, to follow the cost."""
    at_moment: dict[MomentKey, float] = defaultdict(float)
    for row in plan.shortages:
        at_moment[row.moment_key] += row.requests_per_s
    most = "up to " if len(at_moment) > 1 else ""
    text = f"[bold red]{most}{figure(max(at_moment.values()))} requests/s unmet[/]"
    if plan.goal is not None and plan.goal.objective == "served":
        # The bound on what is served follows with the goal.
        return text
    gap = max((each.gap for each in plan.shortage_gaps), default=0.0)
    return f"{text} ({how_sure_all_unmet(gap)})"


def _goal(goal: StatedGoal) -> str:
    """A goal other than TCO with its own gap: `energy 123,400 kWh, gap 0.20% (lower bound ...)`."""
    side = "upper" if goal.objective == "served" else "lower"
    # Of accelerators, the unit says what is counted.
    unit = "" if goal.unit == goal.objective else f" {goal.unit}"
    reached = f"{goal.objective} [bold]{figure(goal.value)}[/]{unit}"
    return f"{reached}, gap {percent(goal.gap)} ({side} bound {figure(goal.bound)})"


def _ended(plan: Plan) -> str:
    """Why the search ended and after how long; what came before it had a part of the time limit."""
    said = status_text(plan)
    ended = f"{said} after {plan.solve.wall_s:.1f} s of search"
    return f"{ended}, of {plan.provenance.time_limit_s:g} s in all" if said == _STOPPED else ended
