"""Linear relaxation with cover cuts that it violates, at its own and at other prices."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from fleetplan.planner.search.blocks.construction import Structure, slots_used
from fleetplan.planner.search.blocks.cover_cuts import CoverRows, Cuts
from fleetplan.planner.search.blocks.effort import Clock
from fleetplan.planner.search.blocks.linear import slotted_job
from fleetplan.planner.search.solvers.matrix import FloatArray
from fleetplan.planner.search.solvers.workers import Workers

MOST_ROUNDS: Final = 5
"""Relaxations per set of prices, after which the search for cuts ends."""

OTHER_PRICES: Final = 4
"""Random supply prices at which to search more cuts: with whole supply, other cuts bind than in the
relaxation. For one team, eight such prices raise the bound from 877 to 892 thousand USD, all 1,220 cuts to
893 in 1.5 times the time. Four take half the time of eight."""

PRICE_SPREAD: Final = 0.7
"""Standard deviation of the logarithm of these prices."""

SHARE_OF_TIME: Final = 0.1
"""Share of the time limit after which the search for cuts ends."""


@dataclass(frozen=True, slots=True, eq=False)
class Strengthening:
    """Search for the cover cuts of a program.

    Parameters
    ----------
    structure : Structure
        The program.
    cover : CoverRows
        Its rows with cover cuts.
    indicators : Collection[int]
        Variables that only indicate which configurations run.
    seed : int
        Random seed of the other prices.
    """

    structure: Structure
    cover: CoverRows
    indicators: Collection[int]
    seed: int

    def found(self, root: FloatArray, workers: Workers, clock: Clock) -> Structure:
        """Return the program with its cuts appended to the rows.

        Parameters
        ----------
        root : FloatArray
            Scaled optimum of the linear relaxation.
        workers : Workers
            Processes that solve linear relaxations.
        clock : Clock
            Time limits.
        """
        until = clock.spent_s() + SHARE_OF_TIME * clock.limit_s
        cost, growth = self.structure.cost, self.structure.roles.growth
        rng = np.random.default_rng(self.seed)
        cuts = self.cover.violated_by(root)
        prices = [cost]
        together = clock.sharing(workers.count)
        for _ in range(OTHER_PRICES):
            factor = np.exp(rng.normal(0.0, PRICE_SPREAD, len(cost)))
            prices.append(np.where(growth != 0, cost * factor, cost))
        for first in range(0, len(prices), together):
            cuts = self._missed(prices[first : first + together], cuts, root, workers)
            if clock.spent_s() > until:
                break
        return replace(self.structure, relaxation=self.structure.relaxation.with_cuts(cuts.rows, cuts.least))

    def _missed(self, prices: list[FloatArray], cuts: Cuts, root: FloatArray, workers: Workers) -> Cuts:
        """Return the known cuts and those that bind in relaxations at these prices."""
        slot = self.structure.roles.slot
        # Following variables would double the time.
        rest = np.concatenate([list(self.indicators), np.flatnonzero(self.structure.following)])
        plain = self.structure.relaxation.without_limits_on(rest.astype(np.int64).tolist())
        first, open_slots = cuts.count, slots_used(self.structure, root)
        for _ in range(MOST_ROUNDS):
            relaxed = plain.with_cuts(cuts.rows, cuts.least)
            answers = workers.solve([slotted_job(relaxed, each, slot, open_slots) for each in prices])
            points = [each.values for each in answers if each.values is not None]
            for point in points:
                open_slots |= slots_used(self.structure, point)
            missed = [self.cover.violated_by(point) for point in points]
            if not sum(each.count for each in missed):
                return cuts.first_and_binding(first, points)
            cuts = cuts.and_more(missed)
        return cuts
