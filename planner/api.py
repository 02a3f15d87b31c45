"""The way of the data: fleet -> candidates -> problem -> search -> plan -> verified plan."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from typing import Final, TypeVar

from fleetplan.fleet.errors import LimitReachedError
from fleetplan.fleet.figures import counted
from fleetplan.fleet.inventory import Fleet
from fleetplan.perfmodel.interruption import once_s
from fleetplan.planner.assemble import build_plan, provenance, solve_record, within_budgets
from fleetplan.planner.candidates import CandidateSet, OutOfTimeError, prepare
from fleetplan.planner.plan import (
    UNMET_GAP_RATIO,
    Infeasible,
    Plan,
    PlanProvenance,
    Solve,
    WrongForecast,
)
from fleetplan.planner.problem import Problem
from fleetplan.planner.search import (
    LEAST_REGRET,
    NEVER,
    Deadline,
    Evaluation,
    SearchLimits,
    SearchResult,
    Shortages,
    SolveStatus,
    Stop,
    Watcher,
    find_shortages,
    run_interruptibly,
    search,
    search_scenarios,
)
from fleetplan.planner.verify import require_valid

_FoundT = TypeVar("_FoundT")

EXPLANATION_S: Final = 5.5
"""Time past the limit at the most, candidates included: for a first plan, or to say why there is none. A
process takes some four seconds more: imports, the fleet file, and what nothing cuts short, such as the last
model and the check of the plan. [s]"""

LEAST_EXPLANATION_S: Final = 2.0
"""The same at the least, where candidates took long: they are given up when no more than this is left. [s]"""

ROW_SHORTAGE_GAP_RATIO: Final = 0.05
"""What the shortage of one row of an answer may be above the least, as a share of it. Of `quarterly.yaml` on
B200 alone the last 2 % took 8 s of a core and more, on H200 alone they took 1 s."""

SHORTAGES_SHARE_OF_TIME: Final = 0.5
"""Share of the time left to find out what is short; the rest is for the conflict and the ways out of it."""


class NoPlanFoundError(LimitReachedError):
    """A limit was reached before the first plan, and infeasibility is not proven."""


class Purpose(Enum):
    """What a solve is for."""

    ANSWER = "answer"
    """Ctrl-C returns the best plan so far; it is said what an infeasible problem lacks."""
    ROW = "row"
    """One row of the answer: Ctrl-C ends the question; it is said about what an infeasible one lacks."""
    STEP = "step"
    """One solve of many: Ctrl-C ends the question."""


@dataclass(frozen=True, slots=True)
class Planned:
    """A verified plan, or the proof that there is none, with the problem behind it."""

    problem: Problem
    candidates: CandidateSet
    outcome: Plan | Infeasible
    deadline: Deadline = NEVER
    """When everything that is said of it is to be over."""


Prepared = Callable[[Fleet, Callable[[], bool]], tuple[CandidateSet, Problem]]
"""Returns candidates and problem of a fleet, the plan in force included, given what says whether the time is
over."""


def plan_fleet(
    fleet: Fleet,
    limits: SearchLimits,
    watch: Watcher | None = None,
    announce: Callable[[str], None] | None = None,
    baseline: Plan | None = None,
    prepared: Prepared | None = None,
) -> Planned:
    """Find and verify the cheapest plan of a fleet.

    Parameters
    ----------
    fleet : Fleet
        The resolved fleet.
    limits : SearchLimits
        When to stop.
    watch : callable, optional
        Told of every better plan and bound.
    announce : callable, optional
        Told what is being done.
    baseline : Plan, optional
        The plan in force: what starts in the first period is counted against it.
    prepared : callable, optional
        Evaluates candidates in place of `prepare`, for a caller that has evaluated some of them before.

    Raises
    ------
    NoPlanFoundError
        If the limit came before the first plan.
    PlanError
        If the plan breaks a rule: a bug.
    """
    say = announce or (lambda _: None)

    def evaluated(late: Callable[[], bool]) -> tuple[CandidateSet, Problem]:
        return prepare(fleet, say, baseline, late) if prepared is None else prepared(fleet, late)

    candidates, problem, limits = prepare_within(limits, evaluated)
    say(f"{counted(len(candidates.candidates), 'candidate')}; solving")
    return solve_problem(candidates, problem, limits, watch, say, forecasts=True)


def prepare_within(
    limits: SearchLimits, prepared: Callable[[Callable[[], bool]], tuple[CandidateSet, Problem]]
) -> tuple[CandidateSet, Problem, SearchLimits]:
    """Candidates and problem of a fleet, and the limits of a search; as `evaluate_within`."""
    found, left = evaluate_within(limits, prepared)
    return *found, left


def evaluate_within(
    limits: SearchLimits, evaluated: Callable[[Callable[[], bool]], _FoundT]
) -> tuple[_FoundT, SearchLimits]:
    """What is made of the candidates of a fleet, and the limits of a search in the time that they leave.

    What is done once per installation does not count (`fleetplan.perfmodel.interruption`).

    Parameters
    ----------
    limits : SearchLimits
        Of the candidates and the search together. Where the clock must not decide, candidates have no limit.
    evaluated : callable
        Evaluates them, given what says whether the time is over.

    Raises
    ------
    NoPlanFoundError
        If the limit came before all candidates were evaluated.
    """
    if limits.reproducible:
        return evaluated(lambda: False), limits
    begun, once_before_s = Deadline.after(0.0), once_s()

    def all_over_but(seconds: float) -> Deadline:
        whole_s = limits.time_limit_s + EXPLANATION_S + once_s() - once_before_s
        return replace(limits.latest, ends=min(limits.latest.ends, begun.ends + whole_s - seconds))

    try:
        found = evaluated(lambda: all_over_but(LEAST_EXPLANATION_S).passed)
    except OutOfTimeError as error:
        raise NoPlanFoundError(str(error.within(limits.time_limit_s))) from error
    all_over = all_over_but(0.0)
    # What lies between two steps of an evaluation is not cut short.
    latest = Deadline(max(all_over.ends, Deadline.after(LEAST_EXPLANATION_S).ends))
    return found, replace(limits, latest=latest, explained=all_over)


def solve_problem(
    candidates: CandidateSet,
    problem: Problem,
    limits: SearchLimits,
    watch: Watcher | None,
    say: Callable[[str], None],
    purpose: Purpose = Purpose.ANSWER,
    forecasts: bool = False,
) -> Planned:
    """Find and verify the cheapest plan of a problem whose candidates are known.

    Parameters
    ----------
    candidates : CandidateSet
        Where the problem's candidates come from; what was left out explains an infeasible fleet.
    problem, limits, watch : Problem, SearchLimits, callable or None
        As `plan_fleet` has them.
    say : callable
        Told what is being done.
    purpose : Purpose
        What Ctrl-C does, and whether it is said what an infeasible problem lacks.
    forecasts : bool
        Whether to say, of uncertain demand, what would be best for each scenario, and what it costs to be
        wrong; takes about half of the time.

    Raises
    ------
    KeyboardInterrupt
        At Ctrl-C in a solve that is not the answer.
    """
    limits, deadline = _until(limits)
    stated = provenance(problem.fleet, candidates, limits)

    def built(part: Problem, result: SearchResult) -> Plan:
        plan = build_plan(part, candidates, result, stated, solve_record(result))
        require_valid(part, plan)
        return plan

    stops: list[Stop] = []

    def searched(stop: Stop) -> tuple[Problem, SearchResult, tuple[WrongForecast, ...]]:
        stops.append(stop)
        return _searched(problem, Evaluation(limits, stop, built, within_budgets), watch, forecasts)

    problem, result, wrong = run_interruptibly(
        searched,
        lambda: say("stopping at the best plan; press Ctrl-C again to abort"),
        keep_best=purpose is Purpose.ANSWER,
    )
    deadline.note(result.deterministic_time)
    if result.status is SolveStatus.NO_PLAN:
        if any(stop.requested for stop in stops):
            raise NoPlanFoundError("stopped before there was a plan")
        raise NoPlanFoundError(f"no plan within {limits.time_limit_s:g} s; raise --time-limit")
    solve = solve_record(result)
    if result.status is SolveStatus.INFEASIBLE:
        deadline = deadline.within(max(limits.explained.left_s, LEAST_EXPLANATION_S))
        if purpose is not Purpose.STEP:
            say("proven infeasible; looking for the shortage")
        short = _shortages(problem, candidates, limits, deadline, purpose)
        return Planned(problem, candidates, _infeasible(problem, candidates, short, stated, solve), deadline)
    plan = build_plan(problem, candidates, result, stated, solve)
    plan = plan.model_copy(update={"wrong_forecasts": wrong})
    require_valid(problem, plan)
    return Planned(problem, candidates, plan, deadline)


def _infeasible(
    problem: Problem, candidates: CandidateSet, short: Shortages, stated: PlanProvenance, solve: Solve
) -> Infeasible:
    """What is written down of a problem without any plan."""
    return Infeasible(
        fleet=problem.fleet.name,
        shortages=short.rows,
        shortages_complete=short.complete,
        shortages_least=short.least,
        rejections=candidates.rejections,
        provenance=stated,
        solve=solve,
    )


def _shortages(
    problem: Problem, candidates: CandidateSet, limits: SearchLimits, deadline: Deadline, purpose: Purpose
) -> Shortages:
    """What an infeasible problem lacks, as closely as its purpose needs it; nothing for a step."""
    if purpose is Purpose.STEP:
        return Shortages((), complete=False)
    part = deadline.share(SHORTAGES_SHARE_OF_TIME)
    gap_ratio = UNMET_GAP_RATIO if purpose is Purpose.ANSWER else ROW_SHORTAGE_GAP_RATIO
    return find_shortages(problem, candidates.rejections, limits.seed, limits.workers, part, gap_ratio)


def _until(limits: SearchLimits) -> tuple[SearchLimits, Deadline]:
    """Limits of a search, and the deadline of all that is said of it.

    Where the clock must not decide, both count work, and the search has all of its own.
    """
    whole_s = limits.time_limit_s + EXPLANATION_S
    if not limits.reproducible:
        deadline = limits.latest.within(whole_s)
        return replace(limits, latest=deadline), deadline
    counted = limits.latest.spent is not None
    deadline = limits.latest.within(whole_s) if counted else Deadline.after(whole_s, counted=True)
    return replace(limits.from_now(), latest=NEVER), deadline


def _searched(
    problem: Problem, evaluation: Evaluation, watch: Watcher | None, forecasts: bool
) -> tuple[Problem, SearchResult, tuple[WrongForecast, ...]]:
    """Solve a problem; of uncertain demand each scenario alone, and the wrong forecasts, too."""
    limits = evaluation.limits
    uncertain = bool(problem.fleet.demand_scenarios)
    if not uncertain or not (forecasts or problem.fleet.demand_objective == LEAST_REGRET):
        return problem, search(problem, limits, watch, evaluation.stop, evaluation.holds), ()
    problem, result, wrong = search_scenarios(problem, evaluation, watch, forecasts)
    unknown = problem.fleet.demand_objective == LEAST_REGRET and problem.scenario_optima is None
    if unknown and result.status is not SolveStatus.INFEASIBLE:
        raise NoPlanFoundError(
            "a regret counts from the best plan for each demand scenario alone, and one of them has none "
            f"within its part of {limits.time_limit_s:g} s; raise --time-limit, or ask for the expected cost"
        )
    return problem, result, wrong
