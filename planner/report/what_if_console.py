"""Print the answers of `plan stress`, `plan alternatives` and `plan pareto` as text and figures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from fleetplan.fleet.figures import figure, money, money_range, percent, signed_money
from fleetplan.planner.drawing import new_figure
from fleetplan.planner.plan import Plan
from fleetplan.planner.questions.alternatives import Alternative
from fleetplan.planner.questions.pareto import MINIMISED, ParetoPoint
from fleetplan.planner.questions.stress import BrokenTarget, StressOutcome

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BROKEN_SHOWN = 4
"""Largest broken promises printed for each case."""

LARGER_UNITS = {"kWh": "MWh", "kg": "t"}
"""Units of a thousand smaller units."""


def print_stress(
    plan: Plan, found: Sequence[StressOutcome], left_out: Sequence[str], console: Console
) -> None:
    """Print one line per case: unserved demand on the plan's hardware, and the cost of serving everything.

    Then print the cases that do not apply, with the reason.
    """
    console.print(f"{plan.fleet}: TCO {money(plan.objective_usd)} as planned", markup=False)
    table = Table(box=None, pad_edge=False)
    table.add_column("case")
    table.add_column("unserved on the plan's hardware", overflow="fold")
    table.add_column("extra cost of serving everything", overflow="fold")
    for outcome in found:
        table.add_row(escape(outcome.case.name), escape(_broken_text(outcome.broken)), escape(_cost(outcome)))
    console.print(table)
    if left_out:
        console.print(f"Not applicable: {'; '.join(left_out)}", markup=False)


def stress_text(outcome: StressOutcome) -> str:
    """Return one line for a case and its answer."""
    return f"{outcome.case.name}: unserved {_broken_text(outcome.broken)}; cost {_cost(outcome)}"


def _broken_text(broken: tuple[BrokenTarget, ...] | None) -> str:
    if broken is None:
        return "undecided within the time limit"
    if not broken:
        return "nothing"
    lines = [
        f"{row.service} in {row.region} {row.period}: "
        f"{figure(row.unserved)} of {figure(row.asked)} requests/s"
        for row in broken[:BROKEN_SHOWN]
    ]
    more = f"; and {len(broken) - BROKEN_SHOWN} more" if len(broken) > BROKEN_SHOWN else ""
    return "; ".join(lines) + more


def _cost(outcome: StressOutcome) -> str:
    if outcome.least_usd is None or outcome.most_usd is None:
        return "; ".join(outcome.reasons) or "no plan serves everything"
    return money_range(outcome.least_usd, outcome.most_usd, signed=True)


def print_alternatives(
    plan: Plan, found: Sequence[Alternative], within_ratio: float, console: Console
) -> None:
    """Print one line per alternative: its figure and its cost."""
    console.print(f"{plan.fleet}: TCO {money(plan.objective_usd)}; up to {percent(within_ratio)} more:")
    for each in found:
        console.print(f"  {alternative_text(plan, each)}", markup=False, soft_wrap=True)


def alternative_text(plan: Plan, each: Alternative) -> str:
    """Return one line for an alternative: its figure and its cost."""
    if each.usd is None:
        none = "proven that none is better" if each.proven else "no better plan found"
        return f"{each.name}: {none}; {each.figure}"
    more = each.usd - plan.objective_usd
    proof = "" if each.proven else ", best found, not proven"
    share = f", {percent(more / abs(plan.objective_usd))}" if plan.objective_usd else ""
    return f"{each.name}: {each.figure}; TCO {money(each.usd)} ({signed_money(more)}{share}){proof}"


COLUMNS: Final = {"latency": "limits", "headroom": "headroom added"}
"""Column names of figures that are not minimised."""


def pareto_text(point: ParetoPoint) -> str:
    """Return one line for a point: its constraint and its figures."""
    if point.usd is None:
        return f"{point.asked}: no plan"
    value = "" if point.value is None else f", {quantity(point.value, point.unit)}"
    return f"{point.asked}: TCO {money(point.usd)}{value}"


def print_pareto(points: Sequence[ParetoPoint], against: str, console: Console) -> None:
    """Print one line per point."""
    table = Table(box=None, pad_edge=False)
    table.add_column("constraint")
    names = ["TCO", "lower bound", COLUMNS.get(against, against)]
    if against in MINIMISED:
        names.append("lower bound")
    for name in names:
        table.add_column(name, justify="right")
    for point in points:
        if point.usd is None:
            table.add_row(point.asked, "no plan", "", "", *([""] if against in MINIMISED else []))
            continue
        value = "" if point.value is None else quantity(point.value, point.unit)
        least = "" if point.proven_value is None else quantity(point.proven_value, point.unit)
        # A point that repeats the best plan of another point has no proof.
        bound = "" if point.bound_usd is None else money(point.bound_usd)
        row = [point.asked, money(point.usd), bound, value]
        table.add_row(*row, *([least] if against in MINIMISED else []))
    console.print(table)


def quantity(value: float, unit: str) -> str:
    """Return an amount with its unit; from 1000 kWh or kg on, in MWh or t."""
    larger = LARGER_UNITS.get(unit)
    if larger is None or abs(value) < 1000.0:
        return f"{figure(value)} {unit}"
    return f"{figure(value / 1000.0)} {larger}"


def pareto_figure(points: Sequence[ParetoPoint], against: str) -> Figure:
    """Return a figure of the TCO over the other quantity, shaded down to the lower bound."""
    figure, (axes,) = new_figure(1)
    solved = sorted(
        (point.value, point.usd, point.usd if point.bound_usd is None else point.bound_usd)
        for point in points
        if point.value is not None and point.usd is not None
    )
    values = [value for value, _, _ in solved]
    axes.plot(values, [usd / 1e3 for _, usd, _ in solved], marker="o")
    axes.fill_between(
        values, [bound / 1e3 for _, _, bound in solved], [usd / 1e3 for _, usd, _ in solved], alpha=0.2
    )
    axes.set_xlabel(f"{COLUMNS.get(against, against)} [{points[0].unit}]")
    axes.set_ylabel("TCO over the horizon [k USD], shaded down to the bound")
    return figure
