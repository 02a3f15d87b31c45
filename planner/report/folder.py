"""Write the output folder of `plan solve --out`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from fleetplan.fleet.errors import InputError, Issue
from fleetplan.fleet.files import FileNotWrittenError, write_whole, written_together
from fleetplan.fleet.inventory import Fleet
from fleetplan.planner.export.files import write_plan
from fleetplan.planner.plan import Infeasible, Plan


def write_folder(
    outcome: Plan | Infeasible,
    folder: Path,
    fleet: Fleet,
    baseline: Plan | None,
    announce: Callable[[str], None],
) -> None:
    """Write plan.json, its tables and the report, plus the workbook of a plan: all of them or none.

    Parameters
    ----------
    outcome : Plan or Infeasible
        Plan, or proof of infeasibility.
    folder : Path
        Output folder; created if it does not exist.
    fleet : Fleet
        Fleet of the plan, for the frontiers of its services.
    baseline : Plan or None
        The plan in force.
    announce : callable
        Receives a message about each written file.

    Raises
    ------
    InputError
        The folder cannot be written to.
    """
    try:
        with written_together(folder) as parts:
            write_plan(outcome, parts)
            _write_documents(outcome, parts, fleet, baseline)
    except FileNotWrittenError as error:
        raise InputError(
            [Issue(str(folder), 0, 0, "--out", f"cannot be written: {error.strerror}")]
        ) from error
    announce(f"written to {folder}/plan.json")
    announce(f"written to {folder}/report.html")
    if isinstance(outcome, Plan):
        announce(f"written to {folder}/plan.xlsx")


def _write_documents(outcome: Plan | Infeasible, folder: Path, fleet: Fleet, baseline: Plan | None) -> None:
    # Templates and figures take 0.5 s to import; `plan solve` without a folder needs neither.
    from fleetplan.planner.export.workbook import WORKBOOK_FILE, workbook  # noqa: PLC0415
    from fleetplan.planner.landscape.frontier_cache import kept_frontier_points  # noqa: PLC0415
    from fleetplan.planner.report.html.service_views import largest_services  # noqa: PLC0415
    from fleetplan.planner.report.html.write import write_report  # noqa: PLC0415

    shown = () if isinstance(outcome, Infeasible) else largest_services(outcome)
    points = kept_frontier_points(fleet, shown)
    write_report(outcome, folder, points, baseline)
    if isinstance(outcome, Plan):
        write_whole(folder / WORKBOOK_FILE, workbook(outcome))
