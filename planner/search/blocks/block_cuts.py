r"""Lagrangian cuts: lower bounds on the cost of a block, whatever hardware it runs on.

A block is one service in one moment. At prices y of the linking rows A, in a program with cost c, a block B
costs at least as much as its cheapest column:

.. math:: (c_B - A_B' y) x_B \ge \mathrm{bound}_B(c_B - A_B' y)

The block's solver proves the right side with whole replicas, so the row cuts off fractional replicas in every
program with these variables. Cuts of all blocks at the prices of a linear optimum prove the Lagrangian bound
in that program too, and hold for any supply. They are the Lagrangian cuts of stochastic programming (Zou,
Ahmed and Sun, Math. Prog. 175, 2019).

For a given whole supply, the first prices are those of the linear program with the cuts so far. They soon
repeat, because that program knows little about whole replicas. Later prices come from the master over known
columns, near the best prices so far (pricing.py).
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
    """Pricing of blocks, and cuts from the proven bounds.

    Parameters
    ----------
    parts : Split
        Blocks and linking rows.
    lagrangian : Lagrangian
        Prices linking rows into the objective.
    master : Master
        Restricted master.
    pool : ColumnPool
        Receives the columns found.
    even_share : float
        Cost of a block if all cost the same; infinite if unknown. [objective units]
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
        """Return the prices of the linking rows, out of those of all rows."""
        return row_duals[self._parts.linking_rows]

    def jobs(self, prices: FloatArray, effort: Effort) -> list[Job]:
        """Return one pricing job per block at prices of the linking rows."""
        self._priced = self._lagrangian.price(prices)
        variables, share = self._variables, self._even_share
        return pricing_jobs(self._priced, variables, self._pool, effort, self._nodes, share)

    def learned(self, answers: Sequence[Answer]) -> Cuts:
        """Return the cuts that the answers to `jobs` prove, one per block, and store their columns.

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
        """Return a lower bound on any plan with this whole supply. [objective units]

        Parameters
        ----------
        values : FloatArray
            Scaled values of all variables.
        answers : Sequence[Answer]
            Answers to the last `jobs`.
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
        """Return the master LP over known columns at this whole supply; None while a block has no column.

        Parameters
        ----------
        values : FloatArray
            Scaled values of all variables.
        prices : PriceRange
            Price range of the linking rows.
        """
        if self._pool.blocks_without_column():
            return None
        scope = self._master.everything()
        return self._master.linear_job(scope, self._pool.columns, prices, self._held(values))
