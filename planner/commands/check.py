"""`plan check` and `plan verify`: check a fleet file before planning, and a plan against its fleet."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer

from fleetplan.fleet.figures import counted
from fleetplan.planner.commands.shared import (
    Assignments,
    BaselineFile,
    EvaluationLimit,
    ExitCode,
    FleetFile,
    Scenarios,
    load,
    time_for_candidates,
)
from fleetplan.planner.commands.terminal import console, progress, say_warnings


def check(
    fleet_file: FleetFile,
    scenario: Scenarios = None,
    assignment: Assignments = None,
    time_limit: EvaluationLimit = None,
    full: Annotated[
        bool, typer.Option("--full", help="print every reason for excluded configurations")
    ] = False,
) -> None:
    """Validate a fleet and state the sources of its numbers.

    Sources are measured, interpolated, extrapolated and roofline.

    Mistakes in other scenarios of the file are warnings.

    Example: plan check fleet.yaml -s growth
    """
    from fleetplan.planner.candidates import kept_candidates
    from fleetplan.planner.report.coverage import print_coverage

    errors = console(stderr=True)
    fleet = load(fleet_file, scenario, assignment, errors)
    say_warnings(_mistakes_of_scenarios(fleet_file, scenario or (), assignment or ()), errors)
    with time_for_candidates(time_limit) as late:
        candidates = kept_candidates(fleet, progress(errors), out_of_time=late)
    print_coverage(fleet, candidates, console(), full)


def _mistakes_of_scenarios(
    fleet_file: Path, chosen: Sequence[str], assignments: Sequence[str]
) -> Iterator[str]:
    """Yield the issues of each other scenario on top of the chosen ones; it may belong to a different one."""
    from fleetplan.fleet.document import read_document
    from fleetplan.fleet.errors import InputError
    from fleetplan.scenarios.load import load_fleet

    block = read_document(fleet_file).root.child("scenarios")
    for name in () if block is None else block.entries:
        if name in chosen:
            continue
        try:
            load_fleet(fleet_file, [*chosen, name], assignments)
        except InputError as error:
            yield from (f"with -s {name}: {issue}" for issue in error.issues)


def verify(
    plan_file: Annotated[Path, typer.Argument(help="the plan", metavar="PLAN.json")],
    fleet_file: FleetFile,
    scenario: Scenarios = None,
    assignment: Assignments = None,
    baseline: BaselineFile = None,
    time_limit: EvaluationLimit = None,
) -> None:
    """Check a plan against its fleet without the solver.

    Recomputes every number of the plan, without rounding.

    Example: plan verify out/plan.json fleet.yaml
    """
    from fleetplan.fleet.input_files import input_sha256
    from fleetplan.planner.candidates import prepare
    from fleetplan.planner.plan import read_plan
    from fleetplan.planner.verify import Evidence
    from fleetplan.planner.verify import verify as violations_of

    errors = console(stderr=True)
    plan = read_plan(plan_file)
    fleet = load(fleet_file, scenario, assignment, errors)
    in_force = None if baseline is None else read_plan(baseline)
    with time_for_candidates(time_limit) as late:
        candidates, problem = prepare(fleet, lambda _: None, in_force, late)
    evidence = Evidence(
        candidates.rejections,
        candidates.table_sources,
        candidates.calibrations,
        "" if baseline is None else input_sha256(baseline),
    )
    violations = violations_of(problem, plan, evidence)
    for violation in violations:
        console().print(f"{violation.family}: {violation.message}", markup=False, highlight=False)
    if violations:
        errors.print(f"the plan does not hold: {counted(len(violations), 'violation')}", style="red")
        raise typer.Exit(ExitCode.BAD_INPUT)
    console().print("the plan holds: every constraint, cost and stated figure was recomputed", markup=False)
