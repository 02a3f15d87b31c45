"""Neighbourhoods: the blocks around a shared row are priced at prices of their own and chosen anew."""

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
"""Blocks of one neighbourhood at most: beyond it the integer master takes too long."""

AT_A_TIME: Final = 2
"""Neighbourhoods at a time, whatever the number of cores, so that every machine takes the same steps."""

LEAST_BLOCKS: Final = 3
"""Rows that fewer blocks share are no reason for a neighbourhood."""

COLUMNS_A_BLOCK: Final = 25
"""Columns of a block that an integer master looks at, the cheapest at the current prices."""

MASTER_S: Final = 1.0
"""Time of one integer master. Most take less, and while one takes longer the other cores wait for it:
with 3 s three scarce medium fleets are at 8.3, 6.0, 4.7 % after 45 s, with 1 s at 6.4, 5.6, 4.5 %. [s]"""

PENALTY_RATIO: Final = 20.0
"""Penalty of violating a limit in the master LP of a neighbourhood, over the largest price."""

LP_SUPPLY_SHARE: Final = 0.5
"""Share of neighbourhoods whose prices are of the master LP's supply, rounded, not of the plan's."""

PRICE_SPREAD: Final = 0.3
"""Prices of a neighbourhood are multiplied by one plus or minus up to this, row by row."""


@dataclass(frozen=True, slots=True, eq=False)
class Improvement:
    """What the integer master of one neighbourhood chose among its columns."""

    scope: Scope
    columns: list[Column]
    answer: Answer


class Neighbourhoods:
    """Improves a plan part by part.

    Parameters
    ----------
    parts : Split
        Blocks and linking rows.
    master : Master
        Chooses columns.
    lagrangian : Lagrangian
        Prices blocks.
    pool : ColumnPool
        Receives new columns.
    prices : Prices
        Of the linking rows, which better ones may replace meanwhile.
    seed : int
        Of the order and the variation of prices.
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
        """Blocks around rows that several share, and around variables of the master; each set once."""
        rows = self._parts.program.rows[self._parts.linking_rows]
        around_row = _held(rows, self._parts.block_of, len(self._parts.blocks))
        # Two blocks alone share the changes of one service; that is no neighbourhood.
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
        # Where no row is shared by several blocks, all blocks are one neighbourhood.
        return list(found.values()) or [np.arange(len(self._parts.blocks), dtype=np.int64)]

    def improve(
        self, workers: Workers, clock: Clock, selection: Selection, lp_supply: FloatArray
    ) -> list[Improvement]:
        """Some neighbourhoods at a time, each as if the others stayed as they are.

        Parameters
        ----------
        workers, clock
            Who does it, and for how long.
        selection : Selection
            The plan.
        lp_supply : FloatArray
            Scaled values of the master's variables in a mixture of columns.
        """
        picked = self._pick()
        scopes = [self._scope(selection, blocks) for blocks in picked]
        # Columns that suit the plan's own supply alone would never lead to another.
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
        """Neighbourhoods without a block in common, in a random order in which each has its turn."""
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
        # Those that overlap with what was picked are next.
        self._order += reversed(waiting)
        return picked

    def _scope(self, selection: Selection, blocks: IntArray) -> Scope:
        touched = np.unique(np.concatenate([self._pool.linking_rows_of(block) for block in blocks.tolist()]))
        return self._master.around(selection, blocks, touched)

    def _own_prices(self, workers: Workers, scopes: list[Scope], supply: FloatArray) -> list[FloatArray]:
        """Prices where integer supply is held, varied a little; the best prices elsewhere."""
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
        """New columns of all blocks of some neighbourhoods, each at the prices of its own."""
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
    """Which blocks the variables of each row are of, as a matrix of ones, shape (n_rows, n_blocks)."""
    entries = rows.tocoo()
    block = block_of[entries.coords[1]]
    blocked = block >= 0
    coords = entries.coords[0][blocked], block[blocked]
    found = sp.coo_array((np.ones(len(coords[0])), coords), shape=(rows.shape[0], n_blocks)).tocsr()
    found.data[:] = 1.0
    return found
