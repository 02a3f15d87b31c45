"""`plan stress`, `plan alternatives` and `plan pareto`: what-if questions about a plan."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from fleetplan.planner.commands.many_solves import (
    Backend,
    Deterministic,
    FleetOfPlan,
    PlanFile,
    Seed,
    SolveGap,
    SolveTimeLimit,
    Solving,
    Workers,
    asking,
    collected,
    expected,
    table_writer,
)
from fleetplan.planner.commands.shared import csv_file, drawable, output_folder, ratio
from fleetplan.planner.commands.terminal import console

CsvFile = Annotated[Path | None, typer.Option(help="write the table", metavar="FILE", callback=csv_file)]

ALL_REGIONS = "all"


def stress(
    plan_file: PlanFile,
    fleet_file: FleetOfPlan = None,
    demand: Annotated[
        str, typer.Option(help="changes of demand, with commas", metavar="RATIO,...")
    ] = "10%,-10%",
    price: Annotated[
        str, typer.Option(help="changes of offer prices, with commas", metavar="RATIO,...")
    ] = "20%",
    late: Annotated[int, typer.Option(help="delay of purchases in quarters", min=0)] = 1,
    lose: Annotated[
        str, typer.Option(help="regions to lose, one at a time, with commas; or all; or none")
    ] = ALL_REGIONS,
    slower: Annotated[
        str, typer.Option(help="slowdowns of every step, with commas", metavar="RATIO,...")
    ] = "10%",
    csv: CsvFile = None,
    time_limit: SolveTimeLimit = 30.0,
    gap: SolveGap = "1%",
    seed: Seed = 1,
    workers: Workers = 1,
    backend: Backend = "local",
    deterministic: Deterministic = False,
) -> None:
    """Test a plan under other demand, prices and losses.

    Prints the unserved demand, and the cost of serving it. Deliveries may be late, too.

    Example: plan stress out/plan.json --demand 10%,25% --lose us-east
    """
    from fleetplan.planner.questions.loaded_plan import require_current
    from fleetplan.planner.questions.stress import Stress, cases_of, stress_table, stressed
    from fleetplan.planner.report.what_if_console import print_stress, stress_text

    solving = Solving(time_limit, gap, seed, workers, backend, deterministic)
    with asking(plan_file, fleet_file, solving) as (opened, resolver):
        regions = tuple(region.name for region in opened.fleet.regions)
        lost = {ALL_REGIONS: regions if len(regions) > 1 else (), "none": ()}.get(lose)
        buys = any(row.kind == "buy" for row in opened.plan.purchases)
        left_out = ["late purchases: the plan buys nothing"] if late and not buys else []
        if lose == ALL_REGIONS and not lost:
            left_out.append("a lost region: there is one region")
        kinds = Stress(
            demand_ratios=signed_ratios(demand),
            price_ratios=signed_ratios(price),
            late_quarters=late if buys else 0,
            regions=known_regions(lose, regions) if lost is None else lost,
            slower_ratios=signed_ratios(slower),
        )
        asked = require_current(opened, resolver)
        cases = list(cases_of(asked.fleet, kinds))
        rows = stressed(cases, asked.plan, asked.fleet, resolver)
        waited = expected(len(cases), asked.plan, resolver.limits)
        found, code = collected(rows, waited, stress_text, table_writer(csv, stress_table))
    print_stress(asked.plan, found, left_out, console())
    raise typer.Exit(code)


def alternatives(
    plan_file: PlanFile,
    fleet_file: FleetOfPlan = None,
    within: Annotated[str, typer.Option(help="highest extra cost of an alternative", metavar="RATIO")] = "3%",
    out: Annotated[
        Path | None, typer.Option(help="folder for the plan of each", metavar="DIR", callback=output_folder)
    ] = None,
    time_limit: SolveTimeLimit = 30.0,
    gap: SolveGap = "0.5%",
    seed: Seed = 1,
    workers: Workers = 1,
    backend: Backend = "local",
    deterministic: Deterministic = False,
) -> None:
    """Find simpler near-optimal plans.

    They have fewer kinds of hardware, no purchase, or fewer changes.

    Example: plan alternatives out/plan.json --within 3%
    """
    from fleetplan.fleet.files import written_together
    from fleetplan.planner.export.files import write_plan
    from fleetplan.planner.questions.alternatives import Alternative, alternative_count, least_solves
    from fleetplan.planner.questions.alternatives import alternatives as find_alternatives
    from fleetplan.planner.questions.loaded_plan import require_current
    from fleetplan.planner.report.what_if_console import alternative_text, print_alternatives

    def keep(found: Sequence[Alternative]) -> None:
        plans = {each.name.replace(" ", "-"): each.plan for each in found if each.plan is not None}
        if out is not None and plans:
            with written_together(out) as parts:
                for name, plan in plans.items():
                    write_plan(plan, parts / name)

    solving = Solving(time_limit, gap, seed, workers, backend, deterministic)
    with asking(plan_file, fleet_file, solving) as (opened, resolver):
        asked = require_current(opened, resolver)
        rows = find_alternatives(asked.plan, asked.fleet, ratio(within, "--within"), resolver)
        found, code = collected(
            rows,
            expected(
                alternative_count(asked.plan),
                asked.plan,
                resolver.limits,
                "alternative",
                least_solves(asked.plan, asked.fleet),
            ),
            lambda row: alternative_text(asked.plan, row),
            keep,
        )
    print_alternatives(asked.plan, found, ratio(within, "--within"), console())
    raise typer.Exit(code)


def pareto(
    plan_file: PlanFile,
    against: Annotated[
        str, typer.Option(help="energy, carbon, accelerators, latency or headroom", metavar="FIGURE")
    ],
    fleet_file: FleetOfPlan = None,
    csv: CsvFile = None,
    plot: Annotated[
        Path | None, typer.Option(help="picture of the frontier", metavar="FILE", callback=drawable)
    ] = None,
    time_limit: SolveTimeLimit = 30.0,
    gap: SolveGap = "1%",
    seed: Seed = 1,
    workers: Workers = 1,
    backend: Backend = "local",
    deterministic: Deterministic = False,
) -> None:
    """Compute the cost of less energy, carbon or latency.

    Accelerators and headroom can be traded as well.

    Example: plan pareto out/plan.json --against energy --csv frontier.csv
    """
    from fleetplan.planner.drawing import save
    from fleetplan.planner.questions.loaded_plan import require_current
    from fleetplan.planner.questions.pareto import (
        known_from_later,
        pareto_table,
        point_count,
        require_figures,
    )
    from fleetplan.planner.questions.pareto import pareto as find_frontier
    from fleetplan.planner.report.what_if_console import pareto_figure, pareto_text, print_pareto

    solving = Solving(time_limit, gap, seed, workers, backend, deterministic)
    with asking(plan_file, fleet_file, solving) as (opened, resolver):
        require_figures(opened.fleet, against)
        asked = require_current(opened, resolver)
        rows = find_frontier(asked.plan, asked.fleet, against, resolver)
        keep = table_writer(csv, pareto_table)
        waited = expected(point_count(against), asked.plan, resolver.limits)
        solved, code = collected(rows, waited, pareto_text, keep)
    points = known_from_later(solved, against)
    keep(points)
    print_pareto(points, against, console())
    if plot is not None:
        save(pareto_figure(points, against), plot)
    raise typer.Exit(code)


def signed_ratios(text: str) -> tuple[float, ...]:
    """Return shares written as `10%,-5%`; empty for an empty text."""
    found = []
    for part in (each.strip() for each in text.split(",") if each.strip()):
        try:
            value = float(part[:-1]) / 100 if part.endswith("%") else float(part)
        except ValueError:
            value = -1.0
        if not -1 < value < float("inf"):
            raise typer.BadParameter(f"{part!r} is not a share above -100%; write 10%, -10% or 0.1")
        found.append(value)
    return tuple(found)


def known_regions(text: str, regions: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names of regions in a comma-separated text."""
    from fleetplan.fleet.errors import InputError, Issue, names_hint

    names = tuple(name.strip() for name in text.split(","))
    unknown = [name for name in names if name not in regions]
    if unknown:
        hint = names_hint(unknown[0], regions)
        raise InputError([Issue(f"--lose {text}", 0, 0, "", f"there is no region {unknown[0]!r}", hint)])
    return names
