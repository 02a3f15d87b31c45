"""Print the differences of two plans for `plan diff`, one line per change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from fleetplan.fleet.figures import figure, money, signed_money
from fleetplan.planner.questions.diff import Action, CostChange, DiffSubject, FigureChange, PlanDiff

COLOURS: Final = {Action.ADD: "green", Action.CHANGE: "yellow", Action.REMOVE: "red"}
"""Colour of each action."""

TITLES: Final = {
    DiffSubject.PLACEMENT: "Placements",
    DiffSubject.PURCHASE: "Purchases and rentals",
    DiffSubject.RETIREMENT: "Retirements",
    DiffSubject.POOL: "Pools",
    DiffSubject.UNMET: "Unmet demand",
}
"""Heading of the changes of each subject."""


def print_diff(found: PlanDiff, console: Console) -> None:
    """Print notes, counts, the cost by kind and by service, and the changes by subject.

    Parameters
    ----------
    found : PlanDiff
        Differences of the two plans.
    console : Console
        Output console.
    """
    for note in found.notes:
        console.print(f"[yellow]note[/] {escape(note)}")
    if not found.differs:
        console.print("No changes: both plans place, buy and cost the same.")
        return
    console.print(
        f"[bold]Plan:[/] {found.count(Action.ADD)} to add, {found.count(Action.CHANGE)} to change, "
        f"{found.count(Action.REMOVE)} to remove"
    )
    console.print(_total("TCO", found.tco))
    if found.shared is not None:
        console.print(_total(f"Cost of {escape(found.shared.name)}", found.shared))
    kinds = [replace(each, name=each.name.replace("_", " ")) for each in found.cost_by_kind]
    console.print(_costs("By kind of cost", kinds))
    console.print(_costs("By service", found.cost_by_service))
    # Purchases come first; placements, of which there are many, come last.
    for subject in sorted(DiffSubject, key=lambda each: each is DiffSubject.PLACEMENT):
        changes = [change for change in found.changes if change.subject is subject]
        if changes:
            counts = ", ".join(
                f"{found.count(action, subject)} {action.value}"
                for action in Action
                if found.count(action, subject)
            )
            console.print(f"[bold]{TITLES[subject]}[/] ({counts})")
        for change in changes:
            console.print(change_line(change), soft_wrap=True)


def _total(name: str, cost: CostChange) -> str:
    share = f" ({cost.delta_usd / cost.before_usd:+.2%})" if cost.before_usd > 0 else ""
    amounts = f"{money(cost.before_usd)} -> {money(cost.after_usd)}: {signed_money(cost.delta_usd)}{share}"
    return f"[bold]{name}[/] {amounts}"


def change_line(change: FigureChange) -> str:
    """Return a change as markup: sign, period, region, name and figures."""
    if change.action is Action.CHANGE:
        figures = [
            f"{each.name} {figure(each.before, 5)} -> {figure(each.after, 5)}" for each in change.quantities
        ]
    else:
        of_one = "after" if change.action is Action.ADD else "before"
        figures = [f"{each.name} {figure(getattr(each, of_one), 5)}" for each in change.quantities]
    colour = COLOURS[change.action]
    where = escape(f"{change.period} {change.region}: {change.name}")
    return f"  [{colour}]{change.action.value}[/] {where}: {escape(', '.join(figures))}"


def _costs(title: str, costs: Sequence[CostChange]) -> Table:
    table = Table(title=title, box=None, pad_edge=False, title_justify="left")
    table.add_column("", overflow="fold")
    for name in ("before", "after", "change"):
        table.add_column(name, justify="right")
    for cost in costs:
        row = (money(cost.before_usd), money(cost.after_usd), signed_money(cost.delta_usd))
        table.add_row(escape(cost.name), *row)
    return table
