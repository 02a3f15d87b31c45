"""A replay from a plan and its fleet to its outcome."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from fleetplan.fleet.errors import InputError, Issue, names_hint
from fleetplan.perfmodel.replay.pools import Router
from fleetplan.perfmodel.replay.service_run import run_service
from fleetplan.planner.plan import Placement, Plan
from fleetplan.planner.problem import Problem
from fleetplan.planner.replay.deployment import DeploymentBuilder, ServedPlace, served_places
from fleetplan.planner.replay.outcome import PlaceOutcome, ReplayOutcome, place_outcome
from fleetplan.planner.replay.traffic import TrafficChoice, arriving


def replay_plan(
    problem: Problem,
    plan: Plan,
    choice: TrafficChoice,
    period: str,
    only: Sequence[str] = (),
    router: Router = "least-loaded",
    announce: Callable[[str], None] = lambda _: None,
) -> ReplayOutcome:
    """Simulate the requests of a plan.

    Parameters
    ----------
    problem : Problem
        Of the fleet that the plan was made for, with its candidates.
    plan : Plan
        The plan.
    choice : TrafficChoice
        What arrives.
    period : str
        Which period of the plan; its first slice and demand scenario.
    only : Sequence[str]
        Services to simulate; all without any.
    router : Router
        How engines of continuous batching share their requests.
    announce : callable
        Told what is being done.

    Raises
    ------
    InputError
        The plan has no such period or service, or runs what the fleet file does not allow.
    """
    rows = _rows_of_period(plan, period)
    _check_known(problem, plan, rows, only)
    places = [place for place in served_places(problem, rows) if not only or place.service.name in only]
    builder = DeploymentBuilder(problem.fleet, problem)
    outcomes, requests, cpu_s = [], 0, 0.0
    for number, place in enumerate(places):
        announce(f"replaying {place.service.name} in {place.region} ({number + 1} of {len(places)})")
        outcome, count, took_s = _replay_place(builder, place, choice, number, router)
        outcomes.append(outcome)
        requests, cpu_s = requests + count, cpu_s + took_s
    simulated = {place.service.name for place in places}
    wanted = dict.fromkeys(row.service for row in rows if not only or row.service in only)
    return ReplayOutcome(
        fleet=plan.fleet,
        period=period,
        arrivals=choice.arrivals.value,
        duration_s=choice.duration_s,
        load_ratio=choice.load_ratio,
        seed=choice.seed,
        requests=requests,
        cpu_s=cpu_s,
        places=tuple(outcomes),
        not_simulated=tuple(name for name in wanted if name not in simulated),
    )


def _replay_place(
    builder: DeploymentBuilder, place: ServedPlace, choice: TrafficChoice, number: int, router: Router
) -> tuple[PlaceOutcome, int, float]:
    deployment = builder.deployment(place)
    requests = arriving(place, choice, number)
    if not len(requests):
        message = f"{place.service.name} has no request within {choice.duration_s:g} s"
        raise InputError([Issue("command line", 0, 0, "--duration", message, "simulate a longer time")])
    start = time.process_time()
    run = run_service(deployment, requests, router, choice.seed)
    took_s = time.process_time() - start
    return place_outcome(place, run, choice.duration_s), len(requests), took_s


def _rows_of_period(plan: Plan, period: str) -> list[Placement]:
    """Placements of the first slice and demand scenario of a period."""
    if period not in plan.periods:
        message = f"the plan has no period {period!r}"
        raise InputError([Issue("command line", 0, 0, "--period", message, names_hint(period, plan.periods))])
    rows = [row for row in plan.placements if row.period == period]
    first = rows[0].moment_key if rows else None
    return [row for row in rows if row.moment_key == first]


def _check_known(problem: Problem, plan: Plan, rows: Sequence[Placement], only: Sequence[str]) -> None:
    """Refuse services and configurations that the fleet file does not have."""
    known = list(problem.services)
    issues = [
        Issue("command line", 0, 0, "--service", f"there is no service {name!r}", names_hint(name, known))
        for name in only
        if name not in known
    ]
    candidates = {candidate.key for candidate in problem.candidates}
    for row in rows:
        if row.service not in known or (row.service, row.phase, row.hardware, row.config) not in candidates:
            message = (
                f"{row.service} runs {row.config} on {row.hardware} ({row.phase}), which is no candidate"
            )
            hint = "replay a plan with the fleet file, scenarios and settings that it was made with"
            issues.append(Issue(plan.fleet, 0, 0, "", message, hint))
    if issues:
        raise InputError(issues)
