"""One model, two solvers: CP-SAT finds plans, HiGHS raises the bound, whichever proves enough ends it."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace

from ortools.sat.python import cp_model

from fleetplan.planner.solvers.cpsat import configured_solver, hint
from fleetplan.planner.solvers.highs_race import FINEST_GAP, HighsAnswer, HighsRace, complete, gap_for
from fleetplan.planner.solvers.interrupt import Stop
from fleetplan.planner.solvers.request import (
    Enough,
    Listener,
    ModelOutcome,
    ModelStatus,
    SolverLimits,
    Step,
)
from fleetplan.planner.variables import Variables

CPSAT, HIGHS = "CP-SAT", "HiGHS"
"""Who found a plan or proved a bound."""

ALONE_S = 0.1
"""CP-SAT runs alone for so long: most small models are proved optimal before HiGHS has started. [s]"""

SEARCHES_OF_HIGHS = 2
"""With different seeds, and a core for each: alone on two cores they prove small fleets in a third less time
than one. More than two have not been measured."""

TURN_S = 0.1
"""Where there is no core for the second one, CP-SAT gives its own up to it once HiGHS has both the better
plan and the better bound; it is looked at so often. With three searches on two cores small fleets take
longer (docs/scaling.md). [s]"""

LEAST_RACE_S = 1.0
"""With less time CP-SAT goes on alone: HiGHS takes a quarter of a second to start. [s]"""

LATE_COMPLETION_S = 0.5
"""A plan that HiGHS has found in time may be completed for so long, at the limit. [s]"""

POLL_S = 0.02
"""How often a solve that waits for HiGHS looks up. [s]"""

FIRST_PLAN_GRACE_S = 10.0
"""Time past the limit to find a first plan. [s]"""

SECOND_OPINION_S = 10.0
"""Time to confirm that a model is infeasible. [s]"""

COMPLETION_LIMIT_S = 2.0
"""Time to complete a plan of HiGHS in integers: most take hundredths, and some that keep their rows within
tolerances alone would take for ever. [s]"""

FIRST_PLAN_LIMIT_S = 2.0
"""Time for a plan of a part that has none yet when a stop is requested. [s]"""


@dataclass(slots=True)
class _Best:
    """The best of both solvers; both threads write it under its lock.

    `cpsat` is CP-SAT while it runs; `gave_way` says that it ended for a second search of HiGHS.
    """

    enough: Enough
    listen: Listener
    lock: threading.RLock = field(default_factory=threading.RLock)
    objective: float | None = None
    objective_source: str = CPSAT
    bound: float | None = None
    bound_source: str = CPSAT
    values: cp_model.CpSolver | None = None
    cpsat: cp_model.CpSolver | None = None
    gave_way: bool = False

    def offer_objective(self, objective: float, source: str) -> bool:
        """Note an objective; True if it is the best so far."""
        with self.lock:
            if self.objective is not None and objective >= self.objective:
                return False
            self.objective, self.objective_source = objective, source
            self.listen(Step(source, "a better plan", self.objective, self.bound))
            return True

    def offer_bound(self, bound: float, source: str) -> None:
        with self.lock:
            if self.bound is None or bound > self.bound:
                self.bound, self.bound_source = bound, source
                self.listen(Step(source, "a better bound", self.objective, self.bound))

    def closed(self) -> bool:
        with self.lock:
            if self.objective is None or self.bound is None:
                return False
            return self.bound >= self.objective or self.enough(self.objective, self.bound)

    def led_by_highs(self) -> bool:
        """Whether HiGHS has the better plan and the better bound."""
        with self.lock:
            return self.values is not None and self.objective_source == self.bound_source == HIGHS

    def stop_cpsat(self) -> None:
        with self.lock:
            if self.cpsat is not None:
                self.cpsat.stop_search()


def solve_model(
    model: cp_model.CpModel,
    variables: Variables,
    limits: SolverLimits,
    enough: Enough,
    listen: Listener,
) -> ModelOutcome:
    """Minimise a model.

    Parameters
    ----------
    model : CpModel
        Linear, with an objective.
    variables : Variables
        Its decisions.
    limits : SolverLimits
        When to stop.
    enough : callable
        Whether a gap is small enough.
    listen : callable
        Told of every improvement.

    Returns
    -------
    ModelOutcome
        INFEASIBLE only by CP-SAT's proof, asked twice.
    """
    started = time.monotonic()
    best = _Best(enough, listen)
    deadline = started + limits.time_limit_s
    alone_s = min(FIRST_PLAN_LIMIT_S if limits.stop.requested else ALONE_S, limits.time_limit_s)
    solver, status = _run(model, limits, alone_s, best)
    spent = solver.response_proto.deterministic_time
    left = deadline - time.monotonic()
    if status == cp_model.INFEASIBLE:
        status = _second_opinion(model, limits, left, best)
    ended = status in (cp_model.OPTIMAL, cp_model.INFEASIBLE) or best.closed() or limits.stop.requested
    if ended or left <= LEAST_RACE_S:
        return _outcome(best, _first_plan(model, limits, best, status), spent)
    raced, status = _race(model, variables, limits, best, started)
    return _outcome(best, _first_plan(model, limits, best, status), spent + raced)


def _race(
    model: cp_model.CpModel, variables: Variables, limits: SolverLimits, best: _Best, started: float
) -> tuple[float, cp_model.CpSolverStatus]:
    """Run CP-SAT and HiGHS side by side, as many searches as there are cores for.

    Returns
    -------
    spent : float
        By CP-SAT. [its deterministic units]
    status : CpSolverStatus
        Of CP-SAT's last search.
    """
    deadline = started + limits.time_limit_s
    if best.values is not None:
        hint(model, best.values)
    gap = FINEST_GAP if best.objective is None else gap_for(best.objective, best.enough)

    def hear(answer: HighsAnswer) -> None:
        if answer.bound is not None:
            best.offer_bound(answer.bound, HIGHS)
        if answer.values is not None:
            in_time = min(COMPLETION_LIMIT_S, max(deadline - time.monotonic(), LATE_COMPLETION_S))
            exact = complete(model, variables, answer.values, in_time)
            if exact is not None and best.offer_objective(exact.objective_value, HIGHS):
                with best.lock:
                    best.values = exact
        if best.closed():
            best.stop_cpsat()

    cores = len(os.sched_getaffinity(0))
    room = cores > SEARCHES_OF_HIGHS and limits.workers > 1
    searches = SEARCHES_OF_HIGHS if room else 1
    beside = replace(limits, workers=min(limits.workers, max(1, cores - searches)))
    patience_s = max(limits.patience.seconds - (time.monotonic() - started), 0.0)
    left = deadline - time.monotonic()
    with (
        HighsRace(model, variables, left, gap, hear, searches) as race,
        _impatience(best, patience_s),
        nullcontext() if room else _making_way(best, race),
    ):
        solver, status = _run(model, beside, left, best)
        spent = solver.response_proto.deterministic_time
        if not best.gave_way or best.values is None:
            return spent, status
        _wait_for(race, best, limits.stop, deadline)
        left = deadline - time.monotonic()
        if best.closed() or limits.stop.requested or left <= ALONE_S:
            return spent, status
        # HiGHS computes with tolerances: what it leaves open in exact integers is CP-SAT's.
        hint(model, best.values)
        solver, status = _run(model, beside, left, best)
        return spent + solver.response_proto.deterministic_time, status


@contextmanager
def _impatience(best: _Best, seconds: float) -> Iterator[None]:
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
def _making_way(best: _Best, race: HighsRace) -> Iterator[None]:
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


def _wait_for(race: HighsRace, best: _Best, stop: Stop, deadline: float) -> None:
    """Wait until HiGHS has ended or found enough, or the time has."""
    while not (race.ended.wait(POLL_S) or best.closed() or stop.requested or time.monotonic() > deadline):
        pass


def _first_plan(
    model: cp_model.CpModel, limits: SolverLimits, best: _Best, status: cp_model.CpSolverStatus
) -> cp_model.CpSolverStatus:
    """Go on past the limit to a first plan: a short limit is no reason to come back with nothing."""
    if status != cp_model.UNKNOWN or best.values is not None or limits.patience.ends:
        return status
    solver = cp_model.CpSolver()
    solver.parameters.stop_after_first_solution = True
    return _run(model, limits, FIRST_PLAN_GRACE_S, best, solver)[1]


def _second_opinion(
    model: cp_model.CpModel, limits: SolverLimits, left_s: float, best: _Best
) -> cp_model.CpSolverStatus:
    """Ask CP-SAT once more without presolve, which has called feasible fleets infeasible.

    Without an answer in time the first one stands.
    """
    solver = cp_model.CpSolver()
    solver.parameters.cp_model_presolve = False
    _, status = _run(model, limits, max(min(left_s, SECOND_OPINION_S), 1.0), best, solver)
    return cp_model.INFEASIBLE if status == cp_model.UNKNOWN else status


def _outcome(best: _Best, status: cp_model.CpSolverStatus, deterministic_time: float) -> ModelOutcome:
    with best.lock:
        if status == cp_model.INFEASIBLE and best.values is None:
            known = ModelStatus.INFEASIBLE
        elif best.values is None:
            known = ModelStatus.UNKNOWN
        else:
            known = ModelStatus.SOLVED if best.closed() else ModelStatus.FOUND
        return ModelOutcome(
            known, best.values, best.objective, best.bound, best.bound_source, deterministic_time
        )


def _run(
    model: cp_model.CpModel,
    limits: SolverLimits,
    time_limit_s: float,
    best: _Best,
    solver: cp_model.CpSolver | None = None,
) -> tuple[cp_model.CpSolver, cp_model.CpSolverStatus]:
    """CP-SAT, its improvements noted."""
    if limits.stop.requested:
        time_limit_s = min(time_limit_s, FIRST_PLAN_LIMIT_S)
    solver = configured_solver(max(time_limit_s, 0.05), limits.seed, limits.workers, solver)
    report = _Report(solver, best)
    solver.best_bound_callback = report.on_bound
    limits.stop.running(solver)
    with best.lock:
        best.cpsat = solver
    status = solver.solve(model, report)
    with best.lock:
        best.cpsat = None
    limits.stop.running(None)
    if status == cp_model.MODEL_INVALID:
        raise RuntimeError(f"the model is invalid: {model.validate()}")
    if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        with best.lock:
            if best.values is None or best.objective is None or solver.objective_value <= best.objective:
                best.offer_objective(solver.objective_value, CPSAT)
                best.values = solver
        best.offer_bound(solver.best_objective_bound, CPSAT)
    return solver, status


class _Report(cp_model.CpSolverSolutionCallback):
    """Notes every better plan and bound, and stops at the gap that was asked for."""

    def __init__(self, solver: cp_model.CpSolver, best: _Best) -> None:
        super().__init__()
        self.solver = solver
        self.best = best

    def on_solution_callback(self) -> None:
        """Note the plan that was just found."""
        # A plan of HiGHS may be better; then this one is no news.
        self.best.offer_objective(self.objective_value, CPSAT)
        self.best.offer_bound(self.best_objective_bound, CPSAT)
        self._stop_if_enough()

    def on_bound(self, bound: float) -> None:
        """Note a better bound."""
        self.best.offer_bound(bound, CPSAT)
        self._stop_if_enough()

    def _stop_if_enough(self) -> None:
        if self.best.closed():
            self.solver.stop_search()
