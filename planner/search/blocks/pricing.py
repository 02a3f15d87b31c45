"""Pricing: dual prices of the linking rows, at which every block gives a bound and a new column.

Dual prices are stabilised twice: a box keeps the master LP's prices near the best so far, and the next prices
are a weighted mean of both (Wentges smoothing). Both tighten after a round that proved less.
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
"""Weight of the best prices in the next ones (Wentges smoothing) in the second round, and its minimum; the
rest is the master LP's. With few columns, its prices are far off: with a weight of 0.3, a company's second
round proved -93e12 after 7.2e12 in the first, and no later round recovered in time; a weight of 0.95 gave
7.44e12 in the third."""

SMOOTHER, ROUGHER = 0.5, 0.8
"""Factor on the master LP's weight after a round without a better bound, and on the best prices' weight after
one with it."""

FIRST_BOX: Final = 0.5
"""Half width of the box around the best prices in the second round, relative to their size. Without a box,
prices oscillate while columns are few: ten rounds reach what eight reach with it in a medium fleet."""

BOX_GROWTH, BOX_SHRINK, LARGEST_BOX = 1.2, 0.8, 1.0
"""Factors on the box after a round with a better bound and after one without, and the largest half width."""

LARGEST_SHARE: Final = 10.0
"""Cap on the cost to which a block's gap is relative, in even shares of the relaxation's spending. Penalties
of violated limits can make a block of offline work cost -8e13 in a year of 1e13, where no column beats a
known one by a hundredth of that. Without the cap, 14 rounds of a company end at a master LP of 13.3e12 that
violates limits; with it, at 7.9e12 within them."""


@dataclass(slots=True, eq=False)
class Prices:
    """Prices of the linking rows, with the best bound so far.

    Attributes
    ----------
    current : FloatArray
        Prices of the next round.
    best : FloatArray
        Prices of the best bound.
    master : FloatArray
        Prices of the last master LP, near the best.
    bound : float
        Best bound. [objective units]
    rounds : int
        Number of rounds begun.
    box : float
        Half width of the box around the best prices, relative to their size.
    smoothing : float
        Weight of the best prices in the next ones.
    to_gain : float
        Distance of the best bound and the master LP: the most that more rounds can gain. [objective units]
    spread : float
        That distance as a share of the master LP.
    settled : bool
        Whether more rounds gain too little.
    block_bounds : FloatArray
        Bound of every block at the best prices. [objective units]
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
        """Store the bound of a round; return whether it is the best so far."""
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
        """Return the box around the best prices.

        Its width is relative to the larger of the best price and of the master LP's price without a box; for
        prices near zero, to the median price, because a price that starts at zero can become large in one
        round.
        """
        size = np.abs(self.best)
        used = size[size > 0]
        typical = np.median(used) if used.size else 1.0
        width = self.box * np.maximum(np.maximum(size, np.abs(master_duals)), typical)
        return PriceRange(self.best - width, self.best + width)

    def follow(self, master: float, master_duals: FloatArray) -> None:
        """Set the next prices between the best and the master's, and update the distance to gain."""
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
    """Return one job per block: find its cheapest column at these prices, starting from the cheapest known.

    Parameters
    ----------
    priced : Priced
        Reduced costs at the prices.
    variables : list[IntArray]
        Variables of each block.
    pool : ColumnPool
        Known columns.
    effort : Effort
        Effort per block. Its gap is relative to the block's cost, within `LARGEST_SHARE`.
    lengths : FloatArray
        Relative expected duration of each block.
    even_share : float
        Cost of a block if all cost the same; infinite if unknown. [objective units]
    """
    jobs = []
    for number, own in enumerate(variables):
        cost = priced.reduced_cost[own]
        start = pool.cheapest(number, cost)
        limited = effort
        # Blocks lack a column only in the first round, whose prices include no penalties.
        if start is not None:
            size = min(abs(float(cost @ start)), LARGEST_SHARE * even_share)
            limited = replace(effort, gap_ratio=0.0, gap=effort.gap_ratio * size)
        jobs.append(Job(number, cost, limited, start, float(lengths[number])))
    return jobs


class PartFailedError(Exception):
    """HiGHS did not solve a program that one part of the search needs: the other parts continue."""


class InfeasibleBlockError(Exception):
    """A block has no column at all, so there is no plan."""
