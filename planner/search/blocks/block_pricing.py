"""Pricing rounds over all blocks; a round may begin before the last block of the round before answered.

Unless runs must be reproducible, the master continues with the known columns once no block waits for a seat
and a seat is idle. Late answers count towards their own round: the Lagrangian bound sums all blocks at the
same prices, so it is reported when the last one arrives.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from fleetplan.planner.search.blocks.bound import Priced, total_bound
from fleetplan.planner.search.blocks.columns import ColumnPool
from fleetplan.planner.search.blocks.composite_jobs import FewSlotsJob
from fleetplan.planner.search.blocks.effort import Clock
from fleetplan.planner.search.blocks.first_plans import SideJob
from fleetplan.planner.search.blocks.pricing import InfeasibleBlockError, pricing_jobs
from fleetplan.planner.search.blocks.roles import NONE
from fleetplan.planner.search.blocks.split import Split
from fleetplan.planner.search.blocks.state import SearchState
from fleetplan.planner.search.solvers.highs_jobs import Answer, Effort, Job
from fleetplan.planner.search.solvers.matrix import FloatArray, IntArray
from fleetplan.planner.search.solvers.workers import Batch, Workers


class PricingRound:
    """Bounds and columns of all blocks at one set of prices.

    Parameters
    ----------
    priced : Priced
        Prices of the linking rows.
    pool : ColumnPool
        Receives the columns.

    Attributes
    ----------
    bounds : FloatArray
        Proven bound of each block that answered. [objective units]
    new : int
        Number of new columns.
    """

    def __init__(self, priced: Priced, pool: ColumnPool) -> None:
        self.priced = priced
        self._pool = pool
        self._left = len(pool.parts.blocks)
        self.bounds: FloatArray = np.full(self._left, -np.inf)
        self.new = 0

    @property
    def complete(self) -> bool:
        """Return whether every block has answered."""
        return self._left == 0

    @property
    def bound(self) -> float:
        """Return the Lagrangian bound; -inf until every block has answered. [objective units]"""
        return total_bound(self.priced, self.bounds) if self.complete else -np.inf

    def take(self, block: int, answer: Answer) -> None:
        """Store the answer of a block.

        Raises
        ------
        InfeasibleBlockError
            If it has no column.
        """
        if answer.infeasible:
            raise InfeasibleBlockError
        self.bounds[block] = answer.bound
        self._left -= 1
        if answer.values is not None:
            self.new += self._pool.add(block, answer.values)


class BlockPricing:
    """Pricing of all blocks, round by round.

    Parameters
    ----------
    parts, pool : Split, ColumnPool
        Program in blocks, and the known columns.
    state, clock : SearchState, Clock
        Time limits, stop conditions, and whether runs must be reproducible.
    slot : IntArray
        Slot number by variable; -1 for none.
    """

    def __init__(
        self, parts: Split, pool: ColumnPool, state: SearchState, clock: Clock, slot: IntArray
    ) -> None:
        self._variables = [block.variables for block in parts.blocks]
        self._slots = [_of_its_own(slot[own]) for own in self._variables]
        self._pool = pool
        self._state = state
        self._clock = clock
        # Relative duration of each block: the search nodes of its last answer.
        self._nodes: FloatArray = np.zeros(len(self._variables))
        self._last: tuple[Batch, PricingRound] | None = None

    @property
    def side_jobs_run(self) -> bool:
        """Return whether side jobs of an earlier round are still running."""
        return self._last is not None and self._last[1].complete and not self._last[0].complete

    def price(
        self,
        workers: Workers,
        priced: Priced,
        effort: Effort,
        *,
        even_share: float = math.inf,
        side_jobs: Sequence[SideJob] = (),
        on_bound: Callable[[PricingRound], None] = lambda _: None,
        ahead: bool = False,
    ) -> PricingRound:
        """Price all blocks.

        Parameters
        ----------
        workers, priced, effort
            Processes, prices, and time per block.
        even_share : float
            Cost of a block if all cost the same; infinite if unknown. [objective units]
        side_jobs : Sequence
            Other jobs to run in parallel.
        on_bound : callable
            Called with the round when its last block has answered.
        ahead : bool
            Whether to return as soon as a seat is idle, if runs need not be reproducible and at most one
            round is incomplete.
        """
        found, n_blocks = PricingRound(priced, self._pool), len(self._variables)
        jobs = pricing_jobs(priced, self._variables, self._pool, effort, self._nodes, even_share)

        def on_answer(number: int, answer: Answer) -> None:
            if number >= n_blocks:
                side_jobs[number - n_blocks][1](answer)
                return
            self._nodes[number] = answer.nodes
            found.take(number, answer)
            if found.complete:
                on_bound(found)

        together = [*jobs, *(job for job, _ in side_jobs)]
        if self._clock.deterministic:
            # The order of answers depends on the machine.
            answers = workers.solve(together)
            for number in (*range(n_blocks, len(together)), *range(n_blocks)):
                on_answer(number, answers[number])
            return found
        before, batch = self._last, workers.give(together, self._state.expired, on_answer)
        self._last = batch, found

        def enough() -> bool:
            known = before is None or before[1].complete
            idle = not batch.waiting and len(batch.jobs) - len(batch.answers) < workers.count
            return ahead and known and (idle or self._state.content())

        workers.wait(batch, enough)
        return found

    def more_columns(
        self, workers: Workers, priced: Priced, effort: Effort, even_share: float = math.inf
    ) -> int:
        """Search one column of every block among few slots; return how many are new.

        Parameters
        ----------
        workers, priced, effort, even_share
            As in `price`.
        """
        known = pricing_jobs(priced, self._variables, self._pool, effort, self._nodes, even_share)
        jobs = [FewSlotsJob(*each) for each in zip(known, self._slots, strict=True)]
        answers = workers.solve(jobs, self._state.expired)
        return sum(
            self._pool.add(block, answer.values)
            for block, answer in enumerate(answers)
            if answer.values is not None
        )

    def complete_pool(self, workers: Workers, priced: Priced) -> bool:
        """Find a column for each block without one; return False if time runs out."""
        without = self._pool.blocks_without_column()
        effort = self._clock.first_column()
        jobs = [Job(block, priced.reduced_cost[self._variables[block]], effort) for block in without]
        answers = workers.solve(jobs, self._state.expired)
        for block, answer in zip(without, answers, strict=True):
            if answer.infeasible:
                raise InfeasibleBlockError
            if answer.values is not None:
                self._pool.add(block, answer.values)
        return not self._pool.blocks_without_column()


def _of_its_own(slot: IntArray) -> IntArray:
    """Renumber the slots of one block from 0; -1 for none."""
    found = np.full(len(slot), NONE, dtype=np.int64)
    placed = slot != NONE
    found[placed] = np.unique(slot[placed], return_inverse=True)[1]
    return found
