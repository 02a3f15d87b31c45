"""Rounds of integer supply, once pricing has settled (integer_supply.py)."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final

import numpy as np

from fleetplan.fleet.figures import counted
from fleetplan.planner.search.blocks.block_pricing import BlockPricing
from fleetplan.planner.search.blocks.bound import Lagrangian
from fleetplan.planner.search.blocks.effort import Clock
from fleetplan.planner.search.blocks.first_plans import SideJob
from fleetplan.planner.search.blocks.integer_supply import IntegerSupply
from fleetplan.planner.search.blocks.plan_search import PlanSearch
from fleetplan.planner.search.blocks.pricing import PartFailedError, Prices
from fleetplan.planner.search.blocks.restricted_masters import RestrictedMasters
from fleetplan.planner.search.blocks.split import Split
from fleetplan.planner.search.blocks.state import SearchState
from fleetplan.planner.search.solvers.highs_jobs import Answer
from fleetplan.planner.search.solvers.workers import Workers

SUPPLY_S: Final = 4.0
"""Time limit of the integer supply program. [s]"""

SUPPLY_GAP: Final = 1e-4
"""Target gap of that program: the bound loses as much."""


class SupplyRounds:
    """Rounds that raise the bound by integer supply, and price blocks at the best supply.

    Parameters
    ----------
    parts : Split
        Program in blocks.
    lagrangian : Lagrangian
        Prices linking rows into the objective.
    masters : RestrictedMasters
        Choose among columns in parallel.
    blocks : BlockPricing
        Finds columns.
    plans : PlanSearch
        Gives the open cost, and receives plans.
    state : SearchState
        Receives the bounds.
    clock : Clock
        Time limits.
    """

    def __init__(
        self,
        parts: Split,
        lagrangian: Lagrangian,
        masters: RestrictedMasters,
        blocks: BlockPricing,
        plans: PlanSearch,
        state: SearchState,
        clock: Clock,
    ) -> None:
        self._parts = parts
        self._lagrangian = lagrangian
        self._masters = masters
        self._blocks = blocks
        self._plans = plans
        self._state = state
        self._clock = clock
        # Program of all rounds; each adds cuts.
        self._supply: IntegerSupply | None = None

    def round(self, workers: Workers, prices: Prices) -> bool:
        """Raise the bound by integer supply; return False if that does not pay.

        Raises
        ------
        PartFailedError
            If a linear program is not solved.
        """
        supply = self._supply = self._supply or self._program(prices)
        if not supply.pays(self._plans.open_cost()):
            return False
        before = self._state.bound
        self._price_for_best(workers, supply)
        supply.note_gain(self._state.bound / before - 1 if before else 0.0)
        return True

    def side_jobs(self, prices: Prices) -> list[SideJob]:
        """Return the program of integer supply at the best prices as a side job, if it may gain much.

        It takes 1 s, while rounds of scarce fleets settle late. At the prices of a medium fleet's fourth
        round it raised the bound by 1.8 %; that round raised it by 0.4 % in 7 s.
        """
        if not prices.block_bounds.size:
            return []
        supply = self._program(prices)
        return [self._side_job(supply)] if supply.pays(self._plans.open_cost()) else []

    def _program(self, prices: Prices) -> IntegerSupply:
        """Return the integer supply program with the cuts of the best prices."""
        best = self._lagrangian.price(prices.best)
        supply = IntegerSupply(
            self._parts, self._plans.master, self._lagrangian, best, self._masters.lp_supply
        )
        supply.cut(best, prices.block_bounds)
        return supply

    def _price_for_best(self, workers: Workers, supply: IntegerSupply) -> None:
        """Choose the best integer supply for the known cuts, and price the blocks at it."""
        pending = self._masters.take_pending()
        columns = list(self._plans.pool.columns)
        first = [self._side_job(supply)]
        if not pending:
            first += self._masters.side_jobs(self._masters.jobs(supply.centre, SUPPLY_S))
        answers = workers.solve(
            [job for job, _ in first], on_answer=lambda number, answer: first[number][1](answer)
        )
        chosen = answers[0]
        if chosen.values is None or self._state.finished():
            return
        integer_supply = chosen.values[: len(self._masters.lp_supply)]
        answer = workers.solve_one(supply.prices_job(integer_supply, columns))
        if answer.row_duals is None:
            raise PartFailedError(f"HiGHS did not solve the linear program of a supply: {answer.status}")
        priced = self._lagrangian.price(supply.next_prices(answer.row_duals))
        side_jobs = self._masters.side_jobs(pending)
        effort, share = self._clock.pricing(spread=0.0), self._plans.even_share
        found = self._blocks.price(workers, priced, effort, even_share=share, side_jobs=side_jobs)
        if np.isfinite(found.bounds).all():
            supply.cut(priced, found.bounds)
        self._plans.plan_repair.decide_supply(workers)
        self._state.tell(
            "supply", f"found {counted(found.new, 'column')}, {len(self._plans.pool.columns)} in all"
        )

    def _side_job(self, supply: IntegerSupply) -> SideJob:
        """Return the integer supply program, with the callback that uses its answer."""
        effort = replace(self._clock.master(SUPPLY_S), gap_ratio=SUPPLY_GAP)

        def on_answer(answer: Answer) -> None:
            self._state.raise_bound(supply.bound(answer), "integer supply")
            # This bound may end the search, so report it as a step.
            self._state.tell("supply", "chose the best integer supply for the known cuts")

        return replace(supply.job(effort), length=math.inf), on_answer
