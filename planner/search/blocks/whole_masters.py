"""The masters over all blocks: what the linear one mixes sets prices, what integer ones choose are plans."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from fleetplan.planner.search.blocks.breadth import Breadth
from fleetplan.planner.search.blocks.effort import Clock
from fleetplan.planner.search.blocks.highs_jobs import Answer, Job
from fleetplan.planner.search.blocks.master import Master, PriceRange
from fleetplan.planner.search.blocks.matrix import FloatArray
from fleetplan.planner.search.blocks.patterns import Pattern, PatternPool
from fleetplan.planner.search.blocks.rounds import PartFailedError, Prices
from fleetplan.planner.search.blocks.standing import Standing
from fleetplan.planner.search.blocks.workers import Workers

MASTER_S_A_BLOCK: Final = 0.015
"""Time of an integer master over all blocks, per block. [s]"""

LEAST_MASTER_S: Final = 2.0
"""Its least time. [s]"""

FIRST_MASTER_S: Final = 1.5
"""Time of the integer master that is to find the first plan. [s]"""

FIRST_MASTERS: Final = 2
"""So many of them a round: the second chooses where patterns of the first lacked replicas, and got them."""

MASTERS_AT_ONCE: Final = 2
"""Masters that choose at once, where nothing else is to be done."""

LEAST_SHARE: Final = 1e-6
"""Share in the linear master from which a pattern is one that it mixes."""

PASSED_TOLERANCE: Final = 1e-6
"""Scaled limits that the linear master passes by no more than this, all together, are kept."""


@dataclass(frozen=True, slots=True, eq=False)
class MasterJob:
    """An integer master, and the patterns that it chooses among.

    Attributes
    ----------
    job : Job
        The program.
    patterns : list[Pattern]
        Of all blocks.
    more : int
        How many of them are neither mixed, nor the plan's, nor the cheapest of their block.
    """

    job: Job
    patterns: list[Pattern]
    more: int


class WholeMasters:
    """Mixes and chooses among patterns of all blocks.

    Parameters
    ----------
    master, pool
        What is chosen among.
    standing : Standing
        Receives the plans.
    clock : Clock
        Says how long.
    n_blocks, n_linking : int
        Blocks and linking rows.

    Attributes
    ----------
    mixed_supply : FloatArray
        Scaled values of the master's variables in the last linear master.
    passed : bool
        Whether it passes limits.
    pending : FloatArray or None
        Best prices after the last round, until an integer master chooses among the patterns that suit them.
    """

    def __init__(
        self,
        master: Master,
        pool: PatternPool,
        standing: Standing,
        clock: Clock,
        n_blocks: int,
        n_linking: int,
    ) -> None:
        self._master = master
        self._pool = pool
        self._standing = standing
        self._clock = clock
        self._n_linking = n_linking
        # What an integer master over all blocks may take, in seconds.
        self._seconds = max(LEAST_MASTER_S, MASTER_S_A_BLOCK * n_blocks)
        self._mixed: list[Pattern] = []
        self._mixed_duals: FloatArray = np.zeros(n_linking)
        self._breadth = Breadth(n_blocks)
        self.mixed_supply: FloatArray = np.zeros(0)
        self.passed = True
        self.pending: FloatArray | None = None

    def mix_anywhere(self, workers: Workers, patterns: list[Pattern], penalty: float) -> FloatArray:
        """Solve the linear master with prices up to a penalty, and note what it mixes.

        Returns
        -------
        FloatArray
            Its prices of the linking rows.
        """
        n_linking = self._n_linking
        _, duals, values = self._linear(workers, patterns, PriceRange.of_penalty(penalty, n_linking))
        self.mixed_supply = values[len(patterns) : -2 * n_linking]
        self._mixed_duals = duals
        self._mixed = [patterns[i] for i in np.flatnonzero(values[: len(patterns)] > LEAST_SHARE)]
        self.passed = float(values[-2 * n_linking :].sum()) > PASSED_TOLERANCE
        return duals

    def mix(self, workers: Workers, prices: Prices, patterns: list[Pattern], penalty: float) -> float:
        """Set the next prices by the linear master with prices near the best; its objective."""
        anywhere = self.mix_anywhere(workers, patterns, penalty)
        near = prices.near(anywhere) & PriceRange.of_penalty(penalty, self._n_linking)
        objective, duals, _ = self._linear(workers, patterns, near)
        prices.follow(objective, duals)
        return objective

    def _linear(
        self, workers: Workers, patterns: list[Pattern], prices: PriceRange
    ) -> tuple[float, FloatArray, FloatArray]:
        """Objective, prices of the linking rows, and values of the linear master."""
        job = self._master.linear_job(self._master.everything(), patterns, prices)
        mixed = workers.solve_one(job)
        if mixed.row_duals is None or mixed.values is None:
            raise PartFailedError(f"HiGHS did not solve the linear master: {mixed.status}")
        return mixed.objective, mixed.row_duals[: self._n_linking], mixed.values

    def choose_first(self, workers: Workers, prices: FloatArray) -> None:
        """Let integer masters look for a plan while there is none: again where patterns lacked replicas."""
        for _ in range(FIRST_MASTERS):
            if self._standing.incumbent.objective is None:
                self._choose(workers, prices, FIRST_MASTER_S)

    def choose_pending(self, workers: Workers) -> None:
        """Let integer masters choose among the last patterns, if none has done so yet."""
        prices, self.pending = self.pending, None
        if prices is not None:
            self._choose(workers, prices, self._seconds)

    def take_pending(self) -> MasterJob | None:
        """The integer master over the last patterns, if none has been solved yet."""
        prices, self.pending = self.pending, None
        return None if prices is None else self.job(prices, self._seconds)

    def job(self, prices: FloatArray, seconds: float, rank: int = 0) -> MasterJob:
        """An integer master among what the linear one mixes, the plan's patterns, and some more.

        Parameters
        ----------
        prices : FloatArray
            Of the linking rows, at which the cheapest pattern of each block is one of them.
        seconds : float
            How long it may take. [s]
        rank : int
            Of several masters that choose at once: each looks at more than the one before. While the plan
            is far from good, the first looks at no more.
        """
        standing, everything = self._standing, self._master.everything()
        choice = standing.incumbent.choice
        besides = (*self._mixed, *(() if choice is None else choice.patterns))
        patterns = self._pool.promising(everything.blocks.tolist(), prices, 1, besides)
        known = len(patterns)
        share = rank if standing.far() else (rank + 1) / MASTERS_AT_ONCE
        if share:
            patterns = self._pool.nearly_mixed(self._mixed_duals, int(share * self._breadth.more), patterns)
        effort = self._clock.master(seconds, standing.overtime_s())
        job = self._master.integer_job(everything, patterns, effort, choice)
        return MasterJob(replace(job, length=math.inf), patterns, len(patterns) - known)

    def _choose(self, workers: Workers, prices: FloatArray, seconds: float) -> None:
        """Let integer masters choose now, each core among patterns of its own."""
        # What repeats on any number of cores has both on one, one after the other.
        both = workers.count > 1 or self._clock.deterministic
        masters = [self.job(prices, seconds, rank) for rank in range(MASTERS_AT_ONCE if both else 1)]
        answers = workers.solve([each.job for each in masters])
        self.learn(answers, masters)
        for answer, master in zip(answers, masters, strict=True):
            self.offer(answer, master)

    def offer(self, answer: Answer, master: MasterJob) -> None:
        """Keep what an integer master chose, if it is better; mend patterns that lack replicas."""
        choice = self._master.chosen(self._master.everything(), master.patterns, answer, None)
        if choice is None:
            return
        incumbent = self._standing.incumbent
        if incumbent.offer(choice):
            self._standing.tell("master", f"integer master over {len(master.patterns)} patterns")
            return
        if incumbent.objective is None or choice.cost < incumbent.objective:
            for pattern, values in incumbent.mended(choice):
                self._pool.replace(pattern, values)
                self._mixed = [each for each in self._mixed if each is not pattern]

    def beside(self, master: MasterJob) -> tuple[Job, Callable[[Answer], None]]:
        """A master that runs beside other jobs, and what is done with its answer."""

        def hear(answer: Answer) -> None:
            self.learn([answer], [master])
            self.offer(answer, master)

        return master.job, hear

    def learn(self, answers: Sequence[Answer], masters: Sequence[MasterJob]) -> None:
        """Note how many patterns pay, from masters that chose at once, the widest of them last."""
        widest = masters[-1]
        start = math.inf if widest.job.start is None else float(widest.job.cost @ widest.job.start)
        self._breadth.learn(widest.more, start, answers)
