"""Neighbourhoods: the blocks around a shared row are priced at prices of their own and chosen anew."""

from __future__ import annotations

import random
from typing import Final

import numpy as np
import scipy.sparse as sp

from fleetplan.planner.decomposition.blocks import Split
from fleetplan.planner.decomposition.bound import Lagrangian
from fleetplan.planner.decomposition.effort import Clock
from fleetplan.planner.decomposition.highs_jobs import Answer, Job
from fleetplan.planner.decomposition.master import Choice, Master, Scope
from fleetplan.planner.decomposition.matrix import FloatArray, IntArray
from fleetplan.planner.decomposition.patterns import Pattern, PatternPool
from fleetplan.planner.decomposition.workers import Workers

MOST_BLOCKS: Final = 100
"""Blocks of one neighbourhood at most: beyond it the integer master takes too long."""

LEAST_BLOCKS: Final = 3
"""Rows that fewer blocks share are no reason for a neighbourhood."""

PATTERNS_A_BLOCK: Final = 25
"""Patterns of a block that an integer master looks at, the cheapest at the current prices."""

MASTER_S: Final = 3.0
"""Time of one integer master. [s]"""

PENALTY_RATIO: Final = 20.0
"""Penalty of passing a limit in the linear master of a neighbourhood, over the largest price."""

PRICE_SPREAD: Final = 0.3
"""Prices of a neighbourhood are multiplied by one plus or minus up to this, row by row."""


class Neighbourhoods:
    """Improves a plan part by part.

    Parameters
    ----------
    parts : Split
        Blocks and linking rows.
    master : Master
        Chooses patterns.
    lagrangian : Lagrangian
        Prices blocks.
    pool : PatternPool
        Receives new patterns.
    prices : FloatArray
        Prices of the linking rows at the best bound.
    seed : int
        Of the order and the variation of prices.
    """

    def __init__(
        self,
        parts: Split,
        master: Master,
        lagrangian: Lagrangian,
        pool: PatternPool,
        prices: FloatArray,
        seed: int,
    ) -> None:
        self._parts = parts
        self._master = master
        self._lagrangian = lagrangian
        self._pool = pool
        self._prices = prices
        self._random = random.Random(seed)
        self._touched = _rows_by_block(parts)
        self._anchors = self._find_anchors()
        self._order: list[int] = []

    def _find_anchors(self) -> list[IntArray]:
        """Blocks around rows that several share, and around variables of the master; each set once."""
        linking = self._parts.linking_rows
        rows = self._parts.program.rows[linking].tocsr()
        block_of = self._parts.block_of
        around_row: list[IntArray] = []
        for number in range(len(linking)):
            own = np.unique(block_of[rows.indices[rows.indptr[number] : rows.indptr[number + 1]]])
            # Two blocks alone share the changes of one service; that is no neighbourhood.
            around_row.append(own[own >= 0] if len(own) > LEAST_BLOCKS else own[:0])
        found = {blocks.tobytes(): blocks for blocks in around_row if len(blocks)}
        columns: sp.csc_array = self._master.rows.tocsc()
        for column in range(columns.shape[1]):
            touched = columns.indices[columns.indptr[column] : columns.indptr[column + 1]]
            reached = [around_row[row] for row in touched if len(around_row[row])]
            if reached:
                blocks = np.unique(np.concatenate(reached))
                found.setdefault(blocks.tobytes(), blocks)
        # Where no row is shared by several blocks, all blocks are one neighbourhood.
        return list(found.values()) or [np.arange(len(self._parts.blocks), dtype=np.int64)]

    def learn(self, improved: bool) -> None:
        """Whether the last neighbourhood gave a better plan; kept for choosing among them."""
        del improved

    def improve(self, workers: Workers, clock: Clock, choice: Choice) -> tuple[Choice | None, str]:
        """One neighbourhood; None where it gives nothing better."""
        if not self._order:
            self._order = list(range(len(self._anchors)))
            self._random.shuffle(self._order)
        blocks = self._anchors[self._order.pop()]
        if len(blocks) > MOST_BLOCKS:
            blocks = np.array(sorted(self._random.sample(blocks.tolist(), MOST_BLOCKS)))
        touched = np.unique(np.concatenate([self._touched[block] for block in blocks]))
        scope = self._master.around(choice, blocks, touched)
        duals = self._own_prices(workers, clock, scope, choice)
        self._price(workers, clock, blocks, duals)
        patterns = self._cheapest(blocks, duals, choice)
        job = self._master.integer_job(scope, patterns, clock.master(MASTER_S), choice)
        answers = workers.solve([job])
        self._count(clock, answers)
        return (
            self._master.chosen(scope, patterns, answers[0], choice),
            f"{len(blocks)} blocks around a shared row",
        )

    def _own_prices(self, workers: Workers, clock: Clock, scope: Scope, choice: Choice) -> FloatArray:
        """Prices with the supply that the plan has, varied a little; the best prices elsewhere."""
        patterns = list(self._pool.of(set(scope.blocks.tolist())))
        penalty = PENALTY_RATIO * float(np.abs(self._prices).max(initial=1.0))
        answer = workers.solve([self._master.linear_job(scope, patterns, penalty, choice.master)])[0]
        clock.count(1, 0)
        duals = self._prices.copy()
        if answer.row_duals is not None:
            weight = self._random.random()
            own = answer.row_duals[: len(scope.rows)]
            duals[scope.rows] = weight * own + (1 - weight) * duals[scope.rows]
        spread = np.array([self._random.uniform(-1, 1) for _ in scope.rows])
        duals[scope.rows] *= 1 + PRICE_SPREAD * spread
        return duals

    def _price(self, workers: Workers, clock: Clock, blocks: IntArray, duals: FloatArray) -> None:
        reduced = self._lagrangian.price(duals).reduced_cost
        effort = clock.pricing(rough=True)
        jobs = [Job(int(block), reduced[self._parts.blocks[block].columns], effort) for block in blocks]
        answers = workers.solve(jobs)
        self._count(clock, answers)
        for block, answer in zip(blocks.tolist(), answers, strict=True):
            if answer.values is not None:
                self._pool.add(block, answer.values)

    def _cheapest(self, blocks: IntArray, duals: FloatArray, choice: Choice) -> list[Pattern]:
        """The cheapest patterns of every block, and the one it has."""
        by_block: dict[int, list[tuple[float, int, Pattern]]] = {int(block): [] for block in blocks}
        for number, pattern in enumerate(self._pool.of(set(by_block))):
            price = pattern.cost - float(duals[pattern.entries[0]] @ pattern.entries[1])
            by_block[pattern.block].append((price, number, pattern))
        kept: list[Pattern] = []
        for block, priced in by_block.items():
            best = [pattern for _, _, pattern in sorted(priced, key=lambda each: each[:2])[:PATTERNS_A_BLOCK]]
            kept += best
            if choice.patterns[block] not in best:
                kept.append(choice.patterns[block])
        return kept

    def _count(self, clock: Clock, answers: list[Answer]) -> None:
        clock.count(len(answers), sum(answer.nodes for answer in answers))


def _rows_by_block(parts: Split) -> list[IntArray]:
    """Positions of the linking rows that each block touches."""
    rows: sp.csc_array = parts.program.rows[parts.linking_rows].tocsc()
    return [np.unique(rows[:, block.columns].indices) for block in parts.blocks]
