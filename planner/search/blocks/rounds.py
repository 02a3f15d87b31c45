"""Rounds of pricing: every block at the prices of the linking rows, a bound and new patterns from each."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from fleetplan.planner.search.blocks.bound import Priced
from fleetplan.planner.search.blocks.highs_jobs import Answer, Effort, Job
from fleetplan.planner.search.blocks.master import PriceRange
from fleetplan.planner.search.blocks.matrix import FloatArray, IntArray
from fleetplan.planner.search.blocks.patterns import PatternPool

CENTRE_WEIGHT: Final = 0.3
"""Share of the best prices so far in the next ones; the rest is the linear master's."""

FIRST_REACH: Final = 0.5
"""How far the linear master's prices may be from the best so far, over their size, in the second round.
Prices without such a limit jump far away and back while patterns are few: ten rounds reached what eight reach
with it (medium fleet, seed 1)."""

REACH_GROWTH, REACH_DECLINE, MOST_REACH = 1.2, 0.8, 1.0
"""Factors of the reach after a round with a better bound and after one without, and its most."""


@dataclass(slots=True, eq=False)
class Prices:
    """Prices of the linking rows and the best bound that some gave.

    Attributes
    ----------
    current : FloatArray
        Of the next round.
    best : FloatArray
        Of the best bound.
    bound : float
        The best bound. [objective units]
    rounds : int
        Rounds so far.
    reach : float
        How far the next prices may be from the best, over their size.
    to_gain : float
        Distance of the best bound from the linear master: more rounds gain no more. [objective units]
    spread : float
        The same as a share of the linear master.
    settled : bool
        Whether more rounds gain too little.
    block_bounds : FloatArray
        Of every block at the best prices. [objective units]
    """

    current: FloatArray
    best: FloatArray
    bound: float
    rounds: int = 0
    reach: float = FIRST_REACH / REACH_GROWTH
    to_gain: float = math.inf
    spread: float = math.inf
    settled: bool = False
    block_bounds: FloatArray = field(default_factory=lambda: np.zeros(0))

    def note(self, duals: FloatArray, bound: float, block_bounds: FloatArray) -> bool:
        """Keep the bound of a round; True if it is the best so far."""
        self.rounds += 1
        better = bound > self.bound
        if better:
            self.best, self.bound, self.block_bounds = duals, bound, block_bounds
        self.reach = min(MOST_REACH, self.reach * (REACH_GROWTH if better else REACH_DECLINE))
        return better

    def near(self, master_duals: FloatArray) -> PriceRange:
        """Prices within reach of the best.

        A price reaches as far as its size and that of the linear master's without any limit; those near
        zero as far as the median of the others. A price that begins at zero may so become large in a round
        instead of ten.
        """
        size = np.abs(self.best)
        used = size[size > 0]
        typical = np.median(used) if used.size else 1.0
        reach = self.reach * np.maximum(np.maximum(size, np.abs(master_duals)), typical)
        return PriceRange(self.best - reach, self.best + reach)

    def follow(self, master: float, master_duals: FloatArray) -> None:
        """Set the next prices between the best and the master's, and how far the bound is from it."""
        self.to_gain = master - self.bound
        self.spread = self.to_gain / abs(master) if master else 0.0
        self.current = CENTRE_WEIGHT * self.best + (1 - CENTRE_WEIGHT) * master_duals


def pricing_jobs(
    priced: Priced, columns: list[IntArray], pool: PatternPool, effort: Effort, lengths: FloatArray
) -> list[Job]:
    """One job a block: its cheapest pattern at some prices, beginning with the cheapest that is known.

    Parameters
    ----------
    priced : Priced
        Reduced costs at the prices.
    columns : list[IntArray]
        Variables of each block.
    pool : PatternPool
        What is known.
    effort : Effort
        For each block.
    lengths : FloatArray
        About how long each block takes compared with others.
    """
    costs = [priced.reduced_cost[own] for own in columns]
    return [
        Job(number, cost, effort, pool.cheapest(number, cost), float(lengths[number]))
        for number, cost in enumerate(costs)
    ]


class PartFailedError(Exception):
    """HiGHS did not solve a program that a part of the search cannot do without: the others go on."""


class InfeasibleBlockError(Exception):
    """A block has no pattern at all, so there is no plan."""


def take(answers: list[Answer], pool: PatternPool) -> tuple[FloatArray, int]:
    """The bounds of all blocks, and how many patterns are new.

    Raises
    ------
    InfeasibleBlockError
        If a block has none.
    """
    if any(answer.infeasible for answer in answers):
        raise InfeasibleBlockError
    new = sum(
        pool.add(block, answer.values) for block, answer in enumerate(answers) if answer.values is not None
    )
    return np.array([answer.bound for answer in answers]), new
