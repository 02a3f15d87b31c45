"""Print slices of the day and demand scenarios, and select the rows shown for them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from fleetplan.fleet.figures import figure, money, percent
from fleetplan.planner.plan import UNMET_GAP_RATIO, AtMoment, Plan, PoolUse
from fleetplan.planner.report.common_purchases import purchases_by_scenario

UNMET_AT_MOST: Final = (
    "At most: other placements may serve more; their search ended without a proof. "
    "A longer --time-limit narrows it."
)
"""Note below figures of unmet demand that are not proven minimal."""


def unproven(unmet_gap: float | None) -> bool:
    """Return whether other placements might serve part of the unmet demand; a gap of None is not stated."""
    return unmet_gap is not None and unmet_gap > UNMET_GAP_RATIO


def likeliest(plan: Plan) -> str | None:
    """Return the demand scenario with the highest probability, or None if demand is certain."""
    scenarios = sorted(plan.demand_scenarios, key=lambda row: -row.probability)
    return scenarios[0].name if scenarios else None


def probability(plan: Plan, scenario: str | None) -> float:
    """Return the probability of a demand scenario; 1 if demand is certain."""
    return next((row.probability for row in plan.demand_scenarios if row.name == scenario), 1.0)


def has_slices(rows: Iterable[AtMoment]) -> bool:
    """Return whether the rows distinguish slices of the day."""
    return any(row.slice is not None for row in rows)


def pool_lines(plan: Plan) -> list[tuple[PoolUse, str, str, float, float]]:
    """Return one line per pool and period: a row of it, likeliest use by slice, and costs.

    Returns
    -------
    list[tuple[PoolUse, str, str, float, float]]
        A row with the pool's accelerators, used accelerators and utilisation by slice, the expected cost, and
        the idle part of that cost. [USD]
    """
    shown = likeliest(plan)
    groups: dict[tuple[str, str], list[PoolUse]] = defaultdict(list)
    for row in plan.pools:
        groups[row.period, row.pool].append(row)
    lines = []
    for rows in groups.values():
        here = [row for row in rows if row.scenario == shown]
        lines.append(
            (
                max(here, key=lambda row: row.reserve_accelerators),
                " / ".join(str(row.used_accelerators) for row in here),
                " / ".join(f"{row.utilisation:.0%}" for row in here),
                sum(row.usd for row in rows),
                sum(row.idle_usd for row in rows),
            )
        )
    return lines


def print_day(plan: Plan, console: Console) -> None:
    """Print the changes within a day and the slices that do offline work, in the most likely scenario."""
    shown = likeliest(plan)
    slices = [name or "" for name in dict.fromkeys(use.slice for use in plan.pools)]
    for period in plan.periods:
        changes = [row for row in plan.tides if (row.period, row.scenario) == (period, shown)]
        starts: dict[str, int] = defaultdict(int)
        for row in changes:
            starts[row.slice or ""] += max(0, row.accelerators)
        parts = [f"{starts[name]} when {escape(name)} begins" for name in slices if starts[name]]
        if parts:
            usd = sum(row.usd for row in plan.tides if row.period == period)
            console.print(
                f"[bold]Daily changes[/] {escape(period)}, accelerators that start: "
                f"{', '.join(parts)} ({money(usd)})"
            )
    work = [row for row in plan.offline_work if row.scenario == shown]
    for service, period in dict.fromkeys((row.service, row.period) for row in work):
        own = [each for each in work if (each.service, each.period) == (service, period)]
        put_off = sum(each.requests_per_day for each in own if each.arises_in != each.slice)
        done: dict[str, float] = defaultdict(float)
        for each in own:
            done[each.slice or ""] += each.requests_per_day
        # Slices of weekdays and weekends belong to different days, so there is no total.
        parts = [f"{done[name]:,.0f} in {escape(name or 'the day')}" for name in slices if name in done]
        console.print(
            f"[bold]Offline[/] {escape(service)} {escape(period)}, requests a day: {', '.join(parts)}; "
            f"{f'{put_off:,.0f}' if put_off else 'none'} of them deferred"
        )


def print_scenarios(plan: Plan, console: Console) -> None:
    """Print the plan's cost in each demand scenario, and the cost of purchases made for another scenario."""
    if not plan.demand_scenarios:
        return
    table = Table(
        title=f"Demand scenarios (planned for the {_objective(plan)})",
        box=None,
        pad_edge=False,
        title_justify="left",
    )
    table.add_column("")
    for row in plan.demand_scenarios:
        table.add_column(f"{escape(row.name)} ({percent(row.probability)})", justify="right")
    own = [_outcome(row.usd, row.unmet_requests_per_s) for row in plan.demand_scenarios]
    table.add_row("this plan", *own)
    best = [
        ""
        if row.best_usd is None
        else _outcome(row.best_usd, row.best_unmet_requests_per_s or 0.0, row.best_unmet_gap)
        for row in plan.demand_scenarios
    ]
    if any(best):
        table.add_row("best plan for it alone", *best)
        table.add_row("regret", *_regrets(plan))
    known = {(row.planned_for, row.turns_out): row for row in plan.wrong_forecasts}
    for planned in plan.demand_scenarios if known else ():
        cells = []
        for turns_out in plan.demand_scenarios:
            wrong = known.get((planned.name, turns_out.name))
            found = wrong is not None and wrong.usd is not None
            cells.append(
                _outcome(wrong.usd or 0.0, wrong.unmet_requests_per_s or 0.0, wrong.unmet_gap)
                if wrong and found
                else ""
            )
        cells[list(plan.demand_scenarios).index(planned)] = best[list(plan.demand_scenarios).index(planned)]
        table.add_row(f"purchases made for {escape(planned.name)}", *cells)
    console.print(table)
    gaps = [row.unmet_gap for row in plan.wrong_forecasts]
    if any(map(unproven, [*gaps, *(row.best_unmet_gap for row in plan.demand_scenarios)])):
        console.print(UNMET_AT_MOST)
    _print_purchases(plan, console)


def _print_purchases(plan: Plan, console: Console) -> None:
    """Print the plan's purchases next to those of the best plan for each scenario."""
    rows = purchases_by_scenario(plan)
    if not rows:
        return
    title = "Purchases and rentals in units: this plan and the best plan for each scenario"
    table = Table(title=title, box=None, pad_edge=False, title_justify="left")
    for name in ("period", "offer", "pool"):
        table.add_column(name, overflow="fold")
    for name in ("this plan", *(escape(row.name) for row in plan.demand_scenarios), "in all"):
        table.add_column(name, justify="right")
    for row in rows:
        cells = (row.planned, *row.alone, row.sure)
        table.add_row(escape(row.period), escape(row.offer), escape(row.pool), *map(str, cells))
    console.print(table)


def _objective(plan: Plan) -> str:
    return plan.demand_objective.replace("-", " ")


def _regrets(plan: Plan) -> Sequence[str]:
    cells = []
    for row in plan.demand_scenarios:
        at_most = "" if row.regret_at_most_usd is None else f" (at most {money(row.regret_at_most_usd)})"
        cells.append("" if row.regret_usd is None else f"{money(row.regret_usd)}{at_most}")
    return cells


def _outcome(usd: float, unmet_requests_per_s: float, unmet_gap: float | None = None) -> str:
    at_most = "at most " if unproven(unmet_gap) else ""
    unmet = (
        f", {at_most}{figure(unmet_requests_per_s)} req/s unmet on average"
        if unmet_requests_per_s > 0
        else ""
    )
    return f"{money(usd)}{unmet}"
