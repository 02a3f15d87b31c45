r"""Cuts that say what a block costs at least, whatever it runs on.

A block is what one service does in one moment. At prices y of the linking rows A, of a program with cost c,
whatever a block B does in a plan costs no less than its cheapest column:

.. math:: (c_B - A_B' y) x_B \ge \mathrm{bound}_B(c_B - A_B' y)

The block's solver proves the right side with whole replicas, so the row cuts off what runs in fractions, in
every program that holds its variables. All blocks at the prices of a linear optimum prove the Lagrangian
bound; in that program these rows do as well, and what they say of a block holds for any supply. They are the
Lagrangian cuts of stochastic programming (Zou, Ahmed and Sun, Math. Prog. 175, 2019).

At a given whole supply the first prices are those of the linear program with the cuts so far. They soon
repeat: that program knows little of whole replicas. The next ones come from the master over known columns,
near the best so far (pricing.py).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from fleetplan.planner.search.blocks.bound import Lagrangian
from fleetplan.planner.search.blocks.columns import ColumnPool
from fleetplan.planner.search.blocks.cover_cuts import Cuts
from fleetplan.planner.search.blocks.master import Master, PriceRange
from fleetplan.planner.search.blocks.pricing import InfeasibleBlockError, pricing_jobs
from fleetplan.planner.search.blocks.split import Split
from fleetplan.planner.search.solvers.highs_jobs import Answer, Effort, Job
from fleetplan.planner.search.solvers.matrix import FloatArray
from fleetplan.planner.search.solvers.relaxation import BOUND_SAFETY


class BlockCuts:
    """Prices blocks, and makes cuts of what they cost.

    Parameters
    ----------
    parts : Split
        Blocks and linking rows.
    lagrangian : Lagrangian
        Prices blocks.
    master : Master
        Mixes columns.
    pool : ColumnPool
        Receives the columns that are found.
    even_share : float
        What a block would cost if all did the same; infinite where nobody knows. [objective units]
    """

    def __init__(
        self,
        parts: Split,
        lagrangian: Lagrangian,
        master: Master,
        pool: ColumnPool,
        even_share: float = math.inf,
    ) -> None:
        self._parts = parts
        self._lagrangian = lagrangian
        self._master = master
        self._pool = pool
        self._even_share = even_share
        self._variables = [block.variables for block in parts.blocks]
        self._nodes: FloatArray = np.zeros(len(self._variables))
        self._priced = lagrangian.price(np.zeros(len(parts.linking_rows)))

    def of_linking_rows(self, row_duals: FloatArray) -> FloatArray:
        """The prices of the linking rows among those of all rows."""
        return row_duals[self._parts.linking_rows]

    def jobs(self, prices: FloatArray, effort: Effort) -> list[Job]:
        """A job for each block at some prices of the linking rows."""
        self._priced = self._lagrangian.price(prices)
        variables, share = self._variables, self._even_share
        return pricing_jobs(self._priced, variables, self._pool, effort, self._nodes, share)

    def learned(self, answers: Sequence[Answer]) -> Cuts:
        """The cuts that the answers to `jobs` prove, one a block; their columns are remembered.

        Raises
        ------
        InfeasibleBlockError
            If a block has no column.
        """
        coefficients, variables, least = [], [], []
        for number, answer in enumerate(answers):
            if answer.infeasible:
                raise InfeasibleBlockError
            self._nodes[number] = answer.nodes
            if answer.values is not None:
                self._pool.add(number, answer.values)
            own = self._variables[number]
            cost = self._priced.reduced_cost[own]
            size = float(np.abs(cost).max(initial=0.0))
            if size and np.isfinite(answer.bound):
                coefficients.append(cost / size)
                variables.append(own)
                least.append((answer.bound - BOUND_SAFETY * abs(answer.bound)) / size)
        n_variables = len(self._parts.block_of)
        if not least:
            return Cuts(sp.csr_array((0, n_variables)), np.zeros(0))
        ends = np.concatenate([[0], np.cumsum([len(each) for each in variables])])
        rows = sp.csr_array(
            (np.concatenate(coefficients), np.concatenate(variables), ends), shape=(len(least), n_variables)
        )
        rows.eliminate_zeros()
        return Cuts(rows, np.array(least))

    def bound_at(self, values: FloatArray, answers: Sequence[Answer]) -> float:
        """What any plan with the whole supply of some values costs at least. [objective units]

        Parameters
        ----------
        values : FloatArray
            Scaled values of all variables.
        answers : Sequence[Answer]
            To the last `jobs`.
        """
        reduced = self._priced.reduced_cost[self._parts.master_variables]
        held = self._held(values)
        lower = np.where(self._master.whole, held, self._master.lower)
        upper = np.where(self._master.whole, held, self._master.upper)
        own = np.minimum(reduced * lower, reduced * upper).sum()
        free = np.minimum(reduced * self._master.lower, reduced * self._master.upper).sum()
        return float(self._priced.constant - free + own + sum(answer.bound for answer in answers))

    def _held(self, values: FloatArray) -> FloatArray:
        return np.where(self._master.whole, np.round(values[self._parts.master_variables]), 0.0)

    def master_job(self, values: FloatArray, prices: PriceRange) -> Job | None:
        """The master over known columns with the whole supply of some values; None while a block has none.

        Parameters
        ----------
        values : FloatArray
            Scaled values of all variables.
        prices : PriceRange
            Of the linking rows.
        """
        if self._pool.blocks_without_column():
            return None
        scope = self._master.everything()
        return self._master.linear_job(scope, self._pool.columns, prices, self._held(values))
