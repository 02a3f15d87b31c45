"""One model, two solvers: CP-SAT finds plans, HiGHS raises the bound, whichever proves enough ends it."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace

from ortools.sat.python import cp_model

from fleetplan.fleet.machine import usable_cores
from fleetplan.planner.search.solvers.best import Best, proofs_of
from fleetplan.planner.search.solvers.cpsat import configured_solver, hint
from fleetplan.planner.search.solvers.highs_program import FINEST_GAP, HighsAnswer, complete, gap_for
from fleetplan.planner.search.solvers.highs_race import HighsRace
from fleetplan.planner.search.solvers.hinted import offer_hinted_plan
from fleetplan.planner.search.solvers.interrupt import Stop
from fleetplan.planner.search.solvers.proofs import CPSAT, HIGHS, WITHOUT_PRESOLVE
from fleetplan.planner.search.solvers.request import Enough, Listener, ModelOutcome, SolverLimits

ALONE_S = 0.1
"""CP-SAT runs alone for so long: most small models are proved optimal before HiGHS has started. [s]"""

SEARCHES_OF_HIGHS = 2
"""With different seeds, and a core for each: alone on two cores they prove small fleets in a third less time
than one. More than two have not been measured."""

TURN_S = 0.1
"""Where there is no core for the second one, CP-SAT gives its own up to it once HiGHS has both the better
plan and the better bound; it is looked at so often. With three searches on two cores small fleets take
longer (benchmarks/RESULTS.md). [s]"""

LEAST_RACE_S = 1.0
"""With less time CP-SAT goes on alone: HiGHS takes a quarter of a second to start. [s]"""

LATE_COMPLETION_S = 0.5
"""A plan that HiGHS has found in time may be completed for so long, at the limit. [s]"""

POLL_S = 0.02
"""How often a solve that waits for HiGHS looks up. [s]"""

FIRST_PLAN_GRACE_S = 10.0
"""Time past the limit to find a first plan. [s]"""

LEAST_CONFIRMATION_S = 0.5
"""Time that CP-SAT without presolve has, past the limit too, to confirm what it has claimed with it: nine of
ten small fleets take as long for it as for the claim, some hundredths. [s]"""

LEAST_SEARCH_S = 0.05
"""With less time left no search begins. [s]"""

COMPLETION_LIMIT_S = 2.0
"""Time to complete a plan of HiGHS in integers: most take hundredths, and some that keep their rows within
tolerances alone would take for ever. [s]"""

FIRST_PLAN_LIMIT_S = 2.0
"""Time for a plan of a part that has none yet when a stop is requested. [s]"""


def solve_model(
    model: cp_model.CpModel,
    continuous: frozenset[int],
    limits: SolverLimits,
    enough: Enough,
    on_step: Listener,
    impossible_by: Collection[str] = (),
) -> ModelOutcome:
    """Minimise a model.

    Parameters
    ----------
    model : CpModel
        Linear, with an objective.
    continuous : frozenset[int]
        Indices of the variables that HiGHS need not keep whole.
    limits : SolverLimits
        When to stop.
    enough : callable
        Whether a gap is small enough.
    on_step : callable
        Told of every improvement, and of every proof that a plan contradicts.
    impossible_by : Collection[str]
        Who has proven already that there is no plan.

    Returns
    -------
    ModelOutcome
        Its bound, and INFEASIBLE, never rest on CP-SAT's presolve alone (planner/search/solvers/proofs.py).
    """
    started = time.monotonic()
    best = Best(enough, on_step, proofs_of(model, continuous))
    for prover in impossible_by:
        best.offer_infeasible(prover)
    deadline = started + limits.time_limit_s
    alone_s = min(FIRST_PLAN_LIMIT_S if limits.stop.requested else ALONE_S, limits.time_limit_s)
    spent = offer_hinted_plan(model, limits, best)
    spent += _search(model, limits, best, min(time.monotonic() + alone_s, deadline), LEAST_CONFIRMATION_S)
    if not (best.settled() or limits.stop.requested):
        left_s = deadline - time.monotonic()
        if left_s > LEAST_RACE_S:
            spent += _race(model, continuous, limits, best, started)
        elif left_s > LEAST_SEARCH_S:
            spent += _search(model, limits, best, deadline)
    _first_plan(model, limits, best)
    return best.outcome(spent)


def _search(
    model: cp_model.CpModel, limits: SolverLimits, best: Best, deadline: float, confirmation_s: float = 0.0
) -> float:
    """Run CP-SAT with presolve, and without where that is all that is missing or has proven something false.

    Parameters
    ----------
    model, limits, best
        What is solved.
    deadline : float
        When it ends. [s]
    confirmation_s : float
        Time without presolve at the least, past the deadline too. [s]

    Returns
    -------
    float
        What it took. [CP-SAT's deterministic units]
    """
    presolve = not best.needs_other_proof()
    spent = _run(model, limits, deadline - time.monotonic(), best, presolve)
    left_s = max(deadline - time.monotonic(), confirmation_s)
    ended = best.settled() or best.gave_way or limits.stop.requested
    if ended or not presolve or left_s < LEAST_SEARCH_S or not best.needs_other_proof():
        return spent
    if best.values is not None:
        hint(model, best.values)
    return spent + _run(model, limits, left_s, best, presolve=False)


def _race(
    model: cp_model.CpModel, continuous: frozenset[int], limits: SolverLimits, best: Best, started: float
) -> float:
    """Run CP-SAT and HiGHS side by side, as many searches as there are cores for.

    Returns
    -------
    float
        What CP-SAT took. [its deterministic units]
    """
    deadline = started + limits.time_limit_s
    if best.values is not None:
        hint(model, best.values)
    known, gap = math.inf, FINEST_GAP
    if best.objective is not None:
        known, gap = best.objective, gap_for(best.objective, best.enough)

    def on_answer(answer: HighsAnswer) -> None:
        if answer.values is not None:
            in_time = min(COMPLETION_LIMIT_S, max(deadline - time.monotonic(), LATE_COMPLETION_S))
            exact, _ = complete(model, continuous, answer.values, in_time)
            if exact is not None:
                best.offer_plan(exact, HIGHS)
        if answer.bound is not None:
            best.offer_bound(answer.bound, HIGHS)
        if answer.infeasible:
            best.offer_infeasible(HIGHS)
        if best.settled():
            best.stop_cpsat()

    cores = usable_cores()
    room = cores > SEARCHES_OF_HIGHS and limits.workers > 1
    searches = SEARCHES_OF_HIGHS if room else 1
    beside = replace(limits, workers=min(limits.workers, max(1, cores - searches)))
    patience_s = max(limits.patience.seconds - (time.monotonic() - started), 0.0)
    left = deadline - time.monotonic()
    with (
        HighsRace(model, continuous, left, gap, on_answer, searches, known) as race,
        _impatience(best, patience_s),
        nullcontext() if room else _making_way(best, race),
    ):
        spent = _search(model, beside, best, deadline)
        if not best.gave_way or best.values is None:
            patient_until = deadline if best.values is not None else started + limits.patience.seconds
            _wait_for(race, best, limits.stop, min(deadline, patient_until))
            return spent
        _wait_for(race, best, limits.stop, deadline)
        if best.settled() or limits.stop.requested or deadline - time.monotonic() <= ALONE_S:
            return spent
        # HiGHS computes with tolerances: what it leaves open in exact integers is CP-SAT's.
        best.gave_way = False
        hint(model, best.values)
        return spent + _search(model, beside, best, deadline)


@contextmanager
def _impatience(best: Best, seconds: float) -> Iterator[None]:
    """End a search that has found no plan after some time."""

    def give_up() -> None:
        if best.objective is None:
            best.stop_cpsat()

    timer = threading.Timer(min(seconds, threading.TIMEOUT_MAX), give_up)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


@contextmanager
def _making_way(best: Best, race: HighsRace) -> Iterator[None]:
    """End CP-SAT for a second search of HiGHS once the first one leads."""
    over = threading.Event()

    def look() -> None:
        while not over.wait(TURN_S):
            if best.led_by_highs():
                best.gave_way = True
                race.search_more()
                best.stop_cpsat()
                return

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _wait_for(race: HighsRace, best: Best, stop: Stop, deadline: float) -> None:
    """Wait until HiGHS has ended or found enough, or the time has."""
    while not (race.ended.wait(POLL_S) or best.settled() or stop.requested or time.monotonic() > deadline):
        pass


def _first_plan(model: cp_model.CpModel, limits: SolverLimits, best: Best) -> None:
    """Go on past the limit to a first plan: a short limit is no reason to come back with nothing."""
    grace_s = min(FIRST_PLAN_GRACE_S, limits.latest.left_s)
    known = best.settled() or best.values is not None
    if known or limits.patience.ends or grace_s < LEAST_SEARCH_S:
        return
    solver = cp_model.CpSolver()
    solver.parameters.stop_after_first_solution = True
    _run(model, limits, grace_s, best, not best.needs_other_proof(), solver)


def _run(
    model: cp_model.CpModel,
    limits: SolverLimits,
    time_limit_s: float,
    best: Best,
    presolve: bool,
    solver: cp_model.CpSolver | None = None,
) -> float:
    """Run CP-SAT, its plans and proofs noted; what it took. [its deterministic units]"""
    if limits.stop.requested:
        time_limit_s = min(time_limit_s, FIRST_PLAN_LIMIT_S)
    prover = CPSAT if presolve else WITHOUT_PRESOLVE
    solver = configured_solver(
        max(time_limit_s, LEAST_SEARCH_S), limits.seed, limits.workers, solver, presolve
    )
    report = _Report(solver, best, prover)
    solver.best_bound_callback = report.on_bound
    with limits.stop.reaches(solver):
        best.runs(solver, prover)
        status = solver.solve(model, report)
        best.runs(None)
    if status == cp_model.MODEL_INVALID:
        raise RuntimeError(f"the model is invalid: {model.validate()}")
    if status == cp_model.INFEASIBLE:
        best.offer_infeasible(prover)
    if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        best.offer_plan(solver, CPSAT)
        best.offer_bound(solver.best_objective_bound, prover)
    return solver.response_proto.deterministic_time


class _Report(cp_model.CpSolverSolutionCallback):
    """Notes every better plan and bound, and stops where there is nothing left to find."""

    def __init__(self, solver: cp_model.CpSolver, best: Best, prover: str) -> None:
        super().__init__()
        self.solver = solver
        self.best = best
        self.prover = prover

    def on_solution_callback(self) -> None:
        """Note the plan that was just found."""
        # A plan of HiGHS may be better; then this one is no news.
        self.best.offer_objective(self.objective_value, CPSAT)
        self.on_bound(self.best_objective_bound)

    def on_bound(self, bound: float) -> None:
        """Note a better bound."""
        self.best.offer_bound(bound, self.prover)
        if self.best.settled() or (self.prover == CPSAT and self.best.needs_other_proof()):
            self.solver.stop_search()
