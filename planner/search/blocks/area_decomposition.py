"""Solve a linear program area by area: Dantzig-Wolfe decomposition over the joint limits.

It serves the linear relaxation and the master LP. In each round, every area is solved at prices of the joint
limits. A restricted master mixes the areas' solutions so that the joint limits hold, and its dual prices are
the next prices. They stay within a box around the prices of the best bound, because the first masters know
few solutions. The box moves with these prices, grows where prices end at its sides, and shrinks where they
prove less.

Few joint limits bind in most fleets: with one or two of 51 to 163 in random fleets of 100 to 1,000 services
it takes 4 to 6 rounds, with a scarce budget in every quarter 12. A round takes as long as its longest area,
and no process holds more than one area. Where dozens bind, as with scarce supply, prices do not settle; the
whole relaxation, from the areas' bases, then ends sooner.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import scipy.sparse as sp

from fleetplan.planner.search.blocks.areas import Area, slots_of
from fleetplan.planner.search.blocks.composite_jobs import SiftingJob, SlottedJob
from fleetplan.planner.search.blocks.master import PriceRange
from fleetplan.planner.search.solvers.highs_jobs import Answer, Array, Indices, Job, Mask, Rows
from fleetplan.planner.search.solvers.workers import Workers

MOST_ROUNDS: Final = 12
"""Rounds after which to give up on prices that do not settle. For two years of three hundred services, a
round takes 2.3 s of a core over all areas, the whole relaxation 5.2 s."""

SETTLED_RATIO: Final = 1e-4
"""Distance of mixture and bound, as a share of the cost, at which prices have settled. Pricing of blocks
raises the bound a hundred times as much."""

BOX_SHARE: Final = 0.03
"""Half width of the first box, times the limit, as a share of the cost of all areas. Three hundred services
take one more round at 0.25, a hundred services at 0.08."""

BOX_GROWTH: Final = 2.0
"""Factor by which the box grows on sides where a price ends, and shrinks where prices prove less."""

KEPT: Final = 1e-6
"""Relative violation of a joint limit that a mixture may have. [scaled units]"""


@dataclass(frozen=True, slots=True, eq=False)
class AreaPoint:
    """Solution of one area.

    Attributes
    ----------
    cost : float
        Cost without prices of joint limits. [objective units]
    takes : Array
        Use of each joint limit. [scaled units]
    used, values : Indices, Array
        Nonzero variables of the area, and their values.
    """

    cost: float
    takes: Array
    used: Indices
    values: Array


@dataclass(slots=True, eq=False)
class _Settled:
    """Prices of joint limits that proved the best bound, with the areas' answers at these prices."""

    prices: Array
    bound: float
    answers: Sequence[Answer]


class _JointLimits:
    """Joint limits and the ranges of their prices.

    Parameters
    ----------
    program : Rows
        Program of all areas.
    joint : Indices
        Its joint rows.
    within : PriceRange or None
        Price range of all rows.

    Attributes
    ----------
    lower, upper : Array
        Lower and upper limits. [scaled units]
    least_price, most_price : Array
        Price ranges: nonpositive for upper limits, nonnegative for lower limits.
    """

    def __init__(self, program: Rows, joint: Indices, within: PriceRange | None) -> None:
        self.lower, self.upper = program.row_lower[joint], program.row_upper[joint]
        anything = np.full(len(joint), np.inf)
        least, most = (-anything, anything) if within is None else (within.lower[joint], within.upper[joint])
        self.least_price = np.where(np.isfinite(self.upper), least, np.maximum(least, 0.0))
        self.most_price = np.where(np.isfinite(self.lower), most, np.minimum(most, 0.0))

    def around(self, prices: Array, box: Array) -> tuple[Array, Array]:
        """Return the least and largest prices in a box around these."""
        return np.maximum(self.least_price, prices - box), np.minimum(self.most_price, prices + box)

    def ended(self, prices: Array, lower: Array, upper: Array) -> Mask:
        """Return which prices end at a side of the box that could move outwards."""
        at_lower, at_upper = prices <= lower, prices >= upper
        return (at_lower & (lower > self.least_price)) | (at_upper & (upper < self.most_price))

    def worth(self, prices: Array) -> float:
        """Return the value of the limits at these prices. [objective units]"""
        limits = np.where(prices > 0, self.lower, self.upper)
        return float(prices[prices != 0] @ limits[prices != 0])

    def size(self, taken: Array) -> Array:
        """Return the size of each limit, or its use where larger."""
        limit = np.abs(np.where(np.isfinite(self.upper), self.upper, self.lower))
        return np.maximum(np.where(np.isfinite(limit), limit, 0.0), taken)

    def cost(self, point: AreaPoint) -> float:
        """Return the cost of a mixture with penalties for violated limits; infinite where none is allowed."""
        few = KEPT * np.maximum(1.0, np.abs(point.takes))
        short, over = self.lower - point.takes, point.takes - self.upper
        # Slack on a limit is valued at its least price, unless that is zero.
        of_short = _times(np.where(short > few, self.most_price, np.maximum(self.least_price, 0.0)), short)
        of_over = _times(np.where(over > few, -self.least_price, np.maximum(-self.most_price, 0.0)), over)
        of_short[self.most_price < 0] = of_over[self.least_price > 0] = -np.inf
        return point.cost + float(np.maximum(of_short, of_over).sum())


def _times(price: Array, amount: Array) -> Array:
    """Multiply prices by amounts, which may be infinite where the price is 0."""
    found = np.zeros(len(price))
    priced = price != 0
    found[priced] = price[priced] * amount[priced]
    return found


class AreaDecomposition:
    """Dantzig-Wolfe decomposition of a linear program by areas.

    Parameters
    ----------
    program : Rows
        Linear program of all areas. Variables of no area, such as slack on joint limits, are left out.
    cost : Array
        Costs of its variables.
    areas : Sequence[Area]
        Variables and rows of each area.
    apart : Sequence[SiftingJob | SlottedJob]
        Linear program of each area, without joint limits.
    within : PriceRange, optional
        Price range of all rows; a joint limit may be violated at its largest price. Unbounded if missing.

    Attributes
    ----------
    answers : Sequence[Answer]
        Latest answers of the areas; empty at first.
    rounds : int
        Number of price changes.
    """

    def __init__(
        self,
        program: Rows,
        cost: Array,
        areas: Sequence[Area],
        apart: Sequence[SiftingJob | SlottedJob],
        within: PriceRange | None = None,
    ) -> None:
        self._cost, self._areas, self._apart, self._n_rows = cost, areas, apart, program.rows.shape[0]
        self._joint = np.unique(np.concatenate([each.joint for each in areas]))
        rows = program.rows[self._joint].tocsc()
        self._takes = [rows[:, each.variables].tocsr() for each in areas]
        self._limits = _JointLimits(program, self._joint, within)
        self._points: list[list[AreaPoint]] = [[] for _ in areas]
        self._open: list[Mask] = [np.zeros(int(each.slot.max(initial=0)) + 1, bool) for each in apart]
        self.answers: Sequence[Answer] = ()
        self.rounds = 0

    def solve(self, workers: Workers, prices: Array | None = None) -> Answer | None:
        """Solve all areas, round by round, until the prices of the joint limits settle.

        Parameters
        ----------
        workers : Workers
            Processes that solve the jobs.
        prices : Array, optional
            Prices of all rows, from which those of the joint limits start; 0 if missing.

        Returns
        -------
        Answer or None
            Optimum of the whole program within `SETTLED_RATIO`; None if an area has no solution or prices do
            not settle.
        """
        limits = self._limits
        first = np.zeros(len(self._joint)) if prices is None else prices[self._joint]
        first = np.clip(first, limits.least_price, limits.most_price)
        self.answers = workers.solve(self._at_first(first))
        if not self._note():
            return None
        best = _Settled(first, self._bound(first), self.answers)
        box = self._first_box()
        while self.rounds < MOST_ROUNDS:
            lower, upper = limits.around(best.prices, box)
            master = workers.solve_one(self._master(lower, upper))
            if master.values is None or master.row_duals is None:
                return None
            mixed = self._mixture(master.values)
            if limits.cost(mixed) - best.bound <= SETTLED_RATIO * abs(mixed.cost):
                return self._answer(mixed, best)
            current = np.clip(master.row_duals[: len(first)], lower, upper)
            self.answers = workers.solve(self._priced(current))
            self.rounds += 1
            if not self._note():
                return None
            bound = self._bound(current)
            if bound <= best.bound:
                box /= BOX_GROWTH
                continue
            best = _Settled(current, bound, self.answers)
            box[limits.ended(current, lower, upper)] *= BOX_GROWTH
        return None

    def _note(self) -> bool:
        """Store the areas' answers; return False if an area has no solution."""
        for number, (area, answer) in enumerate(zip(self._areas, self.answers, strict=True)):
            if answer.values is None or answer.row_duals is None or answer.basis is None:
                return False
            used = np.flatnonzero(answer.values)
            cost = float(self._cost[area.variables] @ answer.values)
            takes = self._takes[number] @ answer.values
            self._points[number].append(AreaPoint(cost, takes, used, answer.values[used]))
            self._open[number] |= slots_of(self._apart[number].slot, answer.values, answer.basis)
        return True

    def _at_first(self, prices: Array) -> list[SiftingJob | SlottedJob]:
        """Return each area's program at prices of the joint limits."""
        if not prices.any():
            return list(self._apart)
        return [
            replace(own, cost=own.cost - takes.T @ prices)
            for own, takes in zip(self._apart, self._takes, strict=True)
        ]

    def _priced(self, prices: Array) -> list[SlottedJob]:
        """Return each area's program at prices of the joint limits, starting from its last basis."""
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
        """Return a lower bound on the whole from the last answers, at their prices. [objective units]"""
        return self._limits.worth(prices) + sum(answer.objective for answer in self.answers)

    def _first_box(self) -> Array:
        """Return half the box width by joint limit: a share of the total cost per unit of the limit."""
        first = [points[0] for points in self._points]
        size = self._limits.size(np.abs(np.sum([each.takes for each in first], axis=0)))
        cost = abs(sum(each.cost for each in first))
        return BOX_SHARE * cost / np.where(size > 0, size, 1.0)

    def _master(self, lower: Array, upper: Array) -> Job:
        """Return the restricted master: shares of each area's points that sum to 1.

        Its dual prices stay within the box.
        """
        points = [point for of_area in self._points for point in of_area]
        area = np.repeat(np.arange(len(self._areas)), [len(each) for each in self._points])
        n_points, n_joint, n_areas = len(points), len(self._joint), len(self._areas)
        takes = sp.csr_array(np.stack([point.takes for point in points], axis=1))
        within = sp.csr_array(
            (np.ones(n_points), (area, np.arange(n_points))), shape=(n_areas, n_points + 2 * n_joint)
        )
        # Missing units of a row cost the largest price, surplus units earn the least.
        slack = sp.eye_array(n_joint)
        rows = sp.vstack([sp.hstack([takes, slack, -slack]), within], format="csr")
        one, n_variables = np.ones(n_areas), n_points + 2 * n_joint
        program = Rows(
            rows=sp.csr_array(rows),
            row_lower=np.concatenate([self._limits.lower, one]),
            row_upper=np.concatenate([self._limits.upper, one]),
            lower=np.zeros(n_variables),
            upper=np.full(n_variables, np.inf),
            whole=np.zeros(n_variables, dtype=bool),
        )
        cost = np.concatenate([[point.cost for point in points], upper, -lower])
        return Job(program, cost, None)

    def _mixture(self, shares: Array) -> AreaPoint:
        """Return the mixture of all areas' points with a master's shares, over the variables of the whole."""
        values = np.zeros(len(self._cost))
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

    def _answer(self, mixed: AreaPoint, best: _Settled) -> Answer:
        """Return the answer for the whole: the mixture, and the prices that proved the best bound."""
        values, duals = np.zeros(len(self._cost)), np.zeros(self._n_rows)
        values[mixed.used] = mixed.values
        duals[self._joint] = best.prices
        for area, answer in zip(self._areas, best.answers, strict=True):
            duals[area.rows] = answer.row_duals
        return Answer(values, self._limits.cost(mixed), best.bound, row_duals=duals)
