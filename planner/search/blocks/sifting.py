"""The linear relaxation, solved among few slots, and among more of them while these would lower it.

Runs in a worker process. Every moment is relaxed by itself first, with a share of what supply costs, among
the slots that moments before it wanted and more. The slots that these optima use are few. All moments are
relaxed among them, then among the slots that would lower the cost at the prices of that optimum, until none
is left: that is the optimum among all slots.

A year of forty services (8,503 slots, of which moments want 422 and 1,948 are looked at) takes 16 s of a
core, moments included, instead of 134 s by the simplex method among all slots and 47 s by an interior point.
Two years of three hundred services take 37 s instead of 57 to 129 s, a year of twelve 1.3 s instead of 2.1 s.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np
import scipy.sparse as sp

from fleetplan.planner.search.blocks.subprograms import USED, Parts, SlotPrices, with_slack
from fleetplan.planner.search.solvers.highs_jobs import (
    Answer,
    Array,
    Basis,
    BasisStatus,
    Indices,
    Job,
    Mask,
    Rows,
    Solver,
)

if TYPE_CHECKING:
    from fleetplan.planner.search.blocks.composite_jobs import SiftingJob, SlottedJob

VIOLATED: Final = 1e-6
"""Limits that are violated by no more, all together, are kept. [scaled units]"""

GROWTH: Final = 0.5
"""Slots that are added at a time, over the number that are there at first. Between 0.25 and 2 no difference
could be measured."""

LEAST_GROWTH: Final = 20
"""Slots that are added at a time at the least."""

MOST_ROUNDS: Final = 200
"""Rounds after which all slots are looked at. The fleets of the benchmarks take 5 to 12."""

WORTHLESS: Final = 1e-9
"""Share of what an optimum spends below which what a slot would save at its prices is none."""


@dataclass(frozen=True, slots=True, eq=False)
class _Slotted:
    """A linear program, and the slots of its variables; -1 for none."""

    program: Rows
    cost: Array
    slot: Indices

    def of(self, slots: Mask) -> Mask:
        """Variables of some slots."""
        return (self.slot >= 0) & slots[self.slot]


def sift(job: SiftingJob, solver: Solver) -> Answer:
    """Solve a linear relaxation.

    Parameters
    ----------
    job : SiftingJob
        The program and its moments.
    solver : Solver
        Solves linear programs.

    Returns
    -------
    Answer
        Values of all variables, and prices of all rows; without values where there are none, or HiGHS gave
        up.
    """
    parts = Parts(job.program)
    # One that nobody wants where there are none: variables without a slot look up the last one.
    open_slots = np.zeros(int(job.slot.max(initial=0)) + 1, dtype=bool)
    supply = np.flatnonzero(job.growth)
    cost = job.cost.copy()
    cost[supply] /= np.maximum(_moments_served(job, supply), 1)
    for moment in np.unique(job.stage[job.stage >= 0]):
        # The moment has all supply to itself, and nothing is deferred.
        free = np.flatnonzero((job.stage == moment) | (job.growth != 0))
        others = np.flatnonzero((job.stage >= 0) & (job.stage != moment))
        part = parts.part(free, np.zeros(len(cost)), ~parts.rows_of(others))
        answer = _optimum(_Slotted(part.program, cost[free], job.slot[free]), open_slots, solver)
        if answer.values is not None:
            used = job.slot[free[answer.values > USED]]
            open_slots[used[used >= 0]] = True
    slotted = _Slotted(job.program, job.cost, job.slot)
    answer = _grown(slotted, open_slots, solver)
    if answer.infeasible:
        answer = _elastic(job, open_slots, solver)
    return answer if answer.values is not None else solver(Job(job.program, job.cost, None))


def sift_from(job: SlottedJob, solver: Solver) -> Answer:
    """Solve a linear relaxation from slots that are known, or among all of them where that gives up.

    Parameters
    ----------
    job : SlottedJob
        The program and its slots.
    solver : Solver
        Solves linear programs.
    """
    return _optimum(_Slotted(job.program, job.cost, job.slot), job.open_slots, solver, job.start)


def _moments_served(job: SiftingJob, supply: Indices) -> Array:
    """In how many moments each variable of supply counts."""
    column = job.program.rows.copy()
    column.data = np.ones_like(column.data)
    staged = np.flatnonzero(job.stage >= 0)
    moments = int(job.stage.max(initial=0)) + 1
    belongs = sp.csr_array(
        (np.ones(len(staged)), (staged, job.stage[staged])), shape=(column.shape[1], moments)
    )
    reached = column.tocsc()[:, supply].T @ ((column @ belongs) > 0)
    return np.asarray((reached > 0).sum(axis=1)).ravel().astype(float)


def _optimum(slotted: _Slotted, open_slots: Mask, solver: Solver, start: Basis | None = None) -> Answer:
    """The optimum from some slots; among all of them at once where these alone allow none."""
    answer = _grown(slotted, open_slots, solver, start)
    return answer if answer.values is not None else solver(Job(slotted.program, slotted.cost, None))


def _elastic(job: SiftingJob, open_slots: Mask, solver: Solver) -> Answer:
    """The optimum from slots that violate limits: more are looked for at a price of that.

    Without values where limits are still violated at the end.
    """
    n_variables = len(job.cost)
    dearest = float(np.abs(job.cost * np.minimum(job.program.upper, 1.0)).max(initial=1.0))
    penalty = np.full(len(job.program.row_lower), job.penalty_ratio * dearest)
    wide, wide_cost = with_slack(job.program, job.cost, job.linking, penalty)
    slot = np.concatenate([job.slot, np.full(len(wide_cost) - n_variables, -1)])
    answer = _grown(_Slotted(wide, wide_cost, slot), open_slots, solver)
    if answer.values is None or answer.values[n_variables:].sum() > VIOLATED:
        return Answer(None, np.inf, -np.inf)
    values = answer.values[:n_variables]
    objective = float(job.cost @ values)
    basis = None if answer.basis is None else _without_slack(answer.basis, wide, n_variables)
    return replace(answer, values=values, objective=objective, bound=objective, basis=basis)


def _without_slack(basis: Basis, wide: Rows, n_variables: int) -> Basis:
    """A basis without what passes limits: where that is basic, its row is, which it stands for."""
    rows, slack = basis.rows.copy(), wide.rows[:, n_variables:].tocsc()
    rows[slack[:, np.flatnonzero(basis.columns[n_variables:] == BasisStatus.BASIC)].indices] = (
        BasisStatus.BASIC
    )
    return Basis(basis.columns[:n_variables], rows)


def _grown(slotted: _Slotted, known: Mask, solver: Solver, start: Basis | None = None) -> Answer:
    """The optimum among all slots, from those that are known.

    Returns
    -------
    Answer
        Marked infeasible where those that are known allow no solution; without values also where HiGHS or
        the rounds gave up.
    """
    open_slots = known.copy()
    open_slots[slotted.slot[(slotted.slot >= 0) & (slotted.program.lower > 0)]] = True
    size = max(LEAST_GROWTH, round(GROWTH * int(open_slots.sum())))
    closed = slotted.of(~open_slots)
    growing = solver.growing(slotted.program, slotted.cost, np.flatnonzero(~closed), start)
    prices = SlotPrices(slotted.program, slotted.slot)
    for _ in range(MOST_ROUNDS):
        answer = growing.solve()
        if answer.values is None or answer.row_duals is None:
            return answer
        if not closed.any():
            return replace(answer, bound=answer.objective)
        least = -WORTHLESS * float(np.abs(slotted.cost) @ np.abs(answer.values))
        reduced = slotted.cost - slotted.program.rows.T @ answer.row_duals
        saved = np.zeros(len(open_slots))
        price = prices.at(reduced)
        saved[: len(price)] = np.where(open_slots[: len(price)], 0.0, price)
        if not (saved < least).any():
            # What one load at its most would save is soon said; all loads of a slot together may save more.
            left = _of_closed(slotted, closed, answer.row_duals, solver)
            if left.values is None:
                return left
            saved = np.zeros(len(open_slots))
            np.add.at(saved, slotted.slot[closed], left.values[closed])
            answer = replace(answer, bound=answer.objective, row_duals=left.row_duals)
        wanted = np.flatnonzero(saved < least)
        if not len(wanted):
            return answer
        chosen = np.zeros_like(open_slots)
        chosen[wanted[np.argsort(saved[wanted], kind="stable")[:size]]] = True
        added = closed & slotted.of(chosen)
        growing.add(np.flatnonzero(added))
        open_slots |= chosen
        closed &= ~added
    return Answer(None, np.inf, -np.inf)


def _of_closed(slotted: _Slotted, closed: Mask, duals: Array, solver: Solver) -> Answer:
    """What closed slots would save at prices of the rows that they share with what is there.

    Returns
    -------
    Answer
        What each variable would save, by variable, at most 0; and prices of all rows, of those that only
        closed variables are in as well.
    """
    program = slotted.program
    variables = np.flatnonzero(closed)
    matrix = program.rows.tocsc()
    inside = np.diff(matrix[:, variables].tocsr().indptr) > 0
    outside = np.diff(matrix[:, np.flatnonzero(~closed)].tocsr().indptr) > 0
    own = np.flatnonzero(inside & ~outside)
    known = duals.copy()
    known[own] = 0.0
    reduced = slotted.cost - program.rows.T @ known
    answer = solver(Job(program.among(variables, own), reduced[variables], None))
    if answer.values is None or answer.row_duals is None:
        return replace(answer, values=None, infeasible=False)
    saved = np.zeros(len(reduced))
    saved[variables] = reduced[variables] * answer.values
    known[own] = answer.row_duals
    return Answer(saved, answer.objective, -np.inf, known)
