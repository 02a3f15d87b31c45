"""`plan sweep`: plan a fleet over a grid of values."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fleetplan.planner.commands.many_solves import Backend, Seed, SolveGap
from fleetplan.planner.commands.shared import (
    MOST_WORKERS,
    Assignments,
    ExitCode,
    FleetFile,
    Scenarios,
    load,
    output_folder,
    ratio,
)
from fleetplan.planner.commands.terminal import console, say_written


def sweep(
    fleet_file: FleetFile,
    grid: Annotated[
        list[str],
        typer.Option(
            help="a key and its values: a path of the fleet file, scenario, or a factor on values of the "
            "file: demand, demand.SERVICE, price, price.HARDWARE, price.OFFER, slo.SERVICE; may be repeated",
            metavar="KEY=VALUE,...",
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            help="folder of the table, the plots and every point", metavar="DIR", callback=output_folder
        ),
    ],
    scenario: Scenarios = None,
    assignment: Assignments = None,
    jobs: Annotated[
        int | None,
        typer.Option(
            help="points to solve in parallel (default: a point for each core, at most 8)",
            min=1,
            max=MOST_WORKERS,
            show_default=False,
        ),
    ] = None,
    backend: Backend = "local",
    time_limit: Annotated[float, typer.Option(help="seconds for each point", metavar="S", min=0.1)] = 120.0,
    gap: SolveGap = "1%",
    seed: Seed = 1,
) -> None:
    """Plan a fleet at every point of a grid.

    After an interruption, the same command continues.

    Example: plan sweep fleet.yaml --grid demand=0.8,1,1.25 --grid price.H200-SXM=0.8,1 --out sweep --jobs 2
    """
    from fleetplan.planner.commands.run_sweep import GridBase, is_decided, print_sweep
    from fleetplan.planner.commands.run_sweep import sweep as sweep_fleet
    from fleetplan.planner.jobs import BackendLostError
    from fleetplan.planner.search import SearchLimits

    errors = console(stderr=True)
    load(fleet_file, scenario, assignment, errors)
    limits = SearchLimits(time_limit, ratio(gap), seed, workers=1, reproducible=True)
    ground = GridBase(fleet_file, tuple(scenario or ()), tuple(assignment or ()))
    try:
        swept, code = sweep_fleet(ground, grid, limits, out, (jobs, backend))
    except BackendLostError as lost:
        errors.print(f"{lost}; the same command continues from here", style="red", markup=False)
        raise typer.Exit(ExitCode.LIMIT) from lost
    print_sweep(swept, console())
    for path in swept.written:
        say_written(errors, path)
    raise typer.Exit(code if is_decided(swept.results) else ExitCode.LIMIT)
