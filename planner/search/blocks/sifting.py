"""Sifting: solve the linear relaxation among few slots, and among more while these lower it.

Runs in a worker process. Every moment is relaxed separately first, at a share of the supply's cost, among the
slots of earlier moments and more. These optima use few slots. All moments are then relaxed among them, and
among slots with negative reduced cost, until none is left: that is the optimum among all slots.

A year of forty services has 8,503 slots, of which moments use 422 and sifting opens 1,948: it takes 16 s of a
core, instead of 134 s by the simplex method and 47 s by an interior point. Two years of three hundred
services take 37 s instead of 57 to 129 s, a year of twelve 1.3 s instead of 2.1 s.
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
"""Largest total violation of limits that counts as none. [scaled units]"""

GROWTH: Final = 0.5
"""Slots added per round, as a share of the first ones. Results do not differ measurably between 0.25 and
2."""

LEAST_GROWTH: Final = 20
"""Least slots added per round."""

MOST_ROUNDS: Final = 200
"""Rounds after which all slots are opened. The benchmark fleets take 5 to 12."""

WORTHLESS: Final = 1e-9
"""Share of the optimum's spending below which a slot's saving counts as zero."""


@dataclass(frozen=True, slots=True, eq=False)
class _Slotted:
    """Linear program with the slot of each variable; -1 for none."""

    program: Rows
    cost: Array
    slot: Indices

    def of(self, slots: Mask) -> Mask:
        """Return which variables belong to these slots."""
        return (self.slot >= 0) & slots[self.slot]


def sift(job: SiftingJob, solver: Solver) -> Answer:
    """Solve a linear relaxation by sifting.

    Parameters
    ----------
    job : SiftingJob
        Program and its moments.
    solver : Solver
        Solves linear programs.

    Returns
    -------
    Answer
        Values of all variables, and prices of all rows; no values if infeasible or HiGHS gave up.
    """
    parts = Parts(job.program)
    # One dummy slot if there are none: variables without a slot index the last one.
    open_slots = np.zeros(int(job.slot.max(initial=0)) + 1, dtype=bool)
    supply = np.flatnonzero(job.growth)
    cost = job.cost.copy()
    cost[supply] /= np.maximum(_moments_served(job, supply), 1)
    for moment in np.unique(job.stage[job.stage >= 0]):
        # The moment gets all supply, and nothing is deferred.
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
    """Solve a linear relaxation starting from known slots; among all slots if that fails.

    Parameters
    ----------
    job : SlottedJob
        Program and its slots.
    solver : Solver
        Solves linear programs.
    """
    return _optimum(_Slotted(job.program, job.cost, job.slot), job.open_slots, solver, job.start)


def _moments_served(job: SiftingJob, supply: Indices) -> Array:
    """Return in how many moments each supply variable counts."""
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
    """Return the optimum, starting from some slots; among all if these are infeasible."""
    answer = _grown(slotted, open_slots, solver, start)
    return answer if answer.values is not None else solver(Job(slotted.program, slotted.cost, None))


def _elastic(job: SiftingJob, open_slots: Mask, solver: Solver) -> Answer:
    """Return the optimum, starting from slots that violate limits: more open at a penalty.

    No values if limits are still violated at the end.
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
    """Remove slack variables from a basis: if one is basic, its row becomes basic."""
    rows, slack = basis.rows.copy(), wide.rows[:, n_variables:].tocsc()
    rows[slack[:, np.flatnonzero(basis.columns[n_variables:] == BasisStatus.BASIC)].indices] = (
        BasisStatus.BASIC
    )
    return Basis(basis.columns[:n_variables], rows)


def _grown(slotted: _Slotted, known: Mask, solver: Solver, start: Basis | None = None) -> Answer:
    """Return the optimum among all slots, starting from known ones.

    Returns
    -------
    Answer
        Infeasible if the known slots have no solution; no values if HiGHS or the rounds gave up.
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
            # The saving of single loads is quick to compute; all loads of a slot together may save more.
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
    """Return what closed slots would save at the prices of their shared rows.

    Returns
    -------
    Answer
        Saving of each variable, at most 0, and prices of all rows, including those of closed variables only.
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
