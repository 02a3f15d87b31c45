"""Column neighbourhoods: price the blocks around a shared row at their own prices, and choose again."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

import numpy as np
import scipy.sparse as sp

from fleetplan.planner.search.blocks.bound import Lagrangian
from fleetplan.planner.search.blocks.columns import Column, ColumnPool
from fleetplan.planner.search.blocks.effort import Clock
from fleetplan.planner.search.blocks.master import Master, PriceRange, Scope, Selection
from fleetplan.planner.search.blocks.pricing import Prices
from fleetplan.planner.search.blocks.split import Split
from fleetplan.planner.search.solvers.highs_jobs import Answer, Job
from fleetplan.planner.search.solvers.matrix import FloatArray, IntArray
from fleetplan.planner.search.solvers.workers import Workers

MOST_BLOCKS: Final = 100
"""Largest neighbourhood: with more blocks the integer master takes too long."""

AT_A_TIME: Final = 2
"""Neighbourhoods solved in parallel, the same on every machine so that all take the same steps."""

LEAST_BLOCKS: Final = 3
"""Least blocks that must share a row to form a neighbourhood."""

COLUMNS_A_BLOCK: Final = 25
"""Columns per block in an integer master, the cheapest at the current prices."""

MASTER_S: Final = 1.0
"""Time limit of an integer master. Most take less, and the other cores wait for the longest: after 45 s, the
gaps of three scarce medium fleets are 6.4, 5.6 and 4.5 % with 1 s, and 8.3, 6.0 and 4.7 % with 3 s. [s]"""

PENALTY_RATIO: Final = 20.0
"""Penalty of violating a limit in a neighbourhood's master LP, as a multiple of the largest price."""

LP_SUPPLY_SHARE: Final = 0.5
"""Probability that prices follow the master LP's supply, rounded, instead of the plan's."""

PRICE_SPREAD: Final = 0.3
"""Largest random relative change of a neighbourhood's prices, row by row."""


@dataclass(frozen=True, slots=True, eq=False)
class Improvement:
    """Answer of one neighbourhood's integer master, with its columns."""

    scope: Scope
    columns: list[Column]
    answer: Answer


class Neighbourhoods:
    """Improvement of a plan, neighbourhood by neighbourhood.

    Parameters
    ----------
    parts : Split
        Blocks and linking rows.
    master : Master
        Restricted master.
    lagrangian : Lagrangian
        Prices linking rows into the objective.
    pool : ColumnPool
        Receives new columns.
    prices : Prices
        Prices of the linking rows, updated while the search runs.
    seed : int
        Random seed of the order and of the price changes.
    """

    def __init__(
        self,
        parts: Split,
        master: Master,
        lagrangian: Lagrangian,
        pool: ColumnPool,
        prices: Prices,
        seed: int,
    ) -> None:
        self._parts = parts
        self._master = master
        self._lagrangian = lagrangian
        self._pool = pool
        self._prices = prices
        self._random = random.Random(seed)
        self._anchors = self._find_anchors()
        self._order: list[int] = []

    def _find_anchors(self) -> list[IntArray]:
        """Return the distinct sets of blocks around shared rows and around the master's variables."""
        rows = self._parts.program.rows[self._parts.linking_rows]
        around_row = _held(rows, self._parts.block_of, len(self._parts.blocks))
        # Two blocks share only the changes of one service: no neighbourhood.
        around_row = sp.diags_array(np.diff(around_row.indptr) >= LEAST_BLOCKS, dtype=float) @ around_row
        around_variable = abs(self._master.rows).T @ around_row
        found: dict[bytes, IntArray] = {}
        for around in (around_row, around_variable):
            blocks = sp.csr_array(around)
            blocks.eliminate_zeros()
            blocks.sort_indices()
            for first, last in pairwise(blocks.indptr.tolist()):
                if last > first:
                    own = blocks.indices[first:last].astype(np.int64)
                    found.setdefault(own.tobytes(), own)
        # If no row is shared by several blocks, all blocks form one neighbourhood.
        return list(found.values()) or [np.arange(len(self._parts.blocks), dtype=np.int64)]

    def improve(
        self, workers: Workers, clock: Clock, selection: Selection, lp_supply: FloatArray
    ) -> list[Improvement]:
        """Solve several neighbourhoods in parallel, each as if the rest of the plan stayed.

        Parameters
        ----------
        workers, clock
            Processes, and time limits.
        selection : Selection
            Current plan.
        lp_supply : FloatArray
            Scaled values of the master's variables in a mixture of columns.
        """
        picked = self._pick()
        scopes = [self._scope(selection, blocks) for blocks in picked]
        # Columns priced only at the plan's supply would never lead to another.
        other = self._random.random() < LP_SUPPLY_SHARE
        supply = np.round(lp_supply) if other else selection.master
        prices = self._own_prices(workers, scopes, supply)
        self._price(workers, clock, picked, prices)
        columns = [
            self._pool.promising(blocks.tolist(), duals, COLUMNS_A_BLOCK, selection.columns)
            for blocks, duals in zip(picked, prices, strict=True)
        ]
        jobs = [
            self._master.integer_job(scope, own, clock.master(MASTER_S), selection)
            for scope, own in zip(scopes, columns, strict=True)
        ]
        answers = workers.solve(jobs)
        return [Improvement(*each) for each in zip(scopes, columns, answers, strict=True)]

    def _pick(self) -> list[IntArray]:
        """Return disjoint neighbourhoods, in a random order in which each has its turn."""
        if not self._order:
            self._order = list(range(len(self._anchors)))
            self._random.shuffle(self._order)
        picked: list[IntArray] = []
        taken: set[int] = set()
        waiting: list[int] = []
        while self._order and len(picked) < AT_A_TIME:
            number = self._order.pop()
            blocks = self._anchors[number]
            if taken & set(blocks.tolist()):
                waiting.append(number)
                continue
            if len(blocks) > MOST_BLOCKS:
                blocks = np.array(sorted(self._random.sample(blocks.tolist(), MOST_BLOCKS)))
            picked.append(blocks)
            taken |= set(blocks.tolist())
        # Neighbourhoods that overlap with the picked ones come next.
        self._order += reversed(waiting)
        return picked

    def _scope(self, selection: Selection, blocks: IntArray) -> Scope:
        touched = np.unique(np.concatenate([self._pool.linking_rows_of(block) for block in blocks.tolist()]))
        return self._master.around(selection, blocks, touched)

    def _own_prices(self, workers: Workers, scopes: list[Scope], supply: FloatArray) -> list[FloatArray]:
        """Return prices with integer supply fixed, slightly varied; the best prices elsewhere."""
        penalty = PENALTY_RATIO * float(np.abs(self._prices.best).max(initial=1.0))
        jobs = [
            self._master.linear_job(
                scope,
                list(self._pool.of(scope.blocks.tolist())),
                PriceRange.of_penalty(penalty, len(scope.rows)),
                supply,
            )
            for scope in scopes
        ]
        answers = workers.solve(jobs)
        found = []
        for scope, answer in zip(scopes, answers, strict=True):
            duals = self._prices.best.copy()
            if answer.row_duals is not None:
                weight = self._random.random()
                own = answer.row_duals[: len(scope.rows)]
                duals[scope.rows] = weight * own + (1 - weight) * duals[scope.rows]
            spread = np.array([self._random.uniform(-1, 1) for _ in scope.rows])
            duals[scope.rows] *= 1 + PRICE_SPREAD * spread
            found.append(duals)
        return found

    def _price(
        self, workers: Workers, clock: Clock, picked: list[IntArray], prices: list[FloatArray]
    ) -> None:
        """Find new columns for all blocks of the neighbourhoods, at the prices of each."""
        effort = clock.pricing(math.inf)
        jobs = []
        for blocks, duals in zip(picked, prices, strict=True):
            reduced = self._lagrangian.price(duals).reduced_cost
            for block in blocks.tolist():
                cost = reduced[self._parts.blocks[block].variables]
                jobs.append(Job(block, cost, effort, self._pool.cheapest(block, cost)))
        answers = workers.solve(jobs)
        for block, answer in zip(np.concatenate(picked).tolist(), answers, strict=True):
            if answer.values is not None:
                self._pool.add(block, answer.values)


def _held(rows: sp.csr_array, block_of: IntArray, n_blocks: int) -> sp.csr_array:
    """Return which blocks have variables in each row, as a 0/1 matrix, shape (n_rows, n_blocks)."""
    entries = rows.tocoo()
    block = block_of[entries.coords[1]]
    blocked = block >= 0
    coords = entries.coords[0][blocked], block[blocked]
    found = sp.coo_array((np.ones(len(coords[0])), coords), shape=(rows.shape[0], n_blocks)).tocsr()
    found.data[:] = 1.0
    return found
