"""`plan track`: compare a plan with actual figures, and write the fleet file of the next plan."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fleetplan.planner.commands.import_options import Token
from fleetplan.planner.commands.many_solves import FleetOfPlan, PlanFile
from fleetplan.planner.commands.shared import output_folder
from fleetplan.planner.commands.terminal import console


def track(
    plan_file: PlanFile,
    actuals: Annotated[
        list[str],
        typer.Argument(
            help="measurements, repeatable: a table, a FOCUS bill (CSV or Parquet); with --system the "
            "URL of a Prometheus server, or a folder of saved answers",
            metavar="ACTUALS",
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            help="folder for track.html, track.json and findings.csv", metavar="DIR", callback=output_folder
        ),
    ] = None,
    next_file: Annotated[
        Path | None,
        typer.Option("--next", help="fleet file of the next plan to write", metavar="FLEET.yaml"),
    ] = None,
    solve_into: Annotated[
        Path | None,
        typer.Option(
            "--solve",
            help="plan --next into a folder, with this plan in force",
            metavar="DIR",
            callback=output_folder,
        ),
    ] = None,
    fleet_file: FleetOfPlan = None,
    time_limit: Annotated[float, typer.Option(help="seconds for --solve", metavar="S", min=0.1)] = 120.0,
    gap: Annotated[str, typer.Option(help="optimality gap of --solve", metavar="RATIO")] = "0.5%",
    region: Annotated[
        list[str] | None,
        typer.Option(help="a region of the bill, as THEIRS=OURS; repeatable; others keep their name"),
    ] = None,
    system: Annotated[
        str | None,
        typer.Option(
            help="system whose metrics to read", metavar="vllm|sglang|trtllm|dynamo|envoy-ai-gateway"
        ),
    ] = None,
    days: Annotated[
        float, typer.Option(help="days of history to query from a server", min=0.01, max=4000)
    ] = 100.0,
    step: Annotated[int, typer.Option(help="step of the range query [s]", min=1, max=86_400)] = 3600,
    region_label: Annotated[str | None, typer.Option(help="label that names the region")] = None,
    token_file: Token = None,
    as_json: Annotated[bool, typer.Option("--json", help="print track.json instead of the tables")] = False,
    force: Annotated[bool, typer.Option("--force", help="overwrite the file of --next")] = False,
) -> None:
    """Compare a plan with actual figures.

    States the variances of demand, rates and prices, and their cost.

    The table has a column period or date, and those of service, region, pool, requests_per_s, accelerators,
    utilisation, ttft_ms, tpot_ms and usd that were measured. A bill provides the cost and size of pools,
    Prometheus demand and latencies.

    Example: plan track out/plan.json actuals.csv --out track --next fleet-q2.yaml --solve out-q2
    """
    from fleetplan.planner.commands.actuals_sources import MeasuredSources
    from fleetplan.planner.commands.run_track import NextPlan, run_track
    from fleetplan.planner.importing.prometheus import Monitoring

    monitoring = Monitoring(system, days, step, region_label, token_file)
    sources = MeasuredSources(tuple(actuals), tuple(region or ()), monitoring)
    following = NextPlan(next_file, solve_into, fleet_file, time_limit, gap, force)
    run_track(plan_file, sources, out, following, as_json=as_json, errors=console(stderr=True))
