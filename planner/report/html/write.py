"""Writes the report beside plan.json."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from fleetplan.fleet.files import write_whole
from fleetplan.planner.cells import csv_text
from fleetplan.planner.landscape.frontier_points import FRONTIER_FILE, FrontierPoint, frontier_table
from fleetplan.planner.plan import Infeasible, Plan
from fleetplan.planner.report.html.page import REPORT_FILE, infeasible_page, report_page


def write_report(
    outcome: Plan | Infeasible,
    folder: Path,
    frontier: Sequence[FrontierPoint] = (),
    baseline: Plan | None = None,
) -> Path:
    """Write report.html, and the frontiers that it shows as a table, each whole or not at all.

    Parameters
    ----------
    outcome : Plan or Infeasible
        What was found.
    folder : Path
        It exists.
    frontier : Sequence[FrontierPoint]
        What the plan was chosen from.
    baseline : Plan, optional
        The plan in force.

    Returns
    -------
    Path
        The page.
    """
    if isinstance(outcome, Infeasible):
        return write_whole(folder / REPORT_FILE, infeasible_page(outcome))
    if frontier:
        write_whole(folder / FRONTIER_FILE, csv_text(frontier_table(frontier)))
    return write_whole(folder / REPORT_FILE, report_page(outcome, frontier, baseline))
