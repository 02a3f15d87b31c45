"""The command line: thin, lazy, and strict about who made the mistake.

Exit codes: 0 a plan was found, 1 a bug of ours, 2 bad usage or input, 3 proven infeasible, 4 a limit was
reached before the gap, 5 plans differ (`plan diff --exit-code`). stdout carries the result alone; progress
and warnings go to stderr.
"""

from __future__ import annotations

import sys
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fleetplan.planner.cli_calibrate import CalibrationFile, calibrate_measurements, calibration_assignment
from fleetplan.planner.cli_new import new_fleet_file, print_schema
from fleetplan.planner.cli_optables import optables_app

if TYPE_CHECKING:
    from rich.console import Console

    from fleetplan.fleet.inventory import Fleet


class ExitCode(IntEnum):
    """What the exit status says."""

    FOUND = 0
    BUG = 1
    BAD_INPUT = 2
    INFEASIBLE = 3
    LIMIT = 4
    DIFFERENT = 5


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
app.command("calibrate")(calibrate_measurements)
app.command("new")(new_fleet_file)
app.command("schema")(print_schema)

FleetFile = Annotated[Path, typer.Argument(help="the fleet file", metavar="FLEET.yaml", show_default=False)]
Scenarios = Annotated[
    list[str] | None,
    typer.Option("-s", "--scenario", help="a scenario of the fleet file; may be repeated", metavar="NAME"),
]
Assignments = Annotated[
    list[str] | None,
    typer.Option(
        "--set", help="one value of the fleet file, e.g. services.chat.slo.ttft_ms=300", metavar="KEY=VALUE"
    ),
]
BaselineFile = Annotated[
    Path | None,
    typer.Option(
        "--baseline", help="the plan in force: what starts is counted against it", metavar="PLAN.json"
    ),
]


def _ratio(text: str) -> float:
    """A ratio written as `0.5%` or `0.005`."""
    try:
        value = float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < 1:
        raise typer.BadParameter(f"{text!r} is no ratio; write 0.5% or 0.005")
    return value


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
) -> None:
    """Find the cheapest fleet, with a proven gap.

    Examples: plan fleet.yaml --out out; plan solve fleet.yaml --set services.chat.slo.ttft_ms=300
    """
    from fleetplan.planner.api import NoPlanFoundError, plan_fleet
    from fleetplan.planner.export.files import write_plan
    from fleetplan.planner.loading import read_plan
    from fleetplan.planner.plan import Infeasible
    from fleetplan.planner.report.console import print_infeasible, print_plan
    from fleetplan.planner.report.progress import ProgressLine
    from fleetplan.planner.search import SearchLimits, default_workers

    gap_ratio = _ratio(gap)
    errors = _console(stderr=True)
    assignment = [*(assignment or []), *calibration_assignment(calibration)]
    fleet = _load(fleet_file, scenario, assignment, errors)
    limits = SearchLimits(time_limit, gap_ratio, seed, default_workers())
    try:
        planned = plan_fleet(
            fleet,
            limits,
            ProgressLine(errors),
            lambda text: errors.print(text, style="dim"),
            None if baseline is None else read_plan(baseline),
        )
    except NoPlanFoundError as error:
        errors.print(str(error), style="red")
        raise typer.Exit(ExitCode.LIMIT) from error
    except KeyboardInterrupt as interrupt:
        errors.print("stopped before there was a plan", style="red")
        raise typer.Exit(ExitCode.LIMIT) from interrupt
    for warning in planned.candidates.warnings:
        errors.print(f"warning: {warning}", style="yellow", markup=False, highlight=False)
    outcome = planned.outcome
    if out is not None:
        write_plan(outcome, out)
        errors.print(f"written to {out}/plan.json", style="dim", markup=False)
    if as_json:
        typer.echo(outcome.model_dump_json(indent=2))
    elif isinstance(outcome, Infeasible):
        print_infeasible(outcome, _console())
    else:
        print_plan(outcome, _console())
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

    errors = _console(stderr=True)
    fleet = _load(fleet_file, scenario, assignment, errors)
    candidates = build_candidates(fleet, lambda text: errors.print(text, style="dim"))
    print_coverage(fleet, candidates, _console())


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
    _console(stderr=True).print(f"{len(frame)} rows: {summary}", markup=False)


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

    errors = _console(stderr=True)
    plan = read_plan(plan_file)
    fleet = _load(fleet_file, scenario, assignment, errors)
    in_force = None if baseline is None else read_plan(baseline)
    _, problem = prepare(fleet, lambda _: None, in_force)
    violations = violations_of(problem, plan)
    for violation in violations:
        _console().print(f"{violation.family}: {violation.message}", markup=False, highlight=False)
    if violations:
        raise typer.Exit(ExitCode.BAD_INPUT)
    _console().print("the plan holds: every constraint and cost term was recomputed", markup=False)


@app.command()
def landscape(
    fleet_file: Annotated[
        Path | None, typer.Argument(help="the fleet file", metavar="[FLEET.yaml]", show_default=False)
    ] = None,
    scenario: Scenarios = None,
    assignment: Assignments = None,
    service: Annotated[str | None, typer.Option(help="a service of the fleet")] = None,
    model: Annotated[str | None, typer.Option(help="without a fleet: HF id, alias or config.json")] = None,
    hardware: Annotated[str | None, typer.Option(help="names of the catalogue, with commas")] = None,
    input_tokens: Annotated[int | None, typer.Option("--input", help="new prompt tokens", min=1)] = None,
    output_tokens: Annotated[int | None, typer.Option("--output", help="generated tokens", min=1)] = None,
    context: Annotated[
        int | None, typer.Option(help="tokens that decode attends to; those beyond --input are cached", min=1)
    ] = None,
    ttft: Annotated[float | None, typer.Option(help="limit [ms]", min=0)] = None,
    tpot: Annotated[float | None, typer.Option(help="limit [ms]", min=0)] = None,
    weights: Annotated[str, typer.Option(help="data types of the weights, with commas")] = "bf16",
    kv: Annotated[str, typer.Option("--kv", help="data types of the KV cache, with commas")] = "bf16",
    framework: Annotated[str, typer.Option(help="trtllm, sglang or vllm")] = "vllm",
    prices: Annotated[str, typer.Option(help="column of the price book")] = "rental_3y",
    max_accelerators: Annotated[int | None, typer.Option(help="largest replica", min=1)] = None,
    every_batch: Annotated[int | None, typer.Option(help="try every batch up to this one", min=1)] = None,
    condition: Annotated[
        str | None, typer.Option("--filter", help="rows to show and write, e.g. 'tp <= 8 and batch >= 16'")
    ] = None,
    usable: Annotated[bool, typer.Option("--usable", help="leave excluded rows out of the files")] = False,
    csv: Annotated[Path | None, typer.Option("--csv", help="write all rows", metavar="FILE")] = None,
    parquet: Annotated[Path | None, typer.Option(help="write all rows", metavar="FILE")] = None,
    plot: Annotated[Path | None, typer.Option(help="draw into this folder", metavar="DIR")] = None,
    plot_format: Annotated[str, typer.Option(help="svg or png")] = "svg",
    explain: Annotated[int | None, typer.Option(help="take one row apart", metavar="ROW", min=0)] = None,
    menu: Annotated[bool, typer.Option("--menu", help="what each latency class costs")] = False,
) -> None:
    """Every configuration of a service or of a model: counts, the best, the Pareto frontier.

    Examples: plan landscape fleet.yaml --service chat --plot plots; plan landscape --model llama3-70b
    --hardware H200-SXM,H100-SXM --input 2000 --output 150 --ttft 350 --tpot 30
    """
    from fleetplan.planner.landscape_report.command import Outputs, run_landscape
    from fleetplan.planner.landscape_report.options import ModelOptions, search_of, write_format
    from fleetplan.planner.landscape_report.question import question_of_service

    errors = _console(stderr=True)
    search = search_of(max_accelerators, every_batch)
    asked = ModelOptions(
        model, hardware, input_tokens, output_tokens, context, ttft, tpot, weights, kv, framework, prices
    )
    if fleet_file is None:
        question = asked.question(search)
    else:
        asked.refuse_beside_fleet()
        question = question_of_service(_load(fleet_file, scenario, assignment, errors), service, search)
    outputs = Outputs(csv, parquet, plot, write_format(plot_format), condition, usable, explain, menu)
    run_landscape(question, outputs, _console(), errors)


@app.command("diff")
def diff_plans(
    old: Annotated[Path, typer.Argument(help="the plan before", metavar="OLD.json")],
    new: Annotated[Path, typer.Argument(help="the plan after", metavar="NEW.json")],
    exit_code: Annotated[bool, typer.Option("--exit-code", help="exit with 5 where they differ")] = False,
) -> None:
    """What one plan adds (+), changes (~) and removes (-) against another, and what that costs.

    Example: plan diff last-quarter/plan.json out/plan.json
    """
    from fleetplan.planner.diff import diff
    from fleetplan.planner.loading import read_plan
    from fleetplan.planner.report.diff_console import print_diff

    found = diff(read_plan(old), read_plan(new))
    print_diff(found, _console())
    if exit_code and found.differs:
        raise typer.Exit(ExitCode.DIFFERENT)


@app.command()
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
    out: Annotated[Path | None, typer.Option(help="folder for the plan of each", metavar="DIR")] = None,
    time_limit: Annotated[float, typer.Option(help="seconds for each fleet", metavar="S", min=0.1)] = 120.0,
    gap: Annotated[
        str, typer.Option(help="stop each when it is proven this close to the optimum", metavar="RATIO")
    ] = "0.5%",
    seed: Annotated[int, typer.Option(help="seed of the solver", min=0)] = 1,
    calibration: CalibrationFile = None,
) -> None:
    """What the plan saves against other fleets under the same demand, with what the gaps leave open.

    Example: plan compare fleet.yaml --against homogeneous --against no-disaggregation --against without:L40S
    """
    from fleetplan.planner.api import NoPlanFoundError
    from fleetplan.planner.compare import compare as compare_fleets
    from fleetplan.planner.compare_command import read_counterfactuals, write_comparison
    from fleetplan.planner.plan import Infeasible
    from fleetplan.planner.report.compare_console import print_comparison
    from fleetplan.planner.report.console import print_infeasible
    from fleetplan.planner.report.progress import ProgressLine
    from fleetplan.planner.search import SearchLimits, default_workers

    limits = SearchLimits(time_limit, _ratio(gap), seed, default_workers())
    errors = _console(stderr=True)
    assignment = [*(assignment or []), *calibration_assignment(calibration)]
    fleet = _load(fleet_file, scenario, assignment, errors)
    others = read_counterfactuals(against, fleet, fleet_file, scenario or (), assignment)
    try:
        found = compare_fleets(
            fleet, others, limits, ProgressLine(errors), lambda text: errors.print(text, style="dim")
        )
    except (NoPlanFoundError, KeyboardInterrupt) as error:
        errors.print(str(error) or "stopped before there was a plan", style="red", markup=False)
        raise typer.Exit(ExitCode.LIMIT) from error
    for warning in found.warnings:
        errors.print(f"warning: {warning}", style="yellow", markup=False, highlight=False)
    if out is not None:
        for folder in write_comparison(found, out):
            errors.print(f"written to {folder}/plan.json", style="dim", markup=False)
    if isinstance(found.outcome, Infeasible):
        print_infeasible(found.outcome, _console())
        raise typer.Exit(ExitCode.INFEASIBLE)
    print_comparison(found.outcome, found.rows, _console())
    if found.outcome.gap > limits.gap_ratio:
        raise typer.Exit(ExitCode.LIMIT)


def _load(path: Path, scenario: list[str] | None, assignment: list[str] | None, errors: Console) -> Fleet:
    """The resolved fleet of a file, its warnings shown."""
    from fleetplan.planner.loading import load_expanded_fleet

    fleet = load_expanded_fleet(path, scenario or (), assignment or ())
    for warning in fleet.warnings:
        errors.print(f"warning: {warning}", style="yellow", markup=False, highlight=False)
    return fleet


def _console(stderr: bool = False) -> Console:
    """A console that fits a screen also where nobody watches."""
    from rich.console import Console

    console = Console(stderr=stderr, highlight=False)
    if not console.is_terminal:
        console = Console(stderr=stderr, highlight=False, width=160)
    return console


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
