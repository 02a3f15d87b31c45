"""`plan report`, `plan export` and `plan dump`: write files for other people and tools."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fleetplan.planner.commands.shared import (
    Assignments,
    EvaluationLimit,
    FleetFile,
    Scenarios,
    load,
    output_folder,
    page_file,
    time_for_candidates,
)
from fleetplan.planner.commands.terminal import console, progress, say_written

FORMAT_NAMES = (
    "launch", "dynamo", "llm-d", "lws", "kueue", "karpenter", "gke", "node-pools", "purchases", "workbook",
)  # fmt: skip
"""Formats of `plan export`; a test compares them with the implemented ones."""


def _formats(incomplete: str) -> list[str]:
    return [name for name in FORMAT_NAMES if name.startswith(incomplete)]


PlanFile = Annotated[Path, typer.Argument(help="the plan", metavar="PLAN.json", show_default=False)]


def report(
    plan_file: PlanFile,
    out: Annotated[
        Path | None,
        typer.Option(
            help="output (default: report.html beside the plan)", metavar="FILE.html", callback=page_file
        ),
    ] = None,
    baseline: Annotated[
        Path | None, typer.Option(help="the plan in force, for comparison", metavar="PLAN.json")
    ] = None,
) -> None:
    """Write the report of a plan as one HTML page.

    The page needs no other file. Infeasible fleets have a report too.

    Frontiers come from frontiers.csv beside the plan, which `plan solve --out` writes.

    Example: plan report out/plan.json --baseline last-quarter/plan.json
    """
    from fleetplan.planner.export.new_file import write_new
    from fleetplan.planner.landscape.frontier_points import FRONTIER_FILE, read_frontier
    from fleetplan.planner.plan import Infeasible, read_outcome, read_plan
    from fleetplan.planner.report.html.page import REPORT_FILE, infeasible_page, report_page

    outcome = read_outcome(plan_file)
    in_force = None if baseline is None else read_plan(baseline)
    if isinstance(outcome, Infeasible):
        page = infeasible_page(outcome)
    else:
        page = report_page(outcome, read_frontier(plan_file.with_name(FRONTIER_FILE)), in_force)
    target = plan_file.with_name(REPORT_FILE) if out is None else out
    write_new(target, page, over=True)
    say_written(console(stderr=True), target)


def export(
    plan_file: PlanFile,
    form: Annotated[
        str,
        typer.Option("--as", help="output format", metavar="|".join(FORMAT_NAMES), autocompletion=_formats),
    ],
    out: Annotated[Path, typer.Option(help="folder for the files", metavar="DIR", callback=output_folder)],
    period: Annotated[
        str | None, typer.Option(help="a period of the plan (default: the first; node pools: all)")
    ] = None,
    framework: Annotated[
        str | None, typer.Option(help="launch: vllm, sglang or trtllm (default: that of each service)")
    ] = None,
    location: Annotated[
        list[str] | None,
        typer.Option(
            help="gke: Google Cloud location of a region of the plan; repeatable", metavar="REGION=LOCATION"
        ),
    ] = None,
) -> None:
    """Write launch commands, manifests or the workbook.

    Formats include Kubernetes manifests, node pools and purchase lists.

    Placements and pools that a format cannot express are listed with the reason.

    Examples: plan export out/plan.json --as launch --out launch;
    plan export out/plan.json --as dynamo --period 2027Q1 --out manifests;
    plan export out/plan.json --as gke --location us-east=us-east4 --out nodes
    """
    from fleetplan.planner.commands.run_launch import asked_of, run_export
    from fleetplan.planner.plan import read_plan

    asked = asked_of(period, framework, location or ())
    run_export(read_plan(plan_file), form, out, asked, console(stderr=True))


def dump(
    fleet_file: FleetFile,
    out: Annotated[Path, typer.Option(help="folder for the tables", metavar="DIR", callback=output_folder)],
    scenario: Scenarios = None,
    assignment: Assignments = None,
    time_limit: EvaluationLimit = None,
) -> None:
    """Write the solver's input as CSV tables and text.

    Nothing is solved.

    Example: plan dump fleet.yaml --out tables
    """
    from fleetplan.planner.export.dump import write_dump

    errors = console(stderr=True)
    fleet = load(fleet_file, scenario, assignment, errors)
    with time_for_candidates(time_limit) as late:
        paths = write_dump(fleet, out, progress(errors), late)
    for path in paths:
        say_written(errors, path)
