"""Solving a model so that the same question gets the same answer, on any machine and beside anything else.

The race of two solvers (search/solvers/race.py) is quicker, but which of them is first decides which plan
within the gap comes out. Here CP-SAT searches with one worker for an amount of its own deterministic time,
then HiGHS runs once to the gap or to so many nodes, and neither looks at the clock.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import replace
from typing import Final

from ortools.sat.python import cp_model

from fleetplan.planner.search.solvers.best import Best, proofs_of
from fleetplan.planner.search.solvers.cpsat import configured_solver, hint, solve_by_work
from fleetplan.planner.search.solvers.highs_jobs import ANY_NODES, Array, Effort, Job
from fleetplan.planner.search.solvers.highs_program import (
    HighsAnswer,
    HighsProgram,
    complete,
    gap_between,
    gap_for,
)
from fleetplan.planner.search.solvers.hinted import offer_hinted_plan
from fleetplan.planner.search.solvers.interrupt import Stop
from fleetplan.planner.search.solvers.proofs import CPSAT, HIGHS, WITHOUT_PRESOLVE
from fleetplan.planner.search.solvers.request import Enough, ModelOutcome, SolverLimits
from fleetplan.planner.search.solvers.seats import ProcessSeats
from fleetplan.planner.search.solvers.workers import Workers, WorkersStoppedError, ending
from fleetplan.planner.search.work import nodes_within

FIRST_SEARCH: Final = 0.5
"""CP-SAT's share before HiGHS is asked: enough for small fleets. [deterministic units of CP-SAT]"""

SECOND_PROOF: Final = 20.0
"""Its share to confirm without presolve what it has proven with it. [the same]"""

COMPLETION_LIMIT: Final = 2.0
"""Effort to complete a plan of HiGHS in integers: most take hundredths. [solver units]"""

LATE_COMPLETION: Final = 0.5
"""The same at the limit. [solver units]"""

COARSE_GAP: Final = 0.05
"""Gap that HiGHS is asked for where no plan is known yet: the plan tells what gap is enough."""


class _UntilEnough(cp_model.CpSolverSolutionCallback):
    """Stops the search at the gap."""

    def __init__(self, enough: Enough) -> None:
        super().__init__()
        self.enough = enough

    def on_solution_callback(self) -> None:
        """Stop where plan and bound are close enough."""
        if self.enough(self.objective_value, self.best_objective_bound):
            self.stop_search()


def solve_reproducibly(
    model: cp_model.CpModel,
    continuous: frozenset[int],
    limits: SolverLimits,
    enough: Enough,
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
        The time limit counts work (planner/search/work.py), so that it may be reached.
    enough : callable
        Whether a gap is small enough.
    impossible_by : Collection[str]
        Who has proven already that there is no plan.

    Raises
    ------
    KeyboardInterrupt
        If a stop is requested.
    """
    best = Best(enough, lambda _: None, proofs_of(model, continuous))
    for prover in impossible_by:
        best.offer_infeasible(prover)
    spent = offer_hinted_plan(model, limits, best, reproducible=True)
    spent += _search(model, limits, best, min(FIRST_SEARCH, limits.time_limit_s), CPSAT)
    if best.needs_other_proof():
        if best.values is not None:
            hint(model, best.values)
        left_s = max(limits.time_limit_s - spent, FIRST_SEARCH)
        spent += _search(model, limits, best, min(SECOND_PROOF, left_s), WITHOUT_PRESOLVE)
    program: HighsProgram | None = None
    # Twice: what the first run finds says which gap is enough for the second.
    for _ in range(2):
        left_s = limits.time_limit_s - spent
        if best.objective is None:
            left_s = min(left_s, limits.patience.seconds)
        if best.settled() or left_s <= 0:
            break
        program = program or HighsProgram(model, continuous)
        ratio, gap = COARSE_GAP, 0.0
        start: Array | None = None
        if best.objective is not None and best.values is not None:
            ratio = gap_for(best.objective, enough)
            gap = gap_between(best.told.bound, best.objective, enough)
            start = program.start(best.values)
        effort = Effort(None, ANY_NODES, ratio, gap=gap, restarts=False)
        answer, work_s = _highs(program, limits.stop, left_s, effort, start)
        spent += work_s
        if answer.values is not None:
            limit = min(COMPLETION_LIMIT, max(limits.time_limit_s - spent, LATE_COMPLETION))
            exact, work_s = complete(model, continuous, answer.values, limit, reproducible=True)
            spent += work_s
            if exact is not None:
                best.offer_plan(exact, HIGHS)
        if answer.bound is not None:
            best.offer_bound(answer.bound, HIGHS)
        if answer.infeasible:
            best.offer_infeasible(HIGHS)
    return best.outcome(spent)


def _search(model: cp_model.CpModel, limits: SolverLimits, best: Best, amount: float, prover: str) -> float:
    """Run CP-SAT with one worker for an amount of deterministic time; what it took of that."""
    solver = configured_solver(math.inf, limits.seed, workers=1, presolve=prover == CPSAT)
    enough = _UntilEnough(best.enough)
    with limits.stop.reaches(solver):
        status, spent = solve_by_work(solver, model, amount, enough, lambda: limits.stop.requested)
    if limits.stop.requested:
        raise KeyboardInterrupt
    if status == cp_model.INFEASIBLE:
        best.offer_infeasible(prover)
    if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        best.offer_plan(solver, CPSAT)
        best.offer_bound(solver.best_objective_bound, prover)
    return spent


def _highs(
    program: HighsProgram, stop: Stop, work_limit_s: float, effort: Effort, start: Array | None
) -> tuple[HighsAnswer, float]:
    """HiGHS in one run from a plan to its gap, or to so much work; what it found, and what it took. [s]

    Raises
    ------
    KeyboardInterrupt
        If a stop is requested: what is known by then would not be reproducible.
    """
    if not math.isinf(work_limit_s):
        effort = replace(effort, node_limit=min(nodes_within(work_limit_s, program.entries), ANY_NODES))
    job = Job(program.rows, program.cost, effort, start)
    try:
        with Workers(ProcessSeats(1)) as workers, ending(workers, stop, math.inf):
            answer = workers.solve_one(job)
    except WorkersStoppedError:
        raise KeyboardInterrupt from None
    return program.answer(answer), answer.work_s
