"""Rounds of pricing: every block at the prices of the linking rows, a bound and new patterns from each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from fleetplan.planner.decomposition.bound import Priced, total_bound
from fleetplan.planner.decomposition.effort import Clock
from fleetplan.planner.decomposition.highs_jobs import Answer, Job
from fleetplan.planner.decomposition.matrix import FloatArray, IntArray
from fleetplan.planner.decomposition.patterns import PatternPool

CENTRE_WEIGHT: Final = 0.5
"""Share of the best prices so far in the next ones; the rest is the linear master's. Prices of the master
alone jump far away and back while patterns are few."""

FIRST_CENTRE_WEIGHT: Final = 0.8
"""The same until the master has patterns from three rounds."""

ROUGH_ROUNDS: Final = 3
"""Rounds in which prices are still far from the last: blocks are priced roughly."""


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
    """

    current: FloatArray
    best: FloatArray
    bound: float
    rounds: int = 0

    def note(self, duals: FloatArray, bound: float) -> bool:
        """Keep the bound of a round; True if it is the best so far."""
        self.rounds += 1
        better = bound > self.bound
        if better:
            self.best, self.bound = duals, bound
        return better

    def follow(self, master_duals: FloatArray) -> None:
        """Set the next prices between the best and the master's."""
        weight = FIRST_CENTRE_WEIGHT if self.rounds < ROUGH_ROUNDS else CENTRE_WEIGHT
        self.current = weight * self.best + (1 - weight) * master_duals


def pricing_jobs(lagrangian_price: Priced, columns: list[IntArray], clock: Clock, rough: bool) -> list[Job]:
    """One job a block: its cheapest pattern at some prices."""
    effort = clock.pricing(rough)
    return [Job(number, lagrangian_price.reduced_cost[own], effort) for number, own in enumerate(columns)]


class InfeasibleBlockError(Exception):
    """A block has no pattern at all, so there is no plan."""


def take(priced: Priced, answers: list[Answer], pool: PatternPool) -> tuple[float, int]:
    """The bound of a round, and how many patterns are new.

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
    return total_bound(priced, np.array([answer.bound for answer in answers])), new
