"""Restricted masters over all blocks: the linear one sets dual prices, integer ones give plans."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from fleetplan.fleet.figures import counted
from fleetplan.planner.search.blocks.column_limit import ColumnLimit
from fleetplan.planner.search.blocks.columns import Column, ColumnPool
from fleetplan.planner.search.blocks.effort import Clock
from fleetplan.planner.search.blocks.master import Master, PriceRange
from fleetplan.planner.search.blocks.mending import Mending
from fleetplan.planner.search.blocks.pricing import PartFailedError, Prices
from fleetplan.planner.search.blocks.state import SearchState
from fleetplan.planner.search.solvers.highs_jobs import Answer, Job
from fleetplan.planner.search.solvers.matrix import FloatArray
from fleetplan.planner.search.solvers.workers import Workers

MASTER_S_A_BLOCK: Final = 0.015
"""Time of an integer master over all blocks, per block. [s]"""

LEAST_MASTER_S: Final = 2.0
"""Its least time. [s]"""

FIRST_MASTER_S: Final = 1.5
"""Time of the integer master that is to find the first plan. [s]"""

FIRST_MASTERS: Final = 2
"""So many of them a round: the second chooses where columns of the first lacked replicas, and got them."""

MASTERS_AT_ONCE: Final = 2
"""Masters that choose at once, where nothing else is to be done."""

LEAST_SHARE: Final = 1e-6
"""Value in the master LP from which a column counts as used."""

VIOLATION_TOLERANCE: Final = 1e-6
"""Scaled limits that the master LP violates by no more than this, all together, are kept."""


@dataclass(frozen=True, slots=True, eq=False)
class MasterJob:
    """An integer master, and the columns that it chooses among.

    Attributes
    ----------
    job : Job
        The program.
    columns : list[Column]
        Of all blocks.
    extra : int
        How many of them are neither the master LP's, nor the plan's, nor the cheapest of their block.
    """

    job: Job
    columns: list[Column]
    extra: int


class RestrictedMasters:
    """Solves restricted masters over the columns of all blocks.

    Parameters
    ----------
    master, pool : Master, ColumnPool
        What is chosen among.
    mending : Mending
        Receives the plans.
    state : SearchState
        Has the best one.
    clock : Clock
        Says how long.

    Attributes
    ----------
    lp_supply : FloatArray
        Scaled values of the master's variables in the last master LP.
    violated : bool
        Whether it violates limits.
    pending : FloatArray or None
        Best prices after the last round, until an integer master chooses among the columns that suit them.
    """

    def __init__(
        self,
        master: Master,
        pool: ColumnPool,
        mending: Mending,
        state: SearchState,
        clock: Clock,
    ) -> None:
        n_blocks, n_linking = len(master.everything().blocks), len(master.row_lower)
        self._master = master
        self._pool = pool
        self._mending = mending
        self._state = state
        self._clock = clock
        self._n_linking = n_linking
        # What an integer master over all blocks may take, in seconds.
        self._seconds = max(LEAST_MASTER_S, MASTER_S_A_BLOCK * n_blocks)
        self._lp_columns: list[Column] = []
        self._lp_duals: FloatArray = np.zeros(n_linking)
        self._column_limit = ColumnLimit(n_blocks)
        self.lp_supply: FloatArray = np.zeros(0)
        self.violated = True
        self.pending: FloatArray | None = None

    def solve_lp(self, workers: Workers, columns: list[Column], penalty: float) -> FloatArray:
        """Solve the master LP with prices up to a penalty, and note which columns it uses.

        Returns
        -------
        FloatArray
            Its prices of the linking rows.
        """
        n_linking = self._n_linking
        _, duals, values = self._linear(workers, columns, PriceRange.of_penalty(penalty, n_linking))
        self.lp_supply = values[len(columns) : -2 * n_linking]
        self._lp_duals = duals
        self._lp_columns = [columns[i] for i in np.flatnonzero(values[: len(columns)] > LEAST_SHARE)]
        self.violated = float(values[-2 * n_linking :].sum()) > VIOLATION_TOLERANCE
        return duals

    def solve_lp_near_best(
        self, workers: Workers, prices: Prices, columns: list[Column], penalty: float
    ) -> float:
        """Set the next prices by the master LP with prices near the best; its objective."""
        anywhere = self.solve_lp(workers, columns, penalty)
        near = prices.near(anywhere) & PriceRange.of_penalty(penalty, self._n_linking)
        objective, duals, _ = self._linear(workers, columns, near)
        prices.follow(objective, duals)
        return objective

    def _linear(
        self, workers: Workers, columns: list[Column], prices: PriceRange
    ) -> tuple[float, FloatArray, FloatArray]:
        """Objective, prices of the linking rows, and values of the master LP."""
        job = self._master.linear_job(self._master.everything(), columns, prices)
        answer = workers.solve_one(job)
        if answer.row_duals is None or answer.values is None:
            raise PartFailedError(f"HiGHS did not solve the master LP: {answer.status}")
        return answer.objective, answer.row_duals[: self._n_linking], answer.values

    def choose_first(self, workers: Workers, prices: FloatArray) -> None:
        """Let integer masters look for a plan while there is none: again where columns lacked replicas."""
        for _ in range(FIRST_MASTERS):
            if self._state.incumbent.objective is None:
                self._choose(workers, prices, FIRST_MASTER_S)

    def choose_pending(self, workers: Workers) -> None:
        """Let integer masters choose among the last columns, if none has done so yet."""
        prices, self.pending = self.pending, None
        if prices is not None:
            self.choose(workers, prices)

    def choose(self, workers: Workers, prices: FloatArray) -> None:
        """Let integer masters choose among the columns that suit some prices."""
        self._choose(workers, prices, self._seconds)

    def take_pending(self) -> MasterJob | None:
        """The integer master over the last columns, if none has been solved yet."""
        prices, self.pending = self.pending, None
        return None if prices is None else self.job(prices, self._seconds)

    def job(self, prices: FloatArray, seconds: float, rank: int = 0) -> MasterJob:
        """An integer master over the columns that the master LP and the plan use, and some more.

        Parameters
        ----------
        prices : FloatArray
            Of the linking rows, at which the cheapest column of each block is one of them.
        seconds : float
            How long it may take. [s]
        rank : int
            Of several masters that choose at once: each looks at more than the one before. While the plan
            is far from good, the first looks at no more.
        """
        state, everything = self._state, self._master.everything()
        selection = state.incumbent.selection
        mixed = map(self._pool.current, self._lp_columns)
        always = (*mixed, *(() if selection is None else selection.columns))
        columns = self._pool.promising(everything.blocks.tolist(), prices, 1, always)
        known = len(columns)
        share = rank if state.far() else (rank + 1) / MASTERS_AT_ONCE
        if share:
            columns = self._pool.by_reduced_cost(
                self._lp_duals, int(share * self._column_limit.extra), columns
            )
        effort = self._clock.master(seconds, state.overtime_s())
        job = self._master.integer_job(everything, columns, effort, selection)
        return MasterJob(replace(job, length=math.inf), columns, len(columns) - known)

    def _choose(self, workers: Workers, prices: FloatArray, seconds: float) -> None:
        """Let integer masters choose now, each core among columns of its own."""
        # What repeats on any number of cores has both on one, one after the other.
        both = workers.count > 1 or self._clock.deterministic
        masters = [self.job(prices, seconds, rank) for rank in range(MASTERS_AT_ONCE if both else 1)]
        answers = workers.solve([each.job for each in masters])
        self.learn(answers, masters)
        for answer, master in zip(answers, masters, strict=True):
            self.offer(answer, master)
        self._mending.decide_supply(workers)

    def offer(self, answer: Answer, master: MasterJob) -> None:
        """Keep what an integer master chose, if it is better."""
        selection = self._master.chosen(self._master.everything(), master.columns, answer, None)
        if selection is not None and self._mending.offer(selection):
            self._state.tell("master", f"integer master over {counted(len(master.columns), 'column')}")

    def side_job(self, master: MasterJob) -> tuple[Job, Callable[[Answer], None]]:
        """A master that runs beside other jobs, and what is done with its answer."""

        def on_answer(answer: Answer) -> None:
            self.learn([answer], [master])
            self.offer(answer, master)

        return master.job, on_answer

    def learn(self, answers: Sequence[Answer], masters: Sequence[MasterJob]) -> None:
        """Note how many columns pay, from masters that chose at once, the widest of them last."""
        widest = masters[-1]
        start = math.inf if widest.job.start is None else float(widest.job.cost @ widest.job.start)
        self._column_limit.learn(widest.extra, start, answers)
