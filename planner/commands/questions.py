"""The commands that look at a landscape and compare plans."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer

from fleetplan.planner.commands.asking import Seed, SolveGap
from fleetplan.planner.commands.calibrate import CalibrationFile, calibration_assignment
from fleetplan.planner.commands.shared import (
    Assignments,
    BaselineFile,
    ExitCode,
    FleetFile,
    Scenarios,
    csv_file,
    load,
    output_folder,
    page_file,
    ratio,
)
from fleetplan.planner.commands.terminal import console, progress, say_written

MOST_WHOLE: Final = 10**9
"""Largest whole number of an option, as of a fleet file."""

MOST_BATCH: Final = 100_000
"""Largest batch that may be tried one by one: far above what any cache holds."""

MOST_ROWS: Final = 2**63 - 1
"""Rows of a landscape are numbered in 64 bits."""


def landscape(
    fleet_file: Annotated[
        Path | None, typer.Argument(help="the fleet file", metavar="[FLEET.yaml]", show_default=False)
    ] = None,
    scenario: Scenarios = None,
    assignment: Assignments = None,
    service: Annotated[str | None, typer.Option(help="a service of the fleet")] = None,
    model: Annotated[str | None, typer.Option(help="model: HF id, alias or config.json")] = None,
    hardware: Annotated[str | None, typer.Option(help="names of the catalogue, with commas")] = None,
    input_tokens: Annotated[
        int | None, typer.Option("--input", help="new prompt tokens", min=1, max=MOST_WHOLE)
    ] = None,
    output_tokens: Annotated[
        int | None, typer.Option("--output", help="generated tokens", min=1, max=MOST_WHOLE)
    ] = None,
    context: Annotated[
        int | None,
        typer.Option(help="context length; tokens beyond --input are cached", min=1, max=MOST_WHOLE),
    ] = None,
    ttft: Annotated[float | None, typer.Option(help="limit [ms]", min=0)] = None,
    tpot: Annotated[float | None, typer.Option(help="limit [ms]", min=0)] = None,
    weights: Annotated[
        str | None,
        typer.Option(help="data types of the weights, with commas (default: as the checkpoint stores them)"),
    ] = None,
    kv: Annotated[str, typer.Option("--kv", help="data types of the KV cache, with commas")] = "bf16",
    framework: Annotated[str, typer.Option(help="trtllm, sglang or vllm")] = "vllm",
    prices: Annotated[str, typer.Option(help="column of the price book")] = "rental_3y",
    max_accelerators: Annotated[
        int | None, typer.Option(help="largest replica", min=1, max=MOST_WHOLE)
    ] = None,
    every_batch: Annotated[
        int | None, typer.Option(help="try every batch up to this one", min=1, max=MOST_BATCH)
    ] = None,
    condition: Annotated[
        str | None, typer.Option("--filter", help="rows to show and write, e.g. 'tp <= 8 and batch >= 16'")
    ] = None,
    usable: Annotated[bool, typer.Option("--usable", help="omit excluded rows from the files")] = False,
    csv: Annotated[
        Path | None, typer.Option("--csv", help="write all rows", metavar="FILE", callback=csv_file)
    ] = None,
    parquet: Annotated[Path | None, typer.Option(help="write all rows", metavar="FILE")] = None,
    plot: Annotated[
        Path | None, typer.Option(help="draw into this folder", metavar="DIR", callback=output_folder)
    ] = None,
    plot_format: Annotated[str, typer.Option(help="svg or png")] = "svg",
    explain: Annotated[
        int | None, typer.Option(help="explain one row", metavar="ROW", min=0, max=MOST_ROWS)
    ] = None,
    menu: Annotated[bool, typer.Option("--menu", help="cost of each latency class")] = False,
) -> None:
    """Evaluate every configuration of a service or model.

    Prints counts, the best rows and the Pareto frontier.

    Examples: plan landscape fleet.yaml --service chat --plot plots; plan landscape --model llama3-70b
    --hardware H200-SXM,H100-SXM --input 2000 --output 150 --ttft 350 --tpot 30
    """
    from fleetplan.planner.commands.run_landscape import Outputs, run_landscape
    from fleetplan.planner.landscape.options import (
        ModelOptions,
        refuse_without_fleet,
        search_of,
        write_format,
    )
    from fleetplan.planner.landscape.question import question_of_service

    errors = console(stderr=True)
    search = search_of(max_accelerators, every_batch)
    asked = ModelOptions(
        model, hardware, input_tokens, output_tokens, context, ttft, tpot, weights, kv, framework, prices
    )
    if fleet_file is None:
        refuse_without_fleet(service, scenario, assignment)
        question = asked.question(search)
    else:
        asked.refuse_beside_fleet()
        question = question_of_service(load(fleet_file, scenario, assignment, errors), service, search)
    outputs = Outputs(csv, parquet, plot, write_format(plot_format), condition, usable, explain, menu)
    run_landscape(question, outputs, console(), errors)


def diff_plans(
    old: Annotated[Path, typer.Argument(help="the plan before", metavar="OLD.json")],
    new: Annotated[Path, typer.Argument(help="the plan after", metavar="NEW.json")],
    exit_code: Annotated[bool, typer.Option("--exit-code", help="exit with 5 if they differ")] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            help="page for reviewers: changes, reasons, risks, hashes",
            metavar="FILE.html",
            callback=page_file,
        ),
    ] = None,
) -> None:
    """Show how a plan differs from another, with costs.

    Lines that are added begin with +, changed ones with ~, removed ones with -.

    Example: plan diff last-quarter/plan.json out/plan.json --out review.html
    """
    from fleetplan.fleet.files import write_whole
    from fleetplan.planner.questions.review import review
    from fleetplan.planner.report.diff_console import print_diff

    asked = review(old, new)
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
    """Compute the saving against fleets planned in other ways.

    All serve the same demand. The saving is an interval, since every plan has a gap.

    Example: plan compare fleet.yaml --against homogeneous --against no-disaggregation --against without:L40S
    """
    from fleetplan.planner.commands.run_compare import KeptComparison, read_counterfactuals
    from fleetplan.planner.plan import PLAN_FILE, Infeasible, read_plan
    from fleetplan.planner.questions.compare import compare as compare_fleets
    from fleetplan.planner.report.compare_console import print_comparison
    from fleetplan.planner.report.infeasible_console import print_infeasible
    from fleetplan.planner.report.progress import ProgressLine
    from fleetplan.planner.search import SearchLimits, default_workers

    limits = SearchLimits(time_limit, ratio(gap), seed, default_workers())
    errors = console(stderr=True)
    assignment = [*(assignment or []), *calibration_assignment(calibration)]
    fleet = load(fleet_file, scenario, assignment, errors)
    others = read_counterfactuals(against, fleet, fleet_file, scenario or (), assignment)
    say = progress(errors)
    kept, stopped = KeptComparison(len(others), say, out), False
    in_force = None if baseline is None else read_plan(baseline)
    try:
        found = compare_fleets(fleet, others, limits, ProgressLine(errors), say, in_force, kept)
    except KeyboardInterrupt as error:
        if kept.found is None:
            errors.print("stopped before there was a plan", style="red", markup=False)
            raise typer.Exit(ExitCode.LIMIT) from error
        errors.print(kept.missing, style="red", markup=False)
        found, stopped = kept.found, True
    for warning in found.warnings:
        errors.print(f"warning: {warning}", style="yellow", markup=False, highlight=False)
    for folder in kept.written:
        say_written(errors, folder / PLAN_FILE)
    if isinstance(found.outcome, Infeasible):
        print_infeasible(found.outcome, False, console())
        raise typer.Exit(ExitCode.INFEASIBLE)
    print_comparison(found.outcome, found.rows, console())
    if stopped or found.outcome.open_gap > limits.gap_ratio:
        raise typer.Exit(ExitCode.LIMIT)
