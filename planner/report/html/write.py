"""Write the report next to plan.json."""

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
    """Write report.html and a table of the frontiers it shows, each file in full or not at all.

    Parameters
    ----------
    outcome : Plan or Infeasible
        Plan, or proof of infeasibility.
    folder : Path
        Existing folder.
    frontier : Sequence[FrontierPoint]
        Frontiers of the plan's services.
    baseline : Plan, optional
        Plan in force.

    Returns
    -------
    Path
        Path of report.html.
    """
    if isinstance(outcome, Infeasible):
        return write_whole(folder / REPORT_FILE, infeasible_page(outcome))
    if frontier:
        write_whole(folder / FRONTIER_FILE, csv_text(frontier_table(frontier)))
    return write_whole(folder / REPORT_FILE, report_page(outcome, frontier, baseline))
