"""Data flow: fleet -> candidates -> problem -> search -> plan -> verified plan."""

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
"""Largest time past the limit, candidates included, for a first plan or an explanation of infeasibility. A
process takes about 4 s more: imports, the fleet file, and steps that cannot be interrupted, such as the last
model and the verification. [s]"""

LEAST_EXPLANATION_S: Final = 2.0
"""Least time for that if candidates take long: their evaluation stops when only this is left. [s]"""

ROW_SHORTAGE_GAP_RATIO: Final = 0.05
"""Target gap of the shortage in one row of an answer. In `quarterly.yaml` on B200 alone, the last 2 % take at
least 8 s of a core; on H200 alone, 1 s."""

SHORTAGES_SHARE_OF_TIME: Final = 0.5
"""Share of the remaining time to find what is short; the rest is for the conflict and its resolutions."""


class NoPlanFoundError(LimitReachedError):
    """A limit was reached before the first plan, and infeasibility is not proven."""


class Purpose(Enum):
    """Purpose of a solve."""

    ANSWER = "answer"
    """Ctrl-C returns the best plan so far; infeasible problems get an explanation."""
    ROW = "row"
    """One row of the answer: Ctrl-C ends the question; infeasible problems get an approximate explanation."""
    STEP = "step"
    """One solve of many: Ctrl-C ends the question."""


@dataclass(frozen=True, slots=True)
class Planned:
    """Verified plan, or proof of infeasibility, with its problem."""

    problem: Problem
    candidates: CandidateSet
    outcome: Plan | Infeasible
    deadline: Deadline = NEVER
    """Deadline of everything reported about it."""


Prepared = Callable[[Fleet, Callable[[], bool]], tuple[CandidateSet, Problem]]
"""Function that returns candidates and problem of a fleet, given a check of whether time is over."""


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
        Resolved fleet.
    limits : SearchLimits
        Time limit and target gap.
    watch : callable, optional
        Called with every better plan and bound.
    announce : callable, optional
        Called with a description of each step.
    baseline : Plan, optional
        The plan in force, against which starts in the first period are counted.
    prepared : callable, optional
        Replaces `prepare`, for a caller that has evaluated candidates before.

    Raises
    ------
    NoPlanFoundError
        If the limit was reached before the first plan.
    PlanError
        If the plan fails verification, which is a bug.
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
    """Return candidates and problem of a fleet, and the limits of a search, as in `evaluate_within`."""
    found, left = evaluate_within(limits, prepared)
    return *found, left


def evaluate_within(
    limits: SearchLimits, evaluated: Callable[[Callable[[], bool]], _FoundT]
) -> tuple[_FoundT, SearchLimits]:
    """Evaluate candidates within a deadline, and return the limits of a search in the remaining time.

    One-time work per installation does not count (`fleetplan.perfmodel.interruption`).

    Parameters
    ----------
    limits : SearchLimits
        Limits of candidates and search together. In reproducible runs, candidates have no limit.
    evaluated : callable
        Evaluates them, given a check of whether time is over.

    Raises
    ------
    NoPlanFoundError
        If the limit was reached before all candidates were evaluated.
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
    # Work between two steps of an evaluation cannot be interrupted.
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
    """Find and verify the cheapest plan of a problem with known candidates.

    Parameters
    ----------
    candidates : CandidateSet
        Candidates of the problem; the rejections explain infeasible fleets.
    problem, limits, watch : Problem, SearchLimits, callable or None
        As in `plan_fleet`.
    say : callable
        Called with a description of each step.
    purpose : Purpose
        Decides what Ctrl-C does, and whether infeasibility is explained.
    forecasts : bool
        Whether to evaluate wrong forecasts of uncertain demand, which takes about half of the time.

    Raises
    ------
    KeyboardInterrupt
        At Ctrl-C, unless the solve is the answer.
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
            raise NoPlanFoundError("stopped before the first plan")
        raise NoPlanFoundError(f"no plan within {limits.time_limit_s:g} s; raise --time-limit")
    solve = solve_record(result)
    if result.status is SolveStatus.INFEASIBLE:
        deadline = deadline.within(max(limits.explained.left_s, LEAST_EXPLANATION_S))
        if purpose is not Purpose.STEP:
            say("proven infeasible; finding what is short")
        short = _shortages(problem, candidates, limits, deadline, purpose)
        return Planned(problem, candidates, _infeasible(problem, candidates, short, stated, solve), deadline)
    plan = build_plan(problem, candidates, result, stated, solve)
    plan = plan.model_copy(update={"wrong_forecasts": wrong})
    require_valid(problem, plan)
    return Planned(problem, candidates, plan, deadline)


def _infeasible(
    problem: Problem, candidates: CandidateSet, short: Shortages, stated: PlanProvenance, solve: Solve
) -> Infeasible:
    """Return the outcome of an infeasible problem."""
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
    """Return the shortages of an infeasible problem, as exact as its purpose requires; none for a step."""
    if purpose is Purpose.STEP:
        return Shortages((), complete=False)
    part = deadline.share(SHORTAGES_SHARE_OF_TIME)
    gap_ratio = UNMET_GAP_RATIO if purpose is Purpose.ANSWER else ROW_SHORTAGE_GAP_RATIO
    return find_shortages(problem, candidates.rejections, limits.seed, limits.workers, part, gap_ratio)


def _until(limits: SearchLimits) -> tuple[SearchLimits, Deadline]:
    """Return the limits of a search, and the deadline of everything reported about it.

    In reproducible runs both count work, and the search gets its full limit.
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
    """Solve a problem; with uncertain demand, also each scenario alone, and wrong forecasts."""
    limits = evaluation.limits
    uncertain = bool(problem.fleet.demand_scenarios)
    if not uncertain or not (forecasts or problem.fleet.demand_objective == LEAST_REGRET):
        return problem, search(problem, limits, watch, evaluation.stop, evaluation.holds), ()
    problem, result, wrong = search_scenarios(problem, evaluation, watch, forecasts)
    unknown = problem.fleet.demand_objective == LEAST_REGRET and problem.scenario_optima is None
    if unknown and result.status is not SolveStatus.INFEASIBLE:
        raise NoPlanFoundError(
            "least regret needs the best plan of each demand scenario alone, and one scenario has no plan "
            f"within its share of {limits.time_limit_s:g} s; raise --time-limit or minimise expected cost"
        )
    return problem, result, wrong
