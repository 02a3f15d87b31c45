"""`plan forecast`: write low, expected and high demand into a fleet file from the history of demand."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fleetplan.planner.commands.shared import FleetFile
from fleetplan.planner.commands.terminal import console


def forecast(
    history: Annotated[
        str,
        typer.Argument(
            help="CSV of the history; with --system a Prometheus server, or a folder of saved answers",
            metavar="HISTORY",
        ),
    ],
    fleet_file: FleetFile,
    out: Annotated[Path, typer.Option(help="fleet file to write", metavar="FLEET.yaml")],
    system: Annotated[
        str | None,
        typer.Option(
            help="system whose metrics to read", metavar="vllm|sglang|trtllm|dynamo|envoy-ai-gateway"
        ),
    ] = None,
    days: Annotated[
        float, typer.Option(help="days of history to query from a server", min=0.01, max=4000)
    ] = 400.0,
    step: Annotated[int, typer.Option(help="step of the range query [s]", min=1, max=86_400)] = 3600,
    region_label: Annotated[str | None, typer.Option(help="label that names the region")] = None,
    token_file: Annotated[
        Path | None, typer.Option(help="file with a bearer token for a server", metavar="FILE")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print the forecast as JSON")] = False,
    force: Annotated[bool, typer.Option("--force", help="overwrite an existing file")] = False,
) -> None:
    """Forecast demand from its history.

    Fits trend and season, tests them on the past, and writes the demand.

    The table has the columns date, service, region (if there are several), and one of requests_per_s,
    requests, tokens, input_tokens, output_tokens. Needs statsmodels: pip install 'fleetplan[forecast]'.
    Example: plan forecast history.csv fleet.yaml --out forecast.yaml
    """
    from fleetplan.planner.commands.run_forecast import run_forecast
    from fleetplan.planner.importing.prometheus import Monitoring

    monitoring = Monitoring(system, days, step, region_label, token_file)
    run_forecast(
        history, monitoring, fleet_file, out, force=force, as_json=as_json, errors=console(stderr=True)
    )
