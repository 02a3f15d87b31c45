"""Run a replay, from a plan and its fleet to its outcome."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fleetplan.fleet.errors import InputError, Issue, LimitReachedError, names_hint
from fleetplan.fleet.figures import counted
from fleetplan.perfmodel.interruption import WorkInterruptedError, checkpoint, interruptible
from fleetplan.perfmodel.parallelism import Configuration
from fleetplan.perfmodel.replay import Router, run_service
from fleetplan.planner.plan import Placement, Plan
from fleetplan.planner.problem import Problem
from fleetplan.planner.replay.deployment import (
    DeploymentBuilder,
    ServedPlace,
    served_places,
)
from fleetplan.planner.replay.outcome import PlaceOutcome, ReplayOutcome, after_warm_up, place_outcome
from fleetplan.planner.replay.traffic import TrafficChoice, arriving


@dataclass(frozen=True, slots=True)
class ReplayScope:
    """Part of a plan to replay, and load balancing between its engines.

    Attributes
    ----------
    period : str
        Period of the plan.
    part_of_day : str or None
        Slice of the day; None for the first. Of several demand scenarios, the first is used.
    services : Sequence[str]
        Services to simulate; empty for all.
    router : Router
        Load balancing between engines with continuous batching.
    """

    period: str
    part_of_day: str | None = None
    services: Sequence[str] = ()
    router: Router = "least-loaded"


def replay_plan(
    problem: Problem,
    plan: Plan,
    choice: TrafficChoice,
    scope: ReplayScope,
    announce: Callable[[str], None] = lambda _: None,
    out_of_time: Callable[[], bool] = lambda: False,
) -> ReplayOutcome:
    """Simulate the requests of a plan.

    Parameters
    ----------
    problem : Problem
        Problem of the plan's fleet, with its candidates.
    plan : Plan
        Plan to replay.
    choice : TrafficChoice
        Arrivals of requests.
    scope : ReplayScope
        Part of the plan to replay.
    announce : callable
        Receives progress messages.
    out_of_time : callable
        Called before each service and region, and whenever a request ends; True ends the replay.

    Raises
    ------
    LimitReachedError
        The time is over before the last simulation.
    InputError
        The period, slice or service does not exist, or the fleet file does not allow a configuration.
    """
    only = scope.services
    rows = _rows_of_moment(plan, scope.period, scope.part_of_day)
    _check_known(problem, plan, rows, only)
    flows = [flow for flow in plan.kv_flows if rows and flow.moment_key == rows[0].moment_key]
    places = served_places(problem, rows, flows)
    places = [place for place in places if not only or place.service.name in only]
    builder = DeploymentBuilder(problem.fleet, problem)
    outcomes, requests, cpu_s = [], 0, 0.0
    for number, place in enumerate(places):
        announce(f"replaying {place.service.name} in {place.region} ({number + 1} of {len(places)})")
        try:
            with interruptible(out_of_time, announce):
                checkpoint()
                outcome, count, took_s = _replay_place(builder, place, choice, number, scope.router)
        except WorkInterruptedError as error:
            done = f"{number} of {counted(len(places), 'service')} in a region simulated"
            raise LimitReachedError(
                f"{done}; choose a --service, a shorter --duration, or raise --time-limit"
            ) from error
        outcomes.append(outcome)
        requests, cpu_s = requests + count, cpu_s + took_s
    simulated = {place.service.name for place in places}
    wanted = dict.fromkeys(row.service for row in rows if not only or row.service in only)
    return ReplayOutcome(
        fleet=plan.fleet,
        period=scope.period,
        slice=rows[0].slice if rows else None,
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
    if not after_warm_up(requests, choice.duration_s).any():
        message = f"{place.service.name} has no request within {choice.duration_s:g} s after the warm-up"
        raise InputError([Issue("command line", 0, 0, "--duration", message, "use a longer --duration")])
    start = time.process_time()
    run = run_service(deployment, requests, router, choice.seed)
    took_s = time.process_time() - start
    return place_outcome(place, run, choice.duration_s, choice.seed), len(requests), took_s


def _rows_of_moment(plan: Plan, period: str, part_of_day: str | None) -> list[Placement]:
    """Return the placements of a period and slice in the first demand scenario."""
    if period not in plan.periods:
        message = f"the plan has no period {period!r}"
        raise InputError([Issue("command line", 0, 0, "--period", message, names_hint(period, plan.periods))])
    rows = [row for row in plan.placements if row.period == period]
    slices = list(dict.fromkeys(row.slice for row in rows if row.slice))
    if part_of_day is not None and part_of_day not in slices:
        message = f"the plan has no slice {part_of_day!r}"
        raise InputError([Issue("command line", 0, 0, "--slice", message, names_hint(part_of_day, slices))])
    if part_of_day is not None:
        rows = [row for row in rows if row.slice == part_of_day]
    first = rows[0].moment_key if rows else None
    return [row for row in rows if row.moment_key == first]


def _check_known(problem: Problem, plan: Plan, rows: Sequence[Placement], only: Sequence[str]) -> None:
    """Raise an error for services and configurations that the fleet file lacks."""
    known = list(problem.services)
    issues = [
        Issue("command line", 0, 0, "--service", f"there is no service {name!r}", names_hint(name, known))
        for name in only
        if name not in known
    ]
    candidates = {candidate.key for candidate in problem.candidates}
    hint = "replay a plan with its own fleet file"
    for row in rows:
        if row.service not in known or row.hardware not in problem.hardware:
            message = f"the plan runs {row.service} on {row.hardware}, which is not in the fleet file"
            issues.append(Issue(plan.fleet, 0, 0, "", message, hint))
        elif lacks_batch(problem, row) and row.key not in candidates:
            message = (
                f"{row.service} runs {row.config} on {row.hardware} ({row.phase}), which is not a candidate"
            )
            issues.append(Issue(plan.fleet, 0, 0, "", message, f"{hint}, its scenarios and its settings"))
    if issues:
        raise InputError(list(dict.fromkeys(issues)))


def lacks_batch(problem: Problem, row: Placement) -> bool:
    """Return whether the batch of a placement is only known from the candidates of the fleet."""
    service = problem.services.get(row.service)
    modelled = service is not None and service.model is not None
    return modelled and Configuration.parse(row.config).batch is None
