"""Reproducible solves: the same question gets the same answer on any machine under any load.

The race of two solvers (search/solvers/race.py) is faster, but the winner decides which plan within the gap
is returned. Here, CP-SAT searches with one worker within a limit of deterministic time; HiGHS proves for a
few nodes; large neighbourhoods improve the plan; and HiGHS continues to the gap or a node limit. None of them
uses the clock.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Final

from ortools.sat.python import cp_model

from fleetplan.planner.search.solvers.best import BestFound, proofs_of
from fleetplan.planner.search.solvers.cpsat import configured_solver, hint, solve_by_work
from fleetplan.planner.search.solvers.highs_jobs import ANY_NODES, Answer, AnyJob, Array, Effort, Job
from fleetplan.planner.search.solvers.highs_program import (
    HighsAnswer,
    HighsProgram,
    complete,
    gap_between,
    gap_for,
)
from fleetplan.planner.search.solvers.hinted import offer_hinted_plan
from fleetplan.planner.search.solvers.large_neighbourhoods import NeighbourhoodsJob
from fleetplan.planner.search.solvers.proofs import CPSAT, HIGHS, WITHOUT_PRESOLVE
from fleetplan.planner.search.solvers.request import Enough, ModelOutcome, SolverLimits
from fleetplan.planner.search.solvers.seats import ProcessSeats
from fleetplan.planner.search.solvers.workers import Workers, WorkersStoppedError, ending
from fleetplan.planner.search.work import nodes_within

FIRST_SEARCH: Final = 0.5
"""CP-SAT's work before HiGHS starts: enough for small fleets. [deterministic units of CP-SAT]"""

SECOND_PROOF: Final = 20.0
"""CP-SAT's work without presolve to confirm its own claims. [deterministic units of CP-SAT]"""

COMPLETION_LIMIT: Final = 2.0
"""Work to complete a plan of HiGHS in integers: most take hundredths. [solver units]"""

LATE_COMPLETION: Final = 0.5
"""Least work for that, at the limit. [solver units]"""

FIRST_NODES: Final = 50
"""HiGHS nodes before the plan is improved; most small fleets need fewer."""

IMPROVING_SHARE: Final = 0.3
"""Largest share of the remaining work to improve a plan."""

COARSE_GAP: Final = 0.05
"""HiGHS's target gap without a plan: a plan tells which gap is small enough."""


class _UntilEnough(cp_model.CpSolverSolutionCallback):
    """Callback that stops the search at the target gap."""

    def __init__(self, enough: Enough) -> None:
        super().__init__()
        self.enough = enough

    def on_solution_callback(self) -> None:
        """Stop if plan and bound are close enough."""
        if self.enough(self.objective_value, self.best_objective_bound):
            self.stop_search()


def solve_reproducibly(
    model: cp_model.CpModel,
    continuous: frozenset[int],
    limits: SolverLimits,
    enough: Enough,
    impossible_by: Collection[str] = (),
) -> ModelOutcome:
    """Minimise a model reproducibly.

    Parameters
    ----------
    model : CpModel
        Linear model with an objective.
    continuous : frozenset[int]
        Variables that may be fractional for HiGHS.
    limits : SolverLimits
        The time limit counts work (planner/search/work.py).
    enough : callable
        Returns whether a gap is small enough.
    impossible_by : Collection[str]
        Provers of infeasibility so far.

    Raises
    ------
    KeyboardInterrupt
        If a stop is requested.
    """
    best = BestFound(enough, lambda _: None, proofs_of(model, continuous))
    for prover in impossible_by:
        best.offer_infeasible(prover)
    spent = offer_hinted_plan(model, limits, best, reproducible=True)
    spent += _search(model, limits, best, min(FIRST_SEARCH, limits.time_limit_s), CPSAT)
    if best.needs_other_proof():
        if best.values is not None:
            hint(model, best.values)
        left_s = max(limits.time_limit_s - spent, FIRST_SEARCH)
        spent += _search(model, limits, best, min(SECOND_PROOF, left_s), WITHOUT_PRESOLVE)
    if not best.settled() and spent < limits.time_limit_s:
        spent = _Highs(model, continuous, limits, best, spent).run()
    return best.outcome(spent)


class _Highs:
    """HiGHS proves for a few nodes, the plan is improved, and HiGHS proves to the end.

    Parameters
    ----------
    model, continuous, limits
        Model and limits.
    best : BestFound
        Receives plans and bounds.
    spent : float
        Work done before. [s]
    """

    def __init__(
        self,
        model: cp_model.CpModel,
        continuous: frozenset[int],
        limits: SolverLimits,
        best: BestFound,
        spent: float,
    ) -> None:
        self._model, self._continuous, self._limits, self._best = model, continuous, limits, best
        self._program = HighsProgram(model, continuous)
        self._spent = spent

    def run(self) -> float:
        """Prove, improve and prove again; return the total work, with the work before. [s]"""
        # Each run tells the next which gap is small enough.
        for nodes in (FIRST_NODES, ANY_NODES, ANY_NODES):
            if self._open:
                self._prove(nodes)
            if nodes == FIRST_NODES and self._open:
                self._improve()
        return self._spent

    @property
    def _open(self) -> bool:
        """Return whether something is left to find, and work to spend."""
        return not self._best.settled() and self._left_s > 0

    @property
    def _left_s(self) -> float:
        """Return the remaining work; less while there is no plan, if patience is limited. [s]"""
        limits = self._limits
        most_s = limits.time_limit_s
        if self._best.objective is None:
            most_s = min(most_s, limits.patience.seconds)
        return most_s - self._spent

    def _prove(self, nodes: int) -> None:
        """Run HiGHS from the best plan to the target gap, the node limit or the work limit."""
        best, program = self._best, self._program
        ratio, gap = COARSE_GAP, 0.0
        start: Array | None = None
        if best.objective is not None and best.values is not None:
            ratio = gap_for(best.objective, best.enough)
            gap = gap_between(best.told.bound, best.objective, best.enough)
            start = program.start(best.values)
        if not math.isinf(self._left_s):
            nodes = min(nodes, nodes_within(self._left_s, program.entries))
        effort = Effort(None, nodes, ratio, gap=gap, restarts=False)
        found = program.answer(self._done(Job(program.rows, program.cost, effort, start)))
        self._offer_plan(found)
        if found.bound is not None:
            best.offer_bound(found.bound, HIGHS)
        if found.infeasible:
            best.offer_infeasible(HIGHS)

    def _improve(self) -> None:
        """Improve the best plan by neighbourhoods, if there is one."""
        best, program = self._best, self._program
        if best.objective is None or best.values is None:
            return
        start, bound = program.start(best.values), best.told.bound
        answer = self._done(
            NeighbourhoodsJob(
                program=program.rows,
                cost=program.cost,
                start=start,
                target=program.objective(bound) + gap_between(bound, best.objective, best.enough),
                work_limit_s=IMPROVING_SHARE * self._left_s,
                seed=self._limits.seed,
            )
        )
        if answer.objective < float(program.cost @ start):
            self._offer_plan(program.answer(answer))

    def _offer_plan(self, found: HighsAnswer) -> None:
        """Complete a plan in integers, and keep it if it is better."""
        if found.values is None:
            return
        limit = min(COMPLETION_LIMIT, max(self._limits.time_limit_s - self._spent, LATE_COMPLETION))
        exact, work_s = complete(self._model, self._continuous, found.values, limit, reproducible=True)
        self._spent += work_s
        if exact is not None:
            self._best.offer_plan(exact, HIGHS)

    def _done(self, job: AnyJob) -> Answer:
        """Return a process's answer to a job, and charge its work.

        Raises
        ------
        KeyboardInterrupt
            If a stop is requested: a partial result would not be reproducible.
        """
        try:
            with Workers(ProcessSeats(1)) as workers, ending(workers, self._limits.stop, math.inf):
                answer = workers.solve_one(job)
        except WorkersStoppedError:
            raise KeyboardInterrupt from None
        self._spent += answer.work_s
        return answer


def _search(
    model: cp_model.CpModel, limits: SolverLimits, best: BestFound, amount: float, prover: str
) -> float:
    """Run CP-SAT with one worker within a work limit; return the work done."""
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
