"""`plan explain`: explain a plan, or why a fleet has none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fleetplan.planner.commands.many_solves import (
    Backend,
    Deterministic,
    FleetOfPlan,
    Full,
    PlanFile,
    Seed,
    SolveGap,
    SolveTimeLimit,
    Solving,
    Workers,
    asking,
)
from fleetplan.planner.commands.shared import ExitCode, csv_file, drawable, ratio
from fleetplan.planner.commands.terminal import console

if TYPE_CHECKING:
    from rich.console import Console

    from fleetplan.fleet.inventory import Service
    from fleetplan.planner.questions.loaded_plan import LoadedPlan
    from fleetplan.planner.questions.resolving import Resolver
    from fleetplan.planner.questions.why_not.subject import Subject

CONFLICT_SOLVES = 10
"""Time for analysing a conflict, in units of the time limit of one solve."""

Absent = Annotated[
    list[str] | None,
    typer.Option(
        help="hardware, an offer, a runtime, a region or a configuration (SERVICE/HARDWARE/LABEL); "
        "may be repeated",
        metavar="WHAT",
    ),
]


def explain(
    plan_file: PlanFile,
    fleet_file: FleetOfPlan = None,
    why_not: Absent = None,
    service: Annotated[
        list[str] | None,
        typer.Option(help="explain a service, from configurations to placements; repeatable"),
    ] = None,
    marginal: Annotated[
        bool, typer.Option("--marginal", help="value of one more host, kilowatt, dollar or millisecond")
    ] = False,
    full: Full = False,
    share: Annotated[
        str, typer.Option(help="smallest share of a class that --why-not forces onto it", metavar="RATIO")
    ] = "0.1%",
    plot: Annotated[
        Path | None, typer.Option(help="picture of --marginal", metavar="FILE", callback=drawable)
    ] = None,
    csv: Annotated[
        Path | None, typer.Option(help="CSV of --marginal", metavar="FILE", callback=csv_file)
    ] = None,
    time_limit: SolveTimeLimit = 30.0,
    gap: SolveGap = "0.5%",
    seed: Seed = 1,
    workers: Workers = 1,
    backend: Backend = "local",
    deterministic: Deterministic = False,
) -> None:
    """Explain a plan, or why a fleet is infeasible.

    Shows why hardware is not used, how a service is placed, and the value of more supply.

    Examples: plan explain out/plan.json --why-not MI300X; plan explain out/plan.json --marginal
    """
    from fleetplan.planner.plan import Infeasible

    if not marginal and (plot is not None or csv is not None):
        raise typer.BadParameter("--plot and --csv belong to --marginal")
    code = ExitCode.FOUND
    solving = Solving(time_limit, gap, seed, workers, backend, deterministic)
    with asking(plan_file, fleet_file, solving) as (asked, resolver):
        infeasible = isinstance(asked.outcome, Infeasible)
        if infeasible:
            _refuse_without_plan({"--service": service, "--marginal": marginal, "--full": full})
            _explain_suitability(asked, why_not or (), ratio(share, "--share"), resolver, console())
        if infeasible or not (why_not or service or marginal or full):
            _explain_conflict(asked, resolver, console())
            return
        # Report wrong names before solving or writing anything.
        services = [_named_service(asked, name) for name in service or ()]
        subjects = _subjects(asked, why_not or (), ratio(share, "--share"))
        if full:
            from fleetplan.planner.report.console import print_plan

            print_plan(asked.plan, console(), full)
        if marginal:
            from fleetplan.planner.commands.run_marginal import run_marginal

            code = run_marginal(asked, resolver, plot, csv, console())
        for each in services:
            _explain_service(asked, each, resolver, console())
        _explain_absences(asked, subjects, resolver, console())
    raise typer.Exit(code)


def _refuse_without_plan(options: Mapping[str, object]) -> None:
    given = [option for option, value in options.items() if value]
    if given:
        explain = "explains" if len(given) == 1 else "explain"
        raise typer.BadParameter(
            f"{' and '.join(given)} {explain} a plan, and the fleet is infeasible; "
            "without options, plan explain shows which requirements conflict"
        )


def _explain_suitability(
    asked: LoadedPlan, texts: Sequence[str], share: float, resolver: Resolver, out: Console
) -> None:
    """Print the reasons against each item in an infeasible fleet."""
    from fleetplan.planner.questions.why_not.suitability import suitability
    from fleetplan.planner.report.explain_console import print_suitability

    for subject in _subjects(asked, texts, share):
        print_suitability(suitability(asked.fleet, subject, resolver), out)


def _explain_conflict(asked: LoadedPlan, resolver: Resolver, out: Console) -> None:
    """Explain why a fleet is infeasible, or why its plan leaves demand unmet."""
    from fleetplan.planner.plan import Infeasible
    from fleetplan.planner.questions.conflict.explain import explain_conflict
    from fleetplan.planner.report.explain_console import print_conflict
    from fleetplan.planner.search import Deadline

    outcome = asked.outcome
    if not isinstance(outcome, Infeasible) and not outcome.shortages:
        raise typer.BadParameter(
            "the plan serves all demand; use --why-not WHAT, --service NAME, --marginal or --full"
        )
    short = outcome.shortages if isinstance(outcome, Infeasible) else ()
    deadline = Deadline.after(CONFLICT_SOLVES * resolver.limits.time_limit_s)
    found = explain_conflict(asked.fleet, short, resolver, deadline, proven=isinstance(outcome, Infeasible))
    if found is None:
        out.print("no conflict found within the time limit; raise --time-limit")
        raise typer.Exit(ExitCode.LIMIT)
    print_conflict(found.record(), out)


def _named_service(asked: LoadedPlan, name: str) -> Service:
    from fleetplan.fleet.errors import InputError, Issue, names_hint

    services = {service.name: service for service in asked.fleet.services}
    if name not in services:
        hint = names_hint(name, tuple(services))
        raise InputError([Issue(f"--service {name}", 0, 0, "", "is not a service of the fleet", hint)])
    return services[name]


def _explain_service(asked: LoadedPlan, service: Service, resolver: Resolver, out: Console) -> None:
    from fleetplan.planner.questions.service_history import story
    from fleetplan.planner.report.explain_console import print_story

    print_story(story(asked.plan, asked.fleet, service, resolver), out)


def _subjects(asked: LoadedPlan, texts: Sequence[str], share: float) -> list[Subject]:
    """Return the items that `--why-not` names."""
    from fleetplan.planner.questions.why_not.subject import read_subject

    return [read_subject(text, asked.fleet, share) for text in texts]


def _explain_absences(
    asked: LoadedPlan, subjects: Sequence[Subject], resolver: Resolver, out: Console
) -> None:
    from fleetplan.planner.questions.loaded_plan import require_current
    from fleetplan.planner.questions.why_not.answer import AbsentItem, absences
    from fleetplan.planner.report.explain_console import print_why_not

    if not subjects:
        return
    asked = require_current(asked, resolver)
    box_s = CONFLICT_SOLVES * resolver.limits.time_limit_s
    for found in absences([AbsentItem(asked.plan, asked.fleet, each, box_s) for each in subjects], resolver):
        print_why_not(found, out)
