"""Run `plan explain --marginal`: print, write and draw marginal values."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from fleetplan.fleet.figures import money, money_range
from fleetplan.planner.commands.many_solves import collected, expected, table_writer
from fleetplan.planner.commands.shared import ExitCode
from fleetplan.planner.drawing import add_legend, drawn_name, new_figure, save
from fleetplan.planner.questions.loaded_plan import LoadedPlan, require_current
from fleetplan.planner.questions.marginal import UnitValue, by_worth, marginal_table, one_more, unit_values
from fleetplan.planner.questions.resolving import Resolver

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INCHES_PER_BAR = 0.28
"""Height of a bar in the plot. [inch]"""


def run_marginal(
    asked: LoadedPlan, resolver: Resolver, plot: Path | None, csv: Path | None, console: Console
) -> ExitCode:
    """Compute the marginal values; return LIMIT if some are not solved.

    Parameters
    ----------
    asked : LoadedPlan
        Plan and its fleet.
    resolver : Resolver
        Solves changed fleets.
    plot, csv : Path or None
        Files to write.
    console : Console
        Console for the table.
    """
    asked = require_current(asked, resolver)
    every = list(one_more(asked.fleet))
    rows, code = collected(
        unit_values(every, asked.plan, asked.fleet, resolver),
        expected(len(every), asked.plan, resolver.limits),
        worth_text,
        table_writer(csv, lambda rows: marginal_table(by_worth(rows))),
    )
    rows = by_worth(rows)
    print_marginal(rows, console)
    if plot is not None:
        save(marginal_figure(rows), plot)
    return code


def worth_text(row: UnitValue) -> str:
    """Return a marginal value in one line."""
    worth = money_range(row.least_usd, row.most_usd, signed=True)
    return f"{row.more.amount_text} of {row.more.name}: {worth}"


def print_marginal(rows: list[UnitValue], console: Console) -> None:
    """Print a table of marginal values; increments proven to have no value share one line."""
    if not rows:
        console.print("The fleet has no limits, so one more unit of any resource has no value.")
        return
    table = Table(title="Value of one more unit", box=None, pad_edge=False, title_justify="left")
    table.add_column("more of", overflow="fold")
    for name in ("amount", "at least", "at most", "price"):
        table.add_column(name, justify="right")
    worthless = []
    for row in rows:
        amount = row.more.amount_text
        if row.most_usd < 1.0:
            worthless.append(f"{amount} of {row.more.name}")
            continue
        price = money(row.price_usd) if row.price_usd else ""
        table.add_row(escape(row.more.name), amount, money(row.least_usd), money(row.most_usd), price)
    if table.row_count:
        console.print(table)
    if worthless:
        console.print(f"No value: {'; '.join(worthless)}", soft_wrap=True, markup=False)
    if any(not row.proven and row.most_usd >= 1.0 for row in rows):
        console.print(
            "A lower limit of $0 means that the optimality gap hides the value; use a smaller --gap"
        )


def marginal_figure(rows: list[UnitValue]) -> Figure:
    """Return a bar chart of the proven values, with the rest of each range."""
    shown = [row for row in rows if row.most_usd >= 1.0][::-1]
    figure, (axes,) = new_figure(1, width=7.0, height=1.2 + INCHES_PER_BAR * len(shown))
    places = range(len(shown))
    axes.barh(places, [row.most_usd for row in shown], color="#c9d4e5", label="at most")
    axes.barh(places, [row.least_usd for row in shown], color="#33558b", label="at least")
    names = [f"{row.more.amount_text} of {row.more.name}" for row in shown]
    axes.set_yticks(places, [drawn_name(name) for name in names])
    axes.set_xlabel("lower TCO over the horizon [USD], excluding the price of the unit itself")
    add_legend(axes, place="lower right", font_size="medium")
    return figure
