"""Print the shortages of an infeasible fleet on one screen."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape

from fleetplan.planner.plan import Infeasible, Shortage
from fleetplan.planner.report.brief_console import MOST_LISTED
from fleetplan.planner.report.decision import DEFAULT_REGION, asked_by


def print_infeasible(outcome: Infeasible, full: bool, console: Console) -> None:
    """Print each shortage, its size, and the capacity that would remove it.

    Parameters
    ----------
    outcome : Infeasible
        Proof of infeasibility with its shortages.
    full : bool
        Whether to print every shortage instead of the largest one per service and reason.
    console : Console
        Output console.
    """
    console.print(f"[bold red]{escape(outcome.fleet)} cannot be served[/]: proven infeasible.")
    each = full or len(outcome.shortages) <= MOST_LISTED
    alike: dict[object, list[Shortage]] = defaultdict(list)
    for number, row in enumerate(outcome.shortages):
        alike[number if each else (row.service, row.reason)].append(row)
    for rows in alike.values():
        _print_shortages(rows, console)
    if len(alike) < len(outcome.shortages):
        console.print(
            f"All {len(outcome.shortages)} shortages: `plan solve --full`, plan.json and report of `--out`"
        )
    if outcome.more_short:
        console.print(f"  {outcome.more_short}")


def _print_shortages(rows: Sequence[Shortage], console: Console) -> None:
    """Print the largest of several shortages of a service for the same reason, and their number."""
    most = max(rows, key=lambda row: row.unmet_requests_per_s)
    regions = ", ".join(dict.fromkeys(row.region for row in rows if row.region != DEFAULT_REGION))
    place = f" in {escape(regions)}" if regions else ""
    others = f" ({len(rows)} shortages for this reason{place})" if len(rows) > 1 else ""
    console.print(f"  {escape(asked_by(most))}: {escape(most.what_is_missing)}{others}", soft_wrap=True)
    if most.would_take:
        console.print(f"    additional capacity needed: {escape(most.would_take)}")
