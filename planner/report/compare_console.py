"""Print a plan next to its counterfactuals: TCO, saving and differences."""

from __future__ import annotations

from typing import Final

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from fleetplan.fleet.figures import counted, money, money_range, percent, signed_money
from fleetplan.planner.plan import Plan, most_at_once
from fleetplan.planner.questions.comparison import Compared, OptionResult, Saving
from fleetplan.planner.questions.diff import Action, PlanDiff
from fleetplan.planner.report.diff_console import change_line
from fleetplan.planner.units import gap_of_cost

LINES_SHOWN: Final = 6
"""Changes printed for each counterfactual, most accelerators first; a count replaces the rest."""

REASONS_SHOWN: Final = 4
"""Lines of reasons printed for an infeasible option; a count replaces the rest."""


def print_comparison(plan: Plan, rows: tuple[Compared, ...], console: Console) -> None:
    """Print a table of the plan and its counterfactuals, then the details of each counterfactual.

    Parameters
    ----------
    plan : Plan
        The plan of the fleet.
    rows : tuple[Compared, ...]
        Counterfactuals of the plan.
    console : Console
        Output console.
    """
    table = Table(title=f"{escape(plan.fleet)} compared with", box=None, pad_edge=False, title_justify="left")
    table.add_column("fleet", overflow="fold")
    for name in ("TCO", "lower bound", "gap", "saving", "at least", "at most"):
        table.add_column(name, justify="right")
    table.add_row("the plan", money(plan.objective_usd), money(plan.bound_usd), percent(plan.gap), "", "", "")
    for row in rows:
        table.add_row(*_cells(row))
    console.print(table)
    for row in rows:
        _print_one(plan, row, console)


def compared_text(row: Compared) -> str:
    """Return one line for a counterfactual: its TCO and the saving of the plan."""
    if row.chosen is None or row.chosen.plan is None:
        state = "infeasible" if all(trial.infeasible for trial in row.trials) else "no plan"
        return f"against {row.name}: {state}"
    tco = f"against {row.name}: TCO {money(row.chosen.plan.objective_usd)}"
    if row.saving is None:
        return f"{tco}, not comparable"
    return f"{tco}, the plan saves {money_range(row.saving.least_usd, row.saving.most_usd)}"


def _cells(row: Compared) -> tuple[str, ...]:
    name = escape(
        row.name if row.chosen is None or not row.chosen.label else f"{row.name} ({row.chosen.label})"
    )
    if row.chosen is None or row.chosen.plan is None or row.bound_usd is None:
        state = (
            "infeasible" if all(trial.infeasible for trial in row.trials) else "no plan within the time limit"
        )
        return name, f"[red]{state}[/]", "", "", "", "", ""
    usd = row.chosen.plan.objective_usd
    gap = gap_of_cost(usd, row.bound_usd)
    saving = ("not comparable", "", "") if row.saving is None else _saving(row.saving)
    return name, money(usd), money(row.bound_usd), percent(gap), *saving


def _saving(saving: Saving) -> tuple[str, str, str]:
    amounts = (saving.usd, saving.least_usd, saving.most_usd)
    first, least, most = (f"{signed_money(usd)} ({saving.ratio(usd):+.1%})" for usd in amounts)
    return first, least, most


def _print_one(plan: Plan, row: Compared, console: Console) -> None:
    console.print(f"\n[bold]{escape(row.name)}[/]: {escape(row.definition)}", soft_wrap=True)
    for note in row.notes:
        console.print(f"  [yellow]note[/] {escape(note)}", soft_wrap=True)
    for trial in row.trials:
        label = f"{trial.label}: " if trial.label else ""
        if trial.plan is not None:
            if len(row.trials) > 1:
                console.print(f"  {escape(label)}{_trial_usd(trial, trial.plan)}")
            continue
        state = "proven infeasible" if trial.infeasible else "undecided"
        console.print(f"  {escape(label)}[red]{state}[/]", soft_wrap=True)
        for reason in trial.reasons[:REASONS_SHOWN]:
            console.print(f"    {escape(reason)}", soft_wrap=True)
        if len(trial.reasons) > REASONS_SHOWN:
            console.print(f"    and {len(trial.reasons) - REASONS_SHOWN} more")
    if row.stranded_usd > 0 and row.chosen is not None and row.chosen.plan is not None:
        rest = money(row.chosen.plan.objective_usd - row.stranded_usd)
        console.print(
            f"  of its TCO {money(row.stranded_usd)} pays for owned or rented hardware that runs nothing; "
            f"without it the TCO would be {rest}",
            soft_wrap=True,
        )
    if row.saving is not None and not row.saving.proven and not row.saving.nothing:
        console.print("  the optimality gaps overlap, so either may be cheaper; try a smaller --gap")
    if row.difference is not None and row.chosen is not None and row.chosen.plan is not None:
        _print_difference(plan, row.chosen.plan, row.difference, console)


def _trial_usd(trial: OptionResult, plan: Plan) -> str:
    """Return the TCO of an option; for one that another option beats for certain, the range of its TCO."""
    if not trial.dearer:
        return money(plan.objective_usd)
    return f"{money(plan.bound_usd)} to {money(plan.objective_usd)}, dearer than the cheapest"


def _print_difference(plan: Plan, other: Plan, found: PlanDiff, console: Console) -> None:
    """Print how the plan differs: accelerators in use, and the largest changes."""
    ours, theirs = (most_at_once(each.placements, lambda row: row.hardware) for each in (plan, other))
    numbers = {name: (theirs.get(name, 0), ours.get(name, 0)) for name in sorted({*ours, *theirs})}
    changed = [f"{name} {before} -> {after}" for name, (before, after) in numbers.items() if before != after]
    if not found.changes:
        console.print("  the plan is the same")
        return
    counts = ", ".join(f"{found.count(action)} {action.value}" for action in Action if found.count(action))
    hardware = f"; accelerators in use: {', '.join(changed)}" if changed else ""
    console.print(f"  differences of the plan: {counts}{escape(hardware)}", soft_wrap=True)
    ordered = sorted(found.changes, key=lambda change: -abs(change.delta("accelerators")))
    for change in ordered[:LINES_SHOWN]:
        console.print(f"  {change_line(change)}", soft_wrap=True)
    if len(ordered) > LINES_SHOWN:
        console.print(
            f"    and {counted(len(ordered) - LINES_SHOWN, 'smaller change')} (--out, then plan diff)"
        )
