"""`plan solve`: find the cheapest fleet."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fleetplan.fleet.machine import usable_cores
from fleetplan.planner.commands.calibrate import CalibrationFile, calibration_assignment
from fleetplan.planner.commands.many_solves import Backend, Full, Seed
from fleetplan.planner.commands.shared import (
    MOST_WORKERS,
    Assignments,
    BaselineFile,
    ExitCode,
    FleetFile,
    Scenarios,
    load,
    output_folder,
    ratio,
)
from fleetplan.planner.commands.terminal import console, echo_json, progress, say_warnings

if TYPE_CHECKING:
    from rich.console import Console

    from fleetplan.fleet.inventory import Fleet
    from fleetplan.planner.api import Planned
    from fleetplan.planner.plan import Infeasible, Plan
    from fleetplan.planner.report.search_console import SearchLog
    from fleetplan.planner.search import SearchLimits

Deterministic = Annotated[
    bool, typer.Option("--deterministic", help="the same plan in every run; limits work, not time")
]

Workers = Annotated[
    int | None,
    typer.Option(help="parallel searches (default: one per core)", metavar="N", min=1, max=MOST_WORKERS),
]


def solve(
    fleet_file: FleetFile,
    scenario: Scenarios = None,
    assignment: Assignments = None,
    out: Annotated[
        Path | None,
        typer.Option(help="folder for plan.json and its tables", metavar="DIR", callback=output_folder),
    ] = None,
    time_limit: Annotated[
        float, typer.Option(help="seconds for candidates and all solves together", metavar="S", min=0.1)
    ] = 120.0,
    gap: Annotated[str, typer.Option(help="stop at this optimality gap", metavar="RATIO")] = "0.5%",
    seed: Seed = 1,
    as_json: Annotated[bool, typer.Option("--json", help="print plan.json instead of the tables")] = False,
    calibration: CalibrationFile = None,
    baseline: BaselineFile = None,
    deterministic: Deterministic = False,
    workers: Workers = None,
    backend: Backend = "local",
    explain_search: Annotated[
        bool, typer.Option("--explain-search", help="print the steps of the search by solver component")
    ] = False,
    full: Full = False,
) -> None:
    """Find the cheapest fleet, with a proven optimality gap.

    Examples: plan fleet.yaml --out out; plan solve fleet.yaml --set services.chat.slo.ttft_ms=300
    """
    from fleetplan.planner.api import NoPlanFoundError
    from fleetplan.planner.plan import read_plan
    from fleetplan.planner.questions.solve_outcome import stated_outcome
    from fleetplan.planner.report.folder import write_folder
    from fleetplan.planner.report.progress import ProgressLine
    from fleetplan.planner.report.search_console import SearchLog, print_search
    from fleetplan.planner.search import SearchLimits, default_workers

    began_s = time.monotonic()
    gap_ratio = ratio(gap)
    errors = console(stderr=True)
    say = progress(errors)
    assignment = [*(assignment or []), *calibration_assignment(calibration)]
    fleet = load(fleet_file, scenario, assignment, errors)
    limits = SearchLimits(time_limit, gap_ratio, seed, workers or default_workers(), deterministic)
    log = SearchLog(ProgressLine(errors))
    in_force = None if baseline is None else read_plan(baseline)
    try:
        planned = _planned_on(backend, fleet, limits, log, errors, in_force)
    except NoPlanFoundError:
        # The steps are useful even if the search found no plan.
        if explain_search:
            print_search(log.steps, errors)
        raise
    say_warnings(planned.candidates.warnings, errors, whole=full)
    if explain_search:
        print_search(log.steps, errors)
    changed_from = None if baseline is None or in_force is None else (baseline, in_force)
    outcome = stated_outcome(fleet, limits, changed_from, say, planned)
    if out is not None:
        write_folder(outcome, out, fleet, in_force, say)
    _print_outcome(outcome, as_json, full)
    errors.print(_waited(outcome, time.monotonic() - began_s), highlight=False)
    raise typer.Exit(exit_code(outcome, gap_ratio))


def _planned_on(
    backend: str, fleet: Fleet, limits: SearchLimits, log: SearchLog, errors: Console, in_force: Plan | None
) -> Planned:
    """Plan a fleet, with jobs of large searches on a backend; report if the backend is lost."""
    from fleetplan.planner.jobs import connected

    with connected(backend, min(limits.workers, usable_cores())) as cluster:
        planned = _planned(fleet, replace(limits, cluster=cluster), log, errors, in_force)
    if cluster is not None and cluster.lost:
        errors.print(f"{cluster.lost}: the result covers the time until then", style="red", markup=False)
    return planned


def _planned(
    fleet: Fleet, limits: SearchLimits, log: SearchLog, errors: Console, in_force: Plan | None
) -> Planned:
    """Plan a fleet; report if Ctrl-C came before a plan."""
    from fleetplan.planner.api import plan_fleet

    try:
        return plan_fleet(fleet, limits, log, progress(errors), in_force)
    except KeyboardInterrupt as interrupt:
        errors.print("stopped before there was a plan", style="red")
        raise typer.Exit(ExitCode.LIMIT) from interrupt


def _print_outcome(outcome: Plan | Infeasible, as_json: bool, full: bool) -> None:
    from fleetplan.planner.plan import Infeasible
    from fleetplan.planner.report.console import print_plan
    from fleetplan.planner.report.explain_console import print_conflict
    from fleetplan.planner.report.infeasible_console import print_infeasible

    if as_json:
        echo_json(outcome.model_dump_json(indent=2))
        return
    if not isinstance(outcome, Infeasible):
        print_plan(outcome, console(), full)
        return
    print_infeasible(outcome, full, console())
    if outcome.conflict is not None:
        print_conflict(outcome.conflict, console())


def _waited(outcome: Plan | Infeasible, waited_s: float) -> str:
    """Return the duration of the whole command, and the part of the search."""
    from fleetplan.planner.plan import Infeasible

    found_s = "" if isinstance(outcome, Infeasible) else f", {outcome.solve.wall_s:.1f} s of it search"
    return f"{waited_s:.1f} s in all{found_s}"


def exit_code(outcome: Plan | Infeasible, gap_ratio: float) -> ExitCode:
    """Return the exit status of an outcome; every open gap counts, including that of unmet demand."""
    from fleetplan.planner.plan import Infeasible

    if isinstance(outcome, Infeasible):
        return ExitCode.INFEASIBLE
    return ExitCode.LIMIT if outcome.open_gap > gap_ratio else ExitCode.FOUND
