"""`plan diff` and `plan compare`: compare plans."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fleetplan.planner.commands.calibrate import CalibrationFile, calibration_assignment
from fleetplan.planner.commands.many_solves import Seed, SolveGap, collected, expected
from fleetplan.planner.commands.shared import (
    Assignments,
    BaselineFile,
    ExitCode,
    FleetFile,
    Scenarios,
    load,
    output_folder,
    page_file,
    ratio,
)
from fleetplan.planner.commands.terminal import console, progress, say_warnings, say_written

if TYPE_CHECKING:
    from rich.console import Console

    from fleetplan.planner.questions.comparison import Comparison


def diff_plans(
    old: Annotated[Path, typer.Argument(help="the earlier plan", metavar="OLD.json")],
    new: Annotated[Path, typer.Argument(help="the later plan", metavar="NEW.json")],
    exit_code: Annotated[bool, typer.Option("--exit-code", help="exit with 5 if they differ")] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            help="page for reviewers: changes, reasons, risks, hashes",
            metavar="FILE.html",
            callback=page_file,
        ),
    ] = None,
    stress: Annotated[
        Path | None,
        typer.Option(help="table of `plan stress --csv` for NEW: its risks on the page", metavar="FILE.csv"),
    ] = None,
) -> None:
    """Show the differences between two plans, with costs.

    Added lines begin with +, changed ones with ~, removed ones with -.

    Example: plan diff last-quarter/plan.json out/plan.json --out review.html
    """
    from fleetplan.fleet.figures import shown_in
    from fleetplan.fleet.files import write_whole
    from fleetplan.planner.plan import currency_of
    from fleetplan.planner.questions.review import review
    from fleetplan.planner.report.diff_console import print_diff

    asked = review(old, new, stress)
    with shown_in(currency_of(asked.new)):
        print_diff(asked.found, console())
        if out is not None:
            from fleetplan.planner.report.html.review_page import review_page

            write_whole(out, review_page(asked))
            say_written(console(stderr=True), out)
    if exit_code and asked.found.differs:
        raise typer.Exit(ExitCode.DIFFERENT)


def compare(
    fleet_file: FleetFile,
    against: Annotated[
        list[str],
        typer.Option(
            help="homogeneous, no-disaggregation, single-vendor, without:HARDWARE, a plan file or a scenario "
            "of the fleet file; may be repeated",
            metavar="WHAT",
        ),
    ],
    scenario: Scenarios = None,
    assignment: Assignments = None,
    out: Annotated[
        Path | None, typer.Option(help="folder for the plan of each", metavar="DIR", callback=output_folder)
    ] = None,
    time_limit: Annotated[
        float, typer.Option(help="seconds for each fleet, candidates included", metavar="S", min=0.1)
    ] = 120.0,
    gap: SolveGap = "0.5%",
    seed: Seed = 1,
    calibration: CalibrationFile = None,
    baseline: BaselineFile = None,
) -> None:
    """Compute the saving against alternative fleets.

    All serve the same demand. The saving is a range, because every plan has a gap.

    Example: plan compare fleet.yaml --against homogeneous --against no-disaggregation --against without:L40S
    """
    from fleetplan.planner.commands.run_compare import read_counterfactuals, write_comparison
    from fleetplan.planner.plan import PLAN_FILE, Infeasible, Plan, read_plan
    from fleetplan.planner.questions.compare import comparisons
    from fleetplan.planner.questions.time_estimates import RemainingTime
    from fleetplan.planner.report.compare_console import compared_text, print_comparison
    from fleetplan.planner.report.infeasible_console import print_infeasible
    from fleetplan.planner.report.progress import ProgressLine
    from fleetplan.planner.search import ProgramCache, SearchLimits, default_workers

    limits = SearchLimits(time_limit, ratio(gap), seed, default_workers(), program_cache=ProgramCache())
    errors = console(stderr=True)
    assignment = [*(assignment or []), *calibration_assignment(calibration)]
    fleet = load(fleet_file, scenario, assignment, errors)
    others = read_counterfactuals(against, fleet, fleet_file, scenario or (), assignment)
    in_force = None if baseline is None else read_plan(baseline)
    steps = comparisons(fleet, others, limits, ProgressLine(errors), progress(errors), in_force)
    first = _first_plan(steps, errors)
    written: list[Path] = []

    def keep(found: Sequence[Comparison]) -> None:
        if out is not None:
            written[:] = write_comparison([first, *found][-1], out)

    waited = RemainingTime(0, 0.0)
    if isinstance(first.outcome, Plan):
        solves = sum(len(each.options) for each in others)
        waited = expected(len(others), first.outcome, limits, "alternative fleet", solves)
    rows, code = collected(steps, waited, lambda each: compared_text(each.rows[-1]), keep, begun=True)
    found = [first, *rows][-1]
    say_warnings(found.warnings, errors)
    for folder in written:
        say_written(errors, folder / PLAN_FILE)
    if isinstance(found.outcome, Infeasible):
        print_infeasible(found.outcome, False, console())
        raise typer.Exit(ExitCode.INFEASIBLE)
    print_comparison(found.outcome, found.rows, console())
    raise typer.Exit(ExitCode.LIMIT if found.outcome.open_gap > limits.gap_ratio else code)


def _first_plan(steps: Iterator[Comparison], errors: Console) -> Comparison:
    """Return the comparison before its first alternative; exit if Ctrl-C comes sooner."""
    try:
        return next(steps)
    except KeyboardInterrupt as error:
        errors.print("stopped before there was a plan", style="red", markup=False)
        raise typer.Exit(ExitCode.LIMIT) from error
