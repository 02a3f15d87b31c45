"""`plan serve`: a local web page for what-if questions."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from fleetplan.planner.commands.many_solves import Seed, SolveGap
from fleetplan.planner.commands.shared import Assignments, BaselineFile, FleetFile, Scenarios, load, ratio
from fleetplan.planner.commands.terminal import console

NEEDED: Final = ("starlette", "uvicorn")
"""Packages of the extra `serve`."""


def serve(
    fleet_file: FleetFile,
    scenario: Scenarios = None,
    assignment: Assignments = None,
    host: Annotated[
        str, typer.Option(help="address to listen on; the default admits only this machine")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="port; 0 is a free one", min=0, max=65535)] = 0,
    show: Annotated[bool, typer.Option("--open", help="open the page in a browser of this machine")] = False,
    time_limit: Annotated[float, typer.Option(help="seconds for each plan", metavar="S", min=0.1)] = 60.0,
    gap: SolveGap = "1%",
    seed: Seed = 1,
    baseline: BaselineFile = None,
) -> None:
    """Start a local web page for what-if questions.

    Change demand, prices, latency targets and supply on it, plan again, and compare.

    Prints the address of the page, which contains a secret token. Needs starlette and uvicorn: pip install
    'fleetplan[serve]'. Example: plan serve fleet.yaml --open
    """
    from fleetplan.fleet.errors import InputError, Issue

    try:
        from fleetplan.planner.commands.page.server import serve_page
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in NEEDED:
            raise
        message = "the page needs starlette and uvicorn, which are not installed"
        hint = "pip install 'fleetplan[serve]'"
        raise InputError([Issue("plan serve", 0, 0, "", message, hint)]) from error
    from fleetplan.planner.commands.page.messages import Settings
    from fleetplan.planner.plan import read_plan

    load(fleet_file, scenario, assignment, console(stderr=True))
    if baseline is not None:
        read_plan(baseline)
    settings = Settings(fleet_file, time_limit, ratio(gap), seed, baseline)
    serve_page(settings, (tuple(scenario or ()), tuple(assignment or ())), host, port, show=show)
