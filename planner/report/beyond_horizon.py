"""Describe obligations and book values after the horizon, and the supply options of each pool."""

from __future__ import annotations

from collections import defaultdict
from typing import Final

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from fleetplan.fleet.figures import counted, currency_code, figure, in_shown, money
from fleetplan.fleet.inventory.periods import DEFAULT_PERIOD, kind_of_name
from fleetplan.planner.plan import Plan, SupplyOption

QUARTERS_NAMED: Final = 4
"""Quarters listed individually; the sentence adds up later ones."""

LEAST_WIDTH: Final = 100
"""Minimum terminal width for the optional columns of tables. [columns]"""

KINDS: Final = {"lease": "leases", "term": "rent terms", "loan": "loans"}


def owed_by_quarter(plan: Plan) -> dict[str, dict[str, float]]:
    """Return the amounts owed after the horizon by quarter and kind, in chronological order. [USD]"""
    found: dict[str, dict[str, float]] = {}
    for row in plan.commitments:
        by_kind = found.setdefault(row.quarter, defaultdict(float))
        by_kind[row.kind] += row.usd
    return found


def beyond_the_horizon(plan: Plan) -> str:
    """Return one sentence on the amounts owed after the horizon and the book value of owned hosts."""
    parts = []
    owed = {quarter: sum(by_kind.values()) for quarter, by_kind in owed_by_quarter(plan).items()}
    if owed:
        named = [f"{quarter} {money(usd)}" for quarter, usd in list(owed.items())[:QUARTERS_NAMED]]
        later = list(owed.values())[QUARTERS_NAMED:]
        named += [f"later {money(sum(later))}"] if later else []
        kinds = ", ".join(
            text for kind, text in KINDS.items() if any(r.kind == kind for r in plan.commitments)
        )
        parts.append(f"{money(sum(owed.values()))} owed for {kinds} ({', '.join(named)})")
    if plan.remaining_values:
        book = sum(row.book_usd or 0.0 for row in plan.remaining_values)
        unknown = sum(row.hosts for row in plan.remaining_values if row.book_usd is None)
        hosts = counted(unknown, "host")
        dated = kind_of_name(plan.periods[0]) is not None
        why = "in_service is not stated" if dated else "the periods have no dates"
        apart = f"{hosts} of unknown age ({why})" if unknown else ""
        if unknown < sum(row.hosts for row in plan.remaining_values):
            apart = f", without {apart}" if unknown else ""
            parts.append(f"owned hosts are worth {money(book)} in the books{apart}")
        else:
            parts.append(f"the book value of {apart} is unknown")
    return "; ".join(parts)


def break_even(row: SupplyOption) -> str:
    """Return the break-even point of a supply option in words, or an empty string without an alternative."""
    if row.break_even_resale_usd is not None:
        if row.break_even_resale_usd <= 0:
            return "saves without a sale"
        return f"pays from a sale of {money(row.break_even_resale_usd)} a host"
    if not row.against:
        return ""
    if row.break_even_quarters is None:
        return f"{row.against} is cheaper to run"
    return f"{counted(row.break_even_quarters, 'quarter')} of use against {row.against}"


def print_beyond_the_horizon(plan: Plan, console: Console) -> None:
    """Print the sentence on the time after the horizon, unless nothing is owed and no host is owned."""
    text = beyond_the_horizon(plan)
    if text:
        last = plan.stated_periods[-1]
        after = "After the plan" if last == DEFAULT_PERIOD else f"After {escape(last)}"
        console.print(f"[bold]{after}[/]: {escape(text)}")


def print_options(plan: Plan, console: Console) -> None:
    """Print the supply options of each pool, unless there is only one option."""
    if len(plan.supply_options) < 2:
        return
    table = Table(title="Buy, rent, keep or retire", box=None, pad_edge=False, title_justify="left")
    several = len(plan.periods) > 1
    # Pool names already contain the offer names.
    offers = console.width >= LEAST_WIDTH
    for name in ("pool", "option", *(["offer"] if offers else []), *(["cheapest in"] if several else [])):
        table.add_column(name, overflow="fold")
    for name in ("units", f"{currency_code()}/accelerator-h"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("break-even", overflow="fold")
    for row in plan.supply_options:
        table.add_row(
            escape(row.pool),
            row.option,
            *([escape(row.offer)] if offers else []),
            *([escape(row.period)] if several else []),
            str(row.units),
            figure(in_shown(row.usd_per_accelerator_hour), 3),
            escape(break_even(row)),
        )
    console.print(table)
