"""`plan replay`: simulate requests to a plan."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fleetplan.planner.commands.shared import Assignments, FleetFile, Scenarios, load, output_folder
from fleetplan.planner.commands.terminal import console, echo_json

if TYPE_CHECKING:
    from fleetplan.planner.replay.traffic import TrafficChoice

ROUTERS = ("least-loaded", "round-robin", "random")
"""Load balancing between engines with continuous batching; a test compares it with the implemented kinds."""

ReplayLimit = Annotated[
    float | None,
    typer.Option(
        help="seconds for configurations and simulations (default: until all are done)", metavar="S", min=0.1
    ),
]


def replay(
    plan_file: Annotated[Path, typer.Argument(help="the plan", metavar="PLAN.json")],
    fleet_file: FleetFile,
    scenario: Scenarios = None,
    assignment: Assignments = None,
    trace: Annotated[
        Path | None, typer.Option(help="trace of requests, scaled to the planned rates", metavar="FILE")
    ] = None,
    poisson: Annotated[bool, typer.Option("--poisson", help="Poisson arrivals")] = False,
    mmpp: Annotated[
        bool, typer.Option("--mmpp", help="Markov-modulated Poisson arrivals: calm and busy periods")
    ] = False,
    busy_ratio: Annotated[
        float, typer.Option(help="with --mmpp: busy rate over mean rate", metavar="RATIO", min=1.01)
    ] = 3.0,
    busy_share: Annotated[
        float,
        typer.Option(help="with --mmpp: share of the time that is busy", metavar="RATIO", min=0.01, max=0.99),
    ] = 0.2,
    busy_seconds: Annotated[
        float, typer.Option(help="with --mmpp: mean length of a busy spell", metavar="S", min=0.01)
    ] = 10.0,
    duration: Annotated[float, typer.Option(help="simulated seconds", metavar="S", min=1.0)] = 300.0,
    load_ratio: Annotated[
        float, typer.Option("--load", help="factor on the planned traffic", metavar="RATIO", min=0.01)
    ] = 1.0,
    seed: Annotated[int, typer.Option(help="random seed", min=0)] = 1,
    period: Annotated[str | None, typer.Option(help="period of the plan (default: the first)")] = None,
    part_of_day: Annotated[
        str | None, typer.Option("--slice", help="slice of the day (default: the first)", metavar="NAME")
    ] = None,
    service: Annotated[
        list[str] | None, typer.Option("--service", help="only this service; repeatable", metavar="NAME")
    ] = None,
    router: Annotated[
        str, typer.Option(help="load balancing between engines of a configuration", metavar="|".join(ROUTERS))
    ] = "least-loaded",
    out: Annotated[
        Path | None,
        typer.Option(help="folder for replay.json, tables and plots", metavar="DIR", callback=output_folder),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="print replay.json instead of the table")] = False,
    time_limit: ReplayLimit = None,
) -> None:
    """Simulate requests to a plan.

    Prints latencies with their limits, queues and utilisation over time.

    Arrivals are as bursty as the fleet file states (traffic.burstiness) unless an option overrides it.
    Example: plan replay out/plan.json fleet.yaml --poisson --duration 600 --out replay
    """
    from fleetplan.planner.commands.run_replay import ReplayRequest, run_replay

    errors = console(stderr=True)
    choice = _traffic(
        trace, poisson, mmpp, (busy_ratio, busy_share, busy_seconds), duration, load_ratio, seed
    )
    fleet = load(fleet_file, scenario, assignment, errors)
    asked = ReplayRequest(
        plan_file, choice, period, part_of_day, tuple(service or ()), router, ROUTERS, time_limit
    )
    run_replay(fleet, asked, out, echo_json if as_json else None, console(), errors)


def _traffic(
    trace: Path | None,
    poisson: bool,
    mmpp: bool,
    busy: tuple[float, float, float],
    duration_s: float,
    load_ratio: float,
    seed: int,
) -> TrafficChoice:
    """Return the traffic selected by the options."""
    from fleetplan.fleet.errors import InputError, Issue
    from fleetplan.perfmodel.replay import read_trace
    from fleetplan.perfmodel.serving import Regimes
    from fleetplan.planner.replay.traffic import Arrivals, TrafficChoice

    if sum((trace is not None, poisson, mmpp)) > 1:
        raise typer.BadParameter("choose one of --trace, --poisson, --mmpp")
    ratio, share, seconds = busy
    if mmpp and ratio * share > 1:
        message = f"{ratio:g} times the mean rate for {share:g} of the time exceeds all requests"
        raise InputError(
            [Issue("command line", 0, 0, "--busy-ratio", message, "lower --busy-ratio or --busy-share")]
        )
    regimes = Regimes(ratio, share, seconds) if mmpp else Regimes()
    arrivals = Arrivals.AS_PLANNED
    if poisson:
        arrivals = Arrivals.POISSON
    elif mmpp:
        arrivals = Arrivals.REGIMES
    elif trace is not None:
        arrivals = Arrivals.TRACE
    recorded = None if trace is None else read_trace(trace).requests
    return TrafficChoice(arrivals, duration_s, load_ratio, seed, regimes, recorded)
