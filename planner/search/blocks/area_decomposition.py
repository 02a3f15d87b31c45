"""The linear relaxation of areas at prices of their joint limits: Dantzig-Wolfe decomposition.

Each area is relaxed at prices of the joint limits. A restricted master mixes what each area has found, so
that the limits hold, and its dual prices are the next ones. They stay within a box around the prices that
proved the best bound, as the master knows little at first: the box moves with these, grows where prices end
at its sides, and shrinks where they prove less.

Few joint limits bind in most fleets: one or two of 51 to 163 in random fleets of 100 to 1,000 services take 4
to 6 rounds, a scarce budget of every quarter 12. Rounds are as short as their longest area, and no process
holds more than one area. Where dozens bind, as with scarce supply, the prices do not settle: the whole
relaxation from the bases of the areas ends sooner.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import scipy.sparse as sp

from fleetplan.planner.search.blocks.areas import Area, relaxations_apart, slots_of
from fleetplan.planner.search.blocks.composite_jobs import SiftingJob, SlottedJob
from fleetplan.planner.search.solvers.highs_jobs import Answer, Array, Indices, Job, Mask, Rows
from fleetplan.planner.search.solvers.workers import Workers

MOST_ROUNDS: Final = 12
"""Rounds after which prices are given up that do not settle. One of two years of three hundred services takes
2.3 s of a core, all areas together, and the whole relaxation 5.2 s."""

SETTLED_RATIO: Final = 1e-4
"""Distance of the mixture from the bound, over its cost, at which prices have settled. Pricing of blocks
raises the bound by a hundred times as much."""

BOX_SHARE: Final = 0.03
"""Half of the first box: what all areas cost, over the limit, times this. With 0.25 a fleet of three hundred
services takes a round more, as does one of a hundred with 0.08."""

BOX_GROWTH: Final = 2.0
"""By how much a side of the box grows where a price ends there, or all shrink where prices prove less."""

KEPT: Final = 1e-6
"""Joint limits that a mixture violates by no more are kept, over their size. [scaled units]"""


@dataclass(frozen=True, slots=True, eq=False)
class AreaPoint:
    """A solution of an area.

    Attributes
    ----------
    cost : float
        Without prices of joint limits. [objective units]
    takes : Array
        Of each joint limit. [scaled units]
    used, values : Indices, Array
        Variables of the area that are not zero, and their values.
    """

    cost: float
    takes: Array
    used: Indices
    values: Array


@dataclass(slots=True, eq=False)
class _Settled:
    """Prices of joint limits that proved the best bound, and those of the areas' own rows beside them."""

    prices: Array
    bound: float
    answers: Sequence[Answer]


class AreaDecomposition:
    """Relaxes areas at prices of their joint limits.

    Parameters
    ----------
    job : SiftingJob
        The relaxation of the whole program.
    areas : Sequence[Area]
        Its areas.

    Attributes
    ----------
    answers : Sequence[Answer]
        What the areas answered last; nothing at first.
    rounds : int
        How often prices were changed.
    """

    def __init__(self, job: SiftingJob, areas: Sequence[Area]) -> None:
        self._job, self._areas = job, areas
        self._apart = relaxations_apart(job, areas)
        self._joint = np.unique(np.concatenate([each.joint for each in areas]))
        rows = job.program.rows[self._joint].tocsc()
        self._takes = [rows[:, each.variables].tocsr() for each in areas]
        self._lower, self._upper = job.program.row_lower[self._joint], job.program.row_upper[self._joint]
        self._points: list[list[AreaPoint]] = [[] for _ in areas]
        self._open: list[Mask] = [np.zeros(int(each.slot.max(initial=0)) + 1, bool) for each in self._apart]
        self.answers: Sequence[Answer] = ()
        self.rounds = 0

    def relax(self, workers: Workers) -> Answer | None:
        """Relax all areas until the prices of joint limits settle.

        Returns
        -------
        Answer or None
            An optimum of the whole relaxation within `SETTLED_RATIO`; None where an area has no solution, or
            the prices do not settle.
        """
        prices = np.zeros(len(self._joint))
        self.answers = workers.solve(self._apart)
        if not self._note():
            return None
        best = _Settled(prices, self._bound(prices), self.answers)
        box = self._first_box()
        while self.rounds < MOST_ROUNDS:
            lower, upper = self._sides(best.prices, box)
            master = workers.solve_one(self._master(lower, upper))
            if master.values is None or master.row_duals is None:
                return None
            mixed = self._mixture(master.values)
            if self._settled(mixed, best.bound):
                return self._answer(mixed, best)
            prices = np.clip(master.row_duals[: len(prices)], lower, upper)
            self.answers = workers.solve(self._priced(prices))
            self.rounds += 1
            if not self._note():
                return None
            bound = self._bound(prices)
            if bound <= best.bound:
                box /= BOX_GROWTH
                continue
            best = _Settled(prices, bound, self.answers)
            ended = ((prices <= lower) & (lower < 0)) | ((prices >= upper) & (upper > 0))
            box[ended] *= BOX_GROWTH
        return None

    def _note(self) -> bool:
        """Keep what the areas answered; False where one has no solution."""
        for number, (area, answer) in enumerate(zip(self._areas, self.answers, strict=True)):
            if answer.values is None or answer.row_duals is None or answer.basis is None:
                return False
            used = np.flatnonzero(answer.values)
            cost = float(self._job.cost[area.variables] @ answer.values)
            takes = self._takes[number] @ answer.values
            self._points[number].append(AreaPoint(cost, takes, used, answer.values[used]))
            self._open[number] |= slots_of(self._apart[number].slot, answer.values, answer.basis)
        return True

    def _priced(self, prices: Array) -> list[SlottedJob]:
        """The relaxation of each area at prices of the joint limits, from where it ended last."""
        return [
            SlottedJob(
                program=own.program,
                cost=own.cost - takes.T @ prices,
                slot=own.slot,
                open_slots=open_slots.copy(),
                start=answer.basis,
                length=own.length,
            )
            for own, takes, open_slots, answer in zip(
                self._apart, self._takes, self._open, self.answers, strict=True
            )
        ]

    def _bound(self, prices: Array) -> float:
        """What the whole costs at least, by the last answers, which are at these prices."""
        limits = np.where(prices > 0, self._lower, self._upper)
        of_limits = float(prices[prices != 0] @ limits[prices != 0])
        return of_limits + sum(answer.objective for answer in self.answers)

    def _first_box(self) -> Array:
        """Half of the box by joint limit: a share of what all cost for each unit of it."""
        first = [points[0] for points in self._points]
        taken = np.abs(np.sum([each.takes for each in first], axis=0))
        limit = np.abs(np.where(np.isfinite(self._upper), self._upper, self._lower))
        size = np.maximum(np.where(np.isfinite(limit), limit, 0.0), taken)
        cost = abs(sum(each.cost for each in first))
        return BOX_SHARE * cost / np.where(size > 0, size, 1.0)

    def _sides(self, centre: Array, box: Array) -> tuple[Array, Array]:
        """Least and largest prices: of limits from above never positive, from below never negative."""
        lower, upper = centre - box, centre + box
        lower = np.where(np.isfinite(self._upper), lower, np.maximum(lower, 0.0))
        upper = np.where(np.isfinite(self._lower), upper, np.minimum(upper, 0.0))
        return lower, upper

    def _master(self, lower: Array, upper: Array) -> Job:
        """The master: shares of points that add up to one in each area. Prices end within the box."""
        points = [point for of_area in self._points for point in of_area]
        area = np.repeat(np.arange(len(self._areas)), [len(each) for each in self._points])
        n_points, n_joint, n_areas = len(points), len(self._joint), len(self._areas)
        takes = sp.csr_array(np.stack([point.takes for point in points], axis=1))
        within = sp.csr_array(
            (np.ones(n_points), (area, np.arange(n_points))), shape=(n_areas, n_points + 2 * n_joint)
        )
        # What is missing in a row may be had at the largest price, what is too much goes at the least.
        slack = sp.eye_array(n_joint)
        rows = sp.vstack([sp.hstack([takes, slack, -slack]), within], format="csr")
        one, n_variables = np.ones(n_areas), n_points + 2 * n_joint
        program = Rows(
            rows=sp.csr_array(rows),
            row_lower=np.concatenate([self._lower, one]),
            row_upper=np.concatenate([self._upper, one]),
            lower=np.zeros(n_variables),
            upper=np.full(n_variables, np.inf),
            whole=np.zeros(n_variables, dtype=bool),
        )
        cost = np.concatenate([[point.cost for point in points], upper, -lower])
        return Job(program, cost, None)

    def _mixture(self, shares: Array) -> AreaPoint:
        """The mixture of points of all areas that a master says, over the variables of the whole."""
        values = np.zeros(len(self._job.cost))
        takes, cost, number = np.zeros(len(self._joint)), 0.0, 0
        for area, points in zip(self._areas, self._points, strict=True):
            for point in points:
                share = float(shares[number])
                number += 1
                if share > 0:
                    values[area.variables[point.used]] += share * point.values
                    takes += share * point.takes
                    cost += share * point.cost
        used = np.flatnonzero(values)
        return AreaPoint(cost, takes, used, values[used])

    def _settled(self, mixed: AreaPoint, bound: float) -> bool:
        """Whether a mixture keeps the joint limits, and costs hardly more than the bound."""
        violated = np.maximum(mixed.takes - self._upper, self._lower - mixed.takes)
        if (violated > KEPT * np.maximum(1.0, np.abs(mixed.takes))).any():
            return False
        return mixed.cost - bound <= SETTLED_RATIO * abs(mixed.cost)

    def _answer(self, mixed: AreaPoint, best: _Settled) -> Answer:
        """The answer for the whole: a mixture, and the prices that proved the best bound."""
        values, duals = np.zeros(len(self._job.cost)), np.zeros(self._job.program.rows.shape[0])
        values[mixed.used] = mixed.values
        duals[self._joint] = best.prices
        for area, answer in zip(self._areas, best.answers, strict=True):
            duals[area.rows] = answer.row_duals
        return Answer(values, mixed.cost, best.bound, row_duals=duals)
