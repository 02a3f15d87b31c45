"""Run `plan track`: compare a plan with measurements, and write and solve the next fleet."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

import pandas as pd
from rich.console import Console

from fleetplan.fleet.document import read_document
from fleetplan.fleet.errors import InputError, Issue
from fleetplan.fleet.figures import shown_in
from fleetplan.fleet.files import FileNotWrittenError, write_whole, written_together
from fleetplan.fleet.input_files import read_text
from fleetplan.planner.cells import csv_text
from fleetplan.planner.commands.actuals_sources import MeasuredSources, actuals_of
from fleetplan.planner.commands.fleet_file import write_fleet_file
from fleetplan.planner.commands.solve import solve
from fleetplan.planner.commands.terminal import console, echo_json, say_written
from fleetplan.planner.plan import Plan, currency_of, read_plan
from fleetplan.planner.questions.loaded_plan import read_asked_plan
from fleetplan.planner.questions.track import TrackReport, VarianceFinding, next_fleet, track
from fleetplan.planner.report.html.track_page import TRACK_PAGE, track_page
from fleetplan.planner.report.track_console import print_track
from fleetplan.scenarios.expand import expand


@dataclass(frozen=True, slots=True)
class NextPlan:
    """Options of the next plan.

    Attributes
    ----------
    file : Path or None
        Fleet file to write.
    solve_into : Path or None
        Output folder of its plan.
    fleet_file : Path or None
        Current path of the plan's fleet file; None for the path in the plan.
    time_limit_s : float
        Time limit of the solve. [s]
    gap : str
        Optimality gap of the solve.
    force : bool
        Whether to replace an existing file.
    """

    file: Path | None
    solve_into: Path | None
    fleet_file: Path | None
    time_limit_s: float
    gap: str
    force: bool


def run_track(
    plan_file: Path,
    sources: MeasuredSources,
    out: Path | None,
    following: NextPlan,
    *,
    as_json: bool,
    errors: Console,
) -> None:
    """Print and write the comparison, then write and solve the next fleet if requested.

    Raises
    ------
    InputError
        A file is unreadable, or a row does not belong to the plan.
    """
    if following.solve_into is not None and following.file is None:
        hint = "add --next FLEET.yaml, the file to plan"
        raise InputError([Issue("--solve", 0, 0, "", "needs the name of the next fleet file", hint)])
    plan = read_plan(plan_file)
    report = track(plan, actuals_of(sources, plan, errors))
    # Check everything that can fail before writing anything.
    if following.file is not None:
        text = _next_text(plan_file, plan, report, following.file, following.fleet_file)
        write_fleet_file(following.file, text, over=following.force)
        say_written(errors, following.file)
    with shown_in(currency_of(plan)):
        if out is not None:
            _write(report, out)
            say_written(errors, out / TRACK_PAGE)
        if as_json:
            echo_json(_as_json(report))
        else:
            print_track(report, console())
    if following.file is not None and following.solve_into is not None:
        solve(
            following.file,
            out=following.solve_into,
            time_limit=following.time_limit_s,
            gap=following.gap,
            baseline=plan_file,
        )


def _next_text(
    plan_file: Path, plan: Plan, report: TrackReport, next_file: Path, fleet_file: Path | None
) -> str:
    """Return the text of the next fleet file, for a path."""
    asked = read_asked_plan(plan_file, fleet_file)
    path = Path(asked.fleet.path)
    document = expand(read_document(path), plan.provenance.scenarios, plan.provenance.assignments)
    return next_fleet(document, read_text(path), asked.fleet, plan, report, next_file.parent)


def _write(report: TrackReport, folder: Path) -> None:
    columns = list(VarianceFinding.__dataclass_fields__)
    table = pd.DataFrame([asdict(each) for each in report.findings], columns=columns)
    try:
        with written_together(folder) as parts:
            write_whole(parts / "track.json", _as_json(report) + "\n")
            write_whole(parts / "findings.csv", csv_text(table))
            write_whole(parts / TRACK_PAGE, track_page(report))
    except FileNotWrittenError as error:
        message = f"cannot be written: {error.strerror}"
        raise InputError([Issue(str(folder), 0, 0, "--out", message)]) from error


def _as_json(report: TrackReport) -> str:
    return json.dumps(asdict(report), indent=2)
