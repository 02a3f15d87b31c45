"""Pricing rounds: every block at the dual prices of the linking rows gives a bound and new columns.

Dual prices are stabilised twice. A box keeps those of the master LP near the best ones so far, and the next
ones are a weighted mean of both (Wentges smoothing). Both are tighter after a round that proved less.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from fleetplan.planner.search.blocks.bound import Priced
from fleetplan.planner.search.blocks.columns import ColumnPool
from fleetplan.planner.search.blocks.master import PriceRange
from fleetplan.planner.search.solvers.highs_jobs import Effort, Job
from fleetplan.planner.search.solvers.matrix import FloatArray, IntArray

FIRST_SMOOTHING, LEAST_SMOOTHING = 0.9, 0.3
"""Weight of the best prices so far in the next ones (Wentges smoothing), in the second round and at least;
the rest is the master LP's. Its prices are far off while columns are few: with a weight of 0.3 the second
round of a company proved -93e12 where the first had proved 7.2e12, and no later one of the four that there
was time for reached that; a weight of 0.95 gave 7.44e12 in the third (seed 1)."""

SMOOTHER, ROUGHER = 0.5, 0.8
"""Factor of the other weight after a round without a better bound, and of this one after a round with one."""

FIRST_BOX: Final = 0.5
"""Half-width of the box around the best prices so far, over their size, in the second round. Prices without
a box jump far away and back while columns are few: ten rounds reached what eight reach
with it (medium fleet, seed 1)."""

BOX_GROWTH, BOX_SHRINK, LARGEST_BOX = 1.2, 0.8, 1.0
"""Factors of the box after a round with a better bound and after one without, and its largest half-width."""

LARGEST_SHARE: Final = 10.0
"""Most that the gap of a block is counted over, in even shares of what the relaxation spends. Prices that
punish violated limits make a block of offline work cost -8e13 in a year of 1e13 (company, seed 1): no column
beats a known one by a hundredth of that. With gaps over such costs 14 rounds end at a master LP of 13.3e12
that violates limits, with this limit at 7.9e12 within them."""


@dataclass(slots=True, eq=False)
class Prices:
    """Prices of the linking rows and the best bound that some gave.

    Attributes
    ----------
    current : FloatArray
        Of the next round.
    best : FloatArray
        Of the best bound.
    master : FloatArray
        Of the last master LP, near the best.
    bound : float
        The best bound. [objective units]
    rounds : int
        Rounds that have begun.
    box : float
        Half-width of the box around the best prices, over their size.
    smoothing : float
        Weight of the best prices in the next ones.
    to_gain : float
        Distance of the best bound from the master LP: more rounds gain no more. [objective units]
    spread : float
        The same as a share of the master LP.
    settled : bool
        Whether more rounds gain too little.
    block_bounds : FloatArray
        Of every block at the best prices. [objective units]
    """

    current: FloatArray
    best: FloatArray
    bound: float
    rounds: int = 0
    box: float = FIRST_BOX / BOX_GROWTH
    smoothing: float = FIRST_SMOOTHING
    to_gain: float = math.inf
    spread: float = math.inf
    settled: bool = False
    block_bounds: FloatArray = field(default_factory=lambda: np.zeros(0))
    master: FloatArray = field(default_factory=lambda: np.zeros(0))

    def note(self, duals: FloatArray, bound: float, block_bounds: FloatArray) -> bool:
        """Keep the bound of a round; True if it is the best so far."""
        first, better = self.bound == -math.inf, bound > self.bound
        if better:
            self.best, self.bound, self.block_bounds = duals, bound, block_bounds
        self.box = min(LARGEST_BOX, self.box * (BOX_GROWTH if better else BOX_SHRINK))
        if not better:
            self.smoothing = 1.0 - SMOOTHER * (1.0 - self.smoothing)
        elif not first:
            self.smoothing = max(LEAST_SMOOTHING, ROUGHER * self.smoothing)
        return better

    def near(self, master_duals: FloatArray) -> PriceRange:
        """The box around the best prices.

        Its width is relative to the larger of the best price and the master LP's without a box, and for
        prices near zero to the median price: a price that begins at zero can become large in one round.
        """
        size = np.abs(self.best)
        used = size[size > 0]
        typical = np.median(used) if used.size else 1.0
        width = self.box * np.maximum(np.maximum(size, np.abs(master_duals)), typical)
        return PriceRange(self.best - width, self.best + width)

    def follow(self, master: float, master_duals: FloatArray) -> None:
        """Set the next prices between the best and the master's, and how far the bound is from it."""
        self.to_gain = master - self.bound
        self.spread = self.to_gain / abs(master) if master else 0.0
        self.master = master_duals
        self.current = self.smoothing * self.best + (1 - self.smoothing) * master_duals


def pricing_jobs(
    priced: Priced,
    variables: list[IntArray],
    pool: ColumnPool,
    effort: Effort,
    lengths: FloatArray,
    even_share: float,
) -> list[Job]:
    """One job a block: its cheapest column at some prices, beginning with the cheapest that is known.

    Parameters
    ----------
    priced : Priced
        Reduced costs at the prices.
    variables : list[IntArray]
        Variables of each block.
    pool : ColumnPool
        What is known.
    effort : Effort
        For each block. Its gap is over what the block costs, within `LARGEST_SHARE`.
    lengths : FloatArray
        About how long each block takes compared with others.
    even_share : float
        What a block would cost if all did the same; infinite where nobody knows. [objective units]
    """
    jobs = []
    for number, own in enumerate(variables):
        cost = priced.reduced_cost[own]
        start = pool.cheapest(number, cost)
        limited = effort
        # Blocks have no column in the first round alone, whose prices punish nothing.
        if start is not None:
            size = min(abs(float(cost @ start)), LARGEST_SHARE * even_share)
            limited = replace(effort, gap_ratio=0.0, gap=effort.gap_ratio * size)
        jobs.append(Job(number, cost, limited, start, float(lengths[number])))
    return jobs


class PartFailedError(Exception):
    """HiGHS did not solve a program that a part of the search cannot do without: the others go on."""


class InfeasibleBlockError(Exception):
    """A block has no column at all, so there is no plan."""
