"""Race of two solvers on one model: CP-SAT finds plans, HiGHS raises the bound."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import Final

from ortools.sat.python import cp_model

from fleetplan.fleet.machine import usable_cores
from fleetplan.planner.search.solvers.best import BestFound, proofs_of
from fleetplan.planner.search.solvers.cpsat import configured_solver, hint
from fleetplan.planner.search.solvers.highs_program import FINEST_GAP, HighsAnswer, complete, gap_for
from fleetplan.planner.search.solvers.highs_race import HighsRace
from fleetplan.planner.search.solvers.hinted import offer_hinted_plan
from fleetplan.planner.search.solvers.interrupt import Stop
from fleetplan.planner.search.solvers.proofs import CPSAT, HIGHS, WITHOUT_PRESOLVE
from fleetplan.planner.search.solvers.request import Enough, Listener, ModelOutcome, Patience, SolverLimits

ALONE_S = 0.1
"""Time for CP-SAT alone: most small models are proven optimal before HiGHS has started. [s]"""

ALONE_VARIABLES: Final = 3000
"""Models of so many variables are for both at once: presolve of 4,790 takes CP-SAT two seconds of a core and
more, whatever its limit."""

SEARCHES_OF_HIGHS = 2
"""HiGHS searches with different seeds, one core each: on two cores, two prove small fleets in a third less
time than one. More are not measured."""

TURN_S = 0.1
"""Interval to check whether CP-SAT should give its core to a second HiGHS search, because HiGHS has both the
better plan and the better bound. Three searches on two cores would slow down small fleets
(benchmarks/RESULTS.md). [s]"""

LEAST_RACE_S = 1.0
"""Least remaining time for the race: HiGHS takes a quarter of a second to start. [s]"""

LATE_COMPLETION_S = 0.5
"""Time past the limit to complete a plan that HiGHS found in time. [s]"""

POLL_S = 0.02
"""Polling interval while waiting for HiGHS. [s]"""

FIRST_PLAN_GRACE_S = 10.0
"""Time past the limit to find a first plan. [s]"""

LEAST_CONFIRMATION_S = 0.5
"""Time for CP-SAT without presolve to confirm a claim, past the limit too: for nine of ten small fleets it
takes as long as the claim, some hundredths of a second. [s]"""

CONFIRMATION_RATIO: Final = 1.0
"""Time for a second proof that there is no plan, over that of the first claim, where some demand may stay
unmet: least unmet demand is proven instead."""

LEAST_SEARCH_S = 0.05
"""Least remaining time to start a search. [s]"""

COMPLETION_LIMIT_S = 2.0
"""Time limit to complete a plan of HiGHS in integers: most take hundredths, but a plan that satisfies its
rows only within tolerances may never complete. [s]"""

FIRST_PLAN_LIMIT_S = 2.0
"""Time to find a first plan of a part after a stop request. [s]"""


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
        Linear model with an objective.
    continuous : frozenset[int]
        Variables that may be fractional for HiGHS.
    limits : SolverLimits
        Time limit and stop conditions.
    enough : callable
        Returns whether a gap is small enough.
    on_step : callable
        Called on every improvement, and on every proof that a plan contradicts.
    impossible_by : Collection[str]
        Provers of infeasibility so far.

    Returns
    -------
    ModelOutcome
        Its bound, or INFEASIBLE, never rests on CP-SAT's presolve alone (planner/search/solvers/proofs.py).
    """
    started = time.monotonic()
    best = BestFound(enough, on_step, proofs_of(model, continuous))
    for prover in impossible_by:
        best.offer_infeasible(prover)
    deadline = started + limits.time_limit_s
    alone_s = min(FIRST_PLAN_LIMIT_S if limits.stop.requested else ALONE_S, limits.time_limit_s)
    spent = offer_hinted_plan(model, limits, best)
    is_short = limits.stop.requested or limits.time_limit_s <= LEAST_RACE_S
    if is_short or len(model.proto.variables) < ALONE_VARIABLES:
        until = min(time.monotonic() + alone_s, deadline)
        spent += _search(model, limits, best, until, LEAST_CONFIRMATION_S)
    if not (best.settled() or limits.stop.requested):
        left_s = deadline - time.monotonic()
        if left_s > LEAST_RACE_S:
            spent += _race(model, continuous, limits, best, started)
        elif left_s > LEAST_SEARCH_S:
            spent += _search(model, limits, best, deadline)
    _first_plan(model, limits, best)
    return best.outcome(spent)


def _search(
    model: cp_model.CpModel,
    limits: SolverLimits,
    best: BestFound,
    deadline: float,
    confirmation_s: float = 0.0,
) -> float:
    """Run CP-SAT with presolve, then without if only a confirmation is missing or a claim was false.

    Parameters
    ----------
    model, limits, best
        Model, limits, and shared results.
    deadline : float
        End of the search. [s]
    confirmation_s : float
        Least time without presolve, past the deadline too. [s]

    Returns
    -------
    float
        Work done. [CP-SAT's deterministic units]
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
    model: cp_model.CpModel, continuous: frozenset[int], limits: SolverLimits, best: BestFound, started: float
) -> float:
    """Run CP-SAT and HiGHS in parallel, with as many searches as there are cores.

    Returns
    -------
    float
        Work of CP-SAT. [its deterministic units]
    """
    deadline = started + limits.time_limit_s
    if best.values is not None:
        hint(model, best.values)
    known, gap = math.inf, FINEST_GAP
    if best.objective is not None:
        known, gap = best.objective, gap_for(best.objective, best.enough)

    def on_answer(answer: HighsAnswer) -> None:
        if answer.values is not None:
            completion_s = min(COMPLETION_LIMIT_S, max(deadline - time.monotonic(), LATE_COMPLETION_S))
            exact, _ = complete(model, continuous, answer.values, completion_s)
            if exact is not None:
                best.offer_plan(exact, HIGHS)
        if answer.bound is not None:
            best.offer_bound(answer.bound, HIGHS)
        if answer.infeasible:
            best.offer_infeasible(HIGHS)
        if best.settled():
            best.stop_cpsat()

    cores = usable_cores()
    fits_both = cores > SEARCHES_OF_HIGHS and limits.workers > 1
    searches = SEARCHES_OF_HIGHS if fits_both else 1
    cpsat_limits = replace(limits, workers=min(limits.workers, max(1, cores - searches)))
    left_s = deadline - time.monotonic()
    with (
        HighsRace(model, continuous, left_s, gap, on_answer, searches, known) as race,
        best.sharing_with(race.know),
        _impatience(best, limits.patience, started) as given_up,
        nullcontext() if fits_both else _making_way(best, race),
    ):
        cpsat_work = _search(model, cpsat_limits, best, deadline)
        if given_up.is_set():
            return cpsat_work
        if not best.gave_way or best.values is None:
            patient_until = deadline if best.values is not None else started + limits.patience.seconds
            _wait_for(race, best, limits.stop, min(deadline, patient_until))
            return cpsat_work
        _wait_for(race, best, limits.stop, deadline)
        if best.settled() or limits.stop.requested or deadline - time.monotonic() <= ALONE_S:
            return cpsat_work
        # HiGHS computes with tolerances: CP-SAT closes the rest in exact integers.
        best.gave_way = False
        hint(model, best.values)
        return cpsat_work + _search(model, cpsat_limits, best, deadline)


@contextmanager
def _impatience(best: BestFound, patience: Patience, started: float) -> Iterator[threading.Event]:
    """End a search that has found no plan within a time, sooner after a claim that there is none.

    Yields
    ------
    threading.Event
        Set when the search was ended.
    """
    over, ended = threading.Event(), threading.Event()

    def look() -> None:
        until_s = patience.seconds
        while not over.wait(TURN_S):
            passed_s = time.monotonic() - started
            if best.calls_infeasible():
                until_s = min(until_s, passed_s * (1 + CONFIRMATION_RATIO))
            if best.objective is not None:
                return
            if passed_s > until_s:
                ended.set()
                best.stop_cpsat()
                return

    thread = threading.Thread(target=look, daemon=True)
    if patience.seconds < math.inf:
        thread.start()
    try:
        yield ended
    finally:
        over.set()
        if thread.ident is not None:
            thread.join()


@contextmanager
def _making_way(best: BestFound, race: HighsRace) -> Iterator[None]:
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


def _wait_for(race: HighsRace, best: BestFound, stop: Stop, deadline: float) -> None:
    """Wait until HiGHS has ended, the gap is closed, or time is over."""
    while not (race.ended.wait(POLL_S) or best.settled() or stop.requested or time.monotonic() > deadline):
        pass


def _first_plan(model: cp_model.CpModel, limits: SolverLimits, best: BestFound) -> None:
    """Search a first plan past the limit, so that a short limit does not return nothing."""
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
    best: BestFound,
    presolve: bool,
    solver: cp_model.CpSolver | None = None,
) -> float:
    """Run CP-SAT, and store its plans and proofs; return its work. [CP-SAT's deterministic units]"""
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
    """Callback that stores better plans and bounds, and stops when nothing is left to find."""

    def __init__(self, solver: cp_model.CpSolver, best: BestFound, prover: str) -> None:
        super().__init__()
        self.solver = solver
        self.best = best
        self.prover = prover

    def on_solution_callback(self) -> None:
        """Store the plan just found."""
        # A plan of HiGHS may be better; then this one changes nothing.
        if self.best.offer_objective(self.objective_value, CPSAT):
            self.best.share(self.response_proto.solution)
        self.on_bound(self.best_objective_bound)

    def on_bound(self, bound: float) -> None:
        """Store a better bound."""
        self.best.offer_bound(bound, self.prover)
        if self.best.settled() or (self.prover == CPSAT and self.best.needs_other_proof()):
            self.solver.stop_search()
