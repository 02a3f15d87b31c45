"""The command line: thin, lazy, and strict about who made the mistake.

Exit codes: 0 a plan was found, 1 a bug of ours, 2 bad usage or input, 3 proven infeasible, 4 a limit was
reached before the gap, 5 plans differ (`plan diff --exit-code`). stdout carries the result alone; progress
and warnings go to stderr.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fleetplan.planner.cli_calibrate import CalibrationFile, calibrate_measurements, calibration_assignment
from fleetplan.planner.cli_explain import explain
from fleetplan.planner.cli_export import dump, export, report
from fleetplan.planner.cli_import import import_app
from fleetplan.planner.cli_new import new_fleet_file, print_schema
from fleetplan.planner.cli_optables import optables_app
from fleetplan.planner.cli_questions import compare, diff_plans, landscape
from fleetplan.planner.cli_replay import replay
from fleetplan.planner.cli_shared import (
    Assignments,
    BaselineFile,
    ExitCode,
    FleetFile,
    Scenarios,
    console,
    load,
    ratio,
)
from fleetplan.planner.cli_sweep import sweep
from fleetplan.planner.cli_what_if import alternatives, pareto, stress

if TYPE_CHECKING:
    pass


app = typer.Typer(
    name="plan",
    help="The cheapest accelerator fleet that serves every LLM within its latency targets. "
    "'plan FLEET.yaml' is short for 'plan solve FLEET.yaml'.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.add_typer(optables_app)
app.add_typer(import_app)
app.command("landscape")(landscape)
app.command("diff")(diff_plans)
app.command("compare")(compare)
app.command("explain")(explain)
app.command("sweep")(sweep)
app.command("stress")(stress)
app.command("alternatives")(alternatives)
app.command("pareto")(pareto)
app.command("replay")(replay)
app.command("calibrate")(calibrate_measurements)
app.command("report")(report)
app.command("export")(export)
app.command("dump")(dump)
app.command("new")(new_fleet_file)
app.command("schema")(print_schema)


@app.command()
def solve(
    fleet_file: FleetFile,
    scenario: Scenarios = None,
    assignment: Assignments = None,
    out: Annotated[
        Path | None, typer.Option(help="folder for plan.json and its tables", metavar="DIR")
    ] = None,
    time_limit: Annotated[
        float, typer.Option(help="seconds for all solves together", metavar="S", min=0.1)
    ] = 120.0,
    gap: Annotated[
        str, typer.Option(help="stop when the plan is proven this close to the optimum", metavar="RATIO")
    ] = "0.5%",
    seed: Annotated[int, typer.Option(help="seed of the solver", min=0)] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="print plan.json instead of the tables")] = False,
    calibration: CalibrationFile = None,
    baseline: BaselineFile = None,
    deterministic: Annotated[
        bool, typer.Option("--deterministic", help="the same plan in every run; the time limit counts work")
    ] = False,
    explain_search: Annotated[
        bool, typer.Option("--explain-search", help="say which part of the search found and proved what")
    ] = False,
) -> None:
    """Find the cheapest fleet, with a proven gap.

    Examples: plan fleet.yaml --out out; plan solve fleet.yaml --set services.chat.slo.ttft_ms=300
    """
    from fleetplan.planner.api import NoPlanFoundError, plan_fleet
    from fleetplan.planner.export.folder import write_folder
    from fleetplan.planner.loading import read_plan
    from fleetplan.planner.plan import Infeasible
    from fleetplan.planner.questions.solve_outcome import stated_outcome
    from fleetplan.planner.report.console import print_infeasible, print_plan
    from fleetplan.planner.report.explain_console import print_conflict
    from fleetplan.planner.report.progress import ProgressLine
    from fleetplan.planner.report.search_console import SearchLog, print_search
    from fleetplan.planner.search import SearchLimits, default_workers

    gap_ratio = ratio(gap)
    errors = console(stderr=True)
    assignment = [*(assignment or []), *calibration_assignment(calibration)]
    fleet = load(fleet_file, scenario, assignment, errors)
    limits = SearchLimits(time_limit, gap_ratio, seed, default_workers(), deterministic)
    log = SearchLog(ProgressLine(errors))
    in_force = None if baseline is None else read_plan(baseline)
    try:
        planned = plan_fleet(
            fleet,
            limits,
            log,
            lambda text: errors.print(text, style="dim"),
            in_force,
        )
    except NoPlanFoundError as error:
        errors.print(str(error), style="red")
        raise typer.Exit(ExitCode.LIMIT) from error
    except KeyboardInterrupt as interrupt:
        errors.print("stopped before there was a plan", style="red")
        raise typer.Exit(ExitCode.LIMIT) from interrupt
    for warning in planned.candidates.warnings:
        errors.print(f"warning: {warning}", style="yellow", markup=False, highlight=False)
    if explain_search:
        print_search(log.steps, errors)
    outcome = stated_outcome(
        planned.outcome,
        fleet,
        limits,
        None if baseline is None or in_force is None else (baseline, in_force),
        lambda text: errors.print(text, style="dim", markup=False),
    )
    if out is not None:
        write_folder(
            outcome, out, fleet, in_force, lambda text: errors.print(text, style="dim", markup=False)
        )
    if as_json:
        typer.echo(outcome.model_dump_json(indent=2))
    elif isinstance(outcome, Infeasible):
        print_infeasible(outcome, console())
        if outcome.conflict is not None:
            print_conflict(outcome.conflict, console())
    else:
        print_plan(outcome, console())
    if isinstance(outcome, Infeasible):
        raise typer.Exit(ExitCode.INFEASIBLE)
    if outcome.gap > gap_ratio:
        raise typer.Exit(ExitCode.LIMIT)


@app.command()
def check(fleet_file: FleetFile, scenario: Scenarios = None, assignment: Assignments = None) -> None:
    """Validate a fleet and say which numbers are measured, interpolated, extrapolated or roofline.

    Example: plan check fleet.yaml -s growth
    """
    from fleetplan.planner.candidates import build_candidates
    from fleetplan.planner.report.coverage import print_coverage

    errors = console(stderr=True)
    fleet = load(fleet_file, scenario, assignment, errors)
    candidates = build_candidates(fleet, lambda text: errors.print(text, style="dim"))
    print_coverage(fleet, candidates, console())


@app.command()
def predict(
    cases: Annotated[Path, typer.Argument(help="CSV of configurations", metavar="CASES.csv")],
    out: Annotated[Path, typer.Option(help="CSV to write", metavar="PRED.csv")],
    calibration: CalibrationFile = None,
) -> None:
    """Latency and throughput of explicit configurations, one output row for each input row.

    Example: plan predict cases.csv --out predictions.csv
    """
    from fleetplan.perfmodel.calibration_files import read_calibration
    from fleetplan.perfmodel.predict import predict as predict_frame
    from fleetplan.perfmodel.predict import read_cases
    from fleetplan.planner.export.files import write_text

    calibrated = None if calibration is None else read_calibration(calibration)
    frame = predict_frame(read_cases(cases), cases.parent, str(cases), calibrated)
    write_text(out, frame.to_csv(index=False))
    counts = frame["status"].value_counts()
    summary = ", ".join(f"{count} {status}" for status, count in counts.items())
    console(stderr=True).print(f"{len(frame)} rows: {summary}", markup=False)


@app.command()
def verify(
    plan_file: Annotated[Path, typer.Argument(help="the plan", metavar="PLAN.json")],
    fleet_file: FleetFile,
    scenario: Scenarios = None,
    assignment: Assignments = None,
    baseline: BaselineFile = None,
) -> None:
    """Check a plan against its fleet without the solver, in unrounded numbers.

    Example: plan verify out/plan.json fleet.yaml
    """
    from fleetplan.planner.api import prepare
    from fleetplan.planner.loading import read_plan
    from fleetplan.planner.verify import verify as violations_of

    errors = console(stderr=True)
    plan = read_plan(plan_file)
    fleet = load(fleet_file, scenario, assignment, errors)
    in_force = None if baseline is None else read_plan(baseline)
    _, problem = prepare(fleet, lambda _: None, in_force)
    violations = violations_of(problem, plan)
    for violation in violations:
        console().print(f"{violation.family}: {violation.message}", markup=False, highlight=False)
    if violations:
        raise typer.Exit(ExitCode.BAD_INPUT)
    console().print("the plan holds: every constraint and cost term was recomputed", markup=False)


def _with_command(arguments: list[str]) -> list[str]:
    """`plan FLEET.yaml` in full: `plan solve FLEET.yaml`."""
    if arguments and not arguments[0].startswith("-"):
        names = {
            command.name or command.callback.__name__
            for command in app.registered_commands
            if command.callback
        } | {
            group.name or group.typer_instance.info.name
            for group in app.registered_groups
            if group.typer_instance
        }
        first = Path(arguments[0])
        if first.name not in names and (first.suffix.lower() in {".yaml", ".yml"} or first.exists()):
            return ["solve", *arguments]
    return arguments


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit with its code.

    A user's mistake prints its message and exits with 2; anything unforeseen keeps its traceback and
    exits with 1.
    """
    from fleetplan.fleet.errors import InputError

    try:
        app(args=_with_command(sys.argv[1:] if arguments is None else arguments))
    except InputError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(ExitCode.BAD_INPUT)


if __name__ == "__main__":
    main()
