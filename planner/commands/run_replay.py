"""Run `plan replay`: simulate a plan, then write and print the outcome."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pandas as pd

from fleetplan.fleet.errors import InputError, Issue, names_hint
from fleetplan.fleet.files import write_whole, written_together
from fleetplan.fleet.inventory import Fleet
from fleetplan.perfmodel.replay import Router
from fleetplan.planner.candidates import prepare
from fleetplan.planner.cells import csv_text
from fleetplan.planner.commands.shared import time_for_candidates
from fleetplan.planner.commands.terminal import progress, say_written
from fleetplan.planner.plan import read_plan
from fleetplan.planner.problem import build_problem
from fleetplan.planner.replay.outcome import ReplayOutcome
from fleetplan.planner.replay.plots import write_replay_plots
from fleetplan.planner.replay.run import ReplayScope, lacks_batch, replay_plan
from fleetplan.planner.replay.traffic import TrafficChoice
from fleetplan.planner.report.replay_console import print_replay

if TYPE_CHECKING:
    from rich.console import Console


@dataclass(frozen=True, slots=True)
class ReplayRequest:
    """Options of a replay.

    Attributes
    ----------
    plan_file : Path
        Path of the plan.
    choice : TrafficChoice
        Arrivals of requests.
    period : str or None
        Period; None for the first.
    part_of_day : str or None
        Slice of the day; None for the first.
    services : tuple[str, ...]
        Services to simulate; empty for all.
    router : str
        Router as given by the user.
    routers : Sequence[str]
        Available routers.
    time_limit_s : float or None
        Time limit for candidates and simulations together; None for no limit. [s]
    """

    plan_file: Path
    choice: TrafficChoice
    period: str | None
    part_of_day: str | None
    services: tuple[str, ...]
    router: str
    routers: Sequence[str]
    time_limit_s: float | None = None


def run_replay(
    fleet: Fleet,
    asked: ReplayRequest,
    out: Path | None,
    print_json: Callable[[str], None] | None,
    screen: Console,
    errors: Console,
) -> ReplayOutcome:
    """Replay a plan, then write and print the outcome.

    Raises
    ------
    LimitReachedError
        The time limit passed before there was an outcome.
    InputError
        A router, period or service does not exist, or the plan belongs to another fleet.
    """
    if asked.router not in asked.routers:
        message = f"there is no router {asked.router!r}"
        hint = names_hint(asked.router, asked.routers)
        raise InputError([Issue("command line", 0, 0, "--router", message, hint)])
    plan = read_plan(asked.plan_file)

    say = progress(errors)
    problem = build_problem(fleet, ())
    period = asked.period or plan.periods[0]
    router = cast("Router", asked.router)
    scope = ReplayScope(period, asked.part_of_day, asked.services, router)
    with time_for_candidates(asked.time_limit_s) as late:
        if any(lacks_batch(problem, row) for row in plan.placements):
            _, problem = prepare(fleet, say, out_of_time=late)
        outcome = replay_plan(problem, plan, asked.choice, scope, say, late)
    if out is not None:
        write_replay(outcome, out)
        say_written(errors, out / "replay.json")
    if print_json is not None:
        print_json(outcome.model_dump_json(indent=2))
    else:
        print_replay(outcome, screen)
    return outcome


def write_replay(outcome: ReplayOutcome, folder: Path) -> None:
    """Write replay.json, its tables and its plots: all of them or none."""
    with written_together(folder) as parts:
        write_whole(parts / "replay.json", outcome.model_dump_json(indent=2) + "\n")
        for name, rows in replay_tables(outcome).items():
            write_whole(parts / f"{name}.csv", csv_text(rows))
        write_replay_plots(outcome, parts)


def replay_tables(outcome: ReplayOutcome) -> dict[str, pd.DataFrame]:
    """Return the limits, groups and timeline of a replay as tables, by file name."""
    limits, groups, timeline = [], [], []
    for place in outcome.places:
        where = {"service": place.service, "region": place.region}
        limits += [where | check.model_dump() for check in place.limits]
        groups += [where | group.model_dump() for group in place.groups]
        timeline += [where | point.model_dump() for point in place.timeline]
    return {
        "replay_limits": pd.DataFrame(limits),
        "replay_groups": pd.DataFrame(groups),
        "replay_timeline": pd.DataFrame(timeline),
    }
