"""Column generation: pricing rounds, alternating with integer masters and neighbourhoods.

A round prices all blocks at the current prices of the linking rows, which gives a bound and new columns. In
parallel, an integer master chooses among the known columns, which gives a plan. Prices come from the master
LP, the first from the linear relaxation. While the plan is far from its bound, the search first looks for
columns among few slots, because a round takes longer. Once rounds could close little of the gap, they
alternate with neighbourhoods, which price the blocks around a shared row at their own prices. Once prices
settle, rounds of integer supply replace them.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from fleetplan.fleet.figures import counted
from fleetplan.planner.search.blocks.area_scopes import AreaScopes
from fleetplan.planner.search.blocks.block_pricing import BlockPricing, PricingRound
from fleetplan.planner.search.blocks.bound import Lagrangian
from fleetplan.planner.search.blocks.effort import Clock
from fleetplan.planner.search.blocks.master import Selection
from fleetplan.planner.search.blocks.neighbourhoods import Neighbourhoods
from fleetplan.planner.search.blocks.plan_search import PlanSearch
from fleetplan.planner.search.blocks.pricing import Prices
from fleetplan.planner.search.blocks.restricted_masters import RestrictedMasters
from fleetplan.planner.search.blocks.split import Split
from fleetplan.planner.search.blocks.state import SearchState
from fleetplan.planner.search.blocks.supply_rounds import SupplyRounds
from fleetplan.planner.search.solvers.workers import Workers

PENALTY_RATIO: Final = 20.0
"""Penalty of a violated linking row in the master LP, as a multiple of the largest first price."""

PENALTY_GROWTH: Final = 10.0
"""Factor on the penalty if columns violate limits in spite of it."""

ROUNDS_SHARE_OF_TIME: Final = 0.33
"""Share of the time for rounds; the rest is for integer supply and for plans."""

STEEP_ROUNDS_SHARE_OF_TIME: Final = 0.6
"""Share while rounds raise the bound steeply, as in scarce fleets, whose prices are far from the first."""

STEEP_GAIN: Final = 1e-3
"""Least relative gain of a steep round. [share of the bound]"""

LEAD_SHARE: Final = 0.2
"""Rounds wait for a better plan if they could close at most this share of the gap."""

SETTLED_RATIO: Final = 5e-4
"""Relative distance of bound and master LP at which prices count as settled."""

COLUMNS_SHARE_OF_TIME: Final = 0.1
"""Share of the time for columns among few slots before the first round, while the plan is far from its
bound."""

COLUMNS_GAIN: Final = 1e-3
"""Relative gain of the master LP below which the search among few slots ends. [share of the master LP]"""


class PricingSearch:
    """Search that raises the bound by pricing, and chooses plans among the columns.

    Parameters
    ----------
    parts : Split
        Program in blocks.
    lagrangian : Lagrangian
        Prices linking rows into the objective.
    plans : PlanSearch
        Holds columns and selections; improves plans between rounds.
    state : SearchState
        Receives bounds and plans.
    clock : Clock
        Time limits.
    seed : int
        Random seed of the neighbourhoods.
    """

    def __init__(
        self,
        parts: Split,
        lagrangian: Lagrangian,
        plans: PlanSearch,
        state: SearchState,
        clock: Clock,
        seed: int,
    ) -> None:
        self._parts = parts
        self._lagrangian = lagrangian
        self._master = plans.master
        self._pool = plans.pool
        self._plans = plans
        self._state = state
        self._clock = clock
        self._seed = seed
        areas = AreaScopes(parts, plans.master, plans.areas) if plans.areas else None
        self._masters = RestrictedMasters(plans.master, plans.pool, plans.plan_repair, state, clock, areas)
        self._blocks = BlockPricing(parts, plans.pool, state, clock, plans.slot)
        self._supply = SupplyRounds(parts, lagrangian, self._masters, self._blocks, plans, state, clock)
        # Time of the last pricing round. [s]
        self._round_s = 0.0

    def run(self, workers: Workers, prices: Prices, experienced: bool) -> None:
        """Run pricing rounds, then alternate between bound and plan, until the search ends.

        Parameters
        ----------
        workers : Workers
            Processes that solve the jobs.
        prices : Prices
            First prices.
        experienced : bool
            Whether columns are known already.

        Raises
        ------
        InfeasibleBlockError, PartFailedError
            If a block has no solution, or a linear program is not solved.
        """
        self._plans.improve_while_far(workers)
        if experienced:
            self._learn(workers, prices)
        elif self._state.far():
            self._columns_first(workers, prices)
        settled = self._rounds(workers, prices)
        self._alternate(workers, prices, settled)

    def _learn(self, workers: Workers, prices: Prices) -> None:
        """Prepare an integer master over the known columns, to run with the first round.

        That round keeps the first prices: for a large scarce fleet, two rounds at the known columns' prices
        proved no better bound than the relaxation.
        """
        columns = list(self._pool.columns)
        self._masters.pending = self._masters.solve_lp(workers, columns, self._penalty(prices))

    def _columns_first(self, workers: Workers, prices: Prices) -> None:
        """Search columns among few slots, and choose a plan, before the first round, which takes longer.

        The first round keeps the first prices.
        """
        prices.master = prices.best
        limit_s = COLUMNS_SHARE_OF_TIME * self._clock.limit_s
        master_lp, found = self._more_columns(workers, prices, self._penalty(prices), math.inf, limit_s)
        prices.current = prices.best
        if self._state.finished():
            return
        self._state.tell(
            "columns", f"found {counted(found, 'column')} among few slots, master LP {master_lp:.6g}"
        )
        self._masters.choose(workers, prices.best)

    @staticmethod
    def _penalty(prices: Prices) -> float:
        return PENALTY_RATIO * float(np.abs(prices.best).max(initial=1.0))

    def _rounds(self, workers: Workers, prices: Prices) -> bool:
        """Price blocks until the bound settles, its share of time is spent, or the gap is small enough.

        Returns
        -------
        bool
            False if rounds could raise the bound, but a better plan comes first.
        """
        penalty = self._penalty(prices)
        while not self._state.finished():
            before, began, bound = prices.bound, self._clock.spent_s(), self._state.bound
            found = self._price_blocks(workers, prices)
            if found is None:
                return True
            master_lp = self._masters.solve_lp_near_best(workers, prices, list(self._pool.columns), penalty)
            priced_s = self._clock.spent_s() - began
            master_lp, more = self._more_columns(workers, prices, penalty, master_lp, priced_s)
            self._state.tell(
                "pricing",
                f"round {prices.rounds}: found {counted(found.new, 'column')}, {more} more among few slots, "
                f"{len(self._pool.columns)} in all, master LP {master_lp:.6g}",
            )
            # Even past the limit: any plan is better than none.
            self._masters.choose_first(workers, prices.best)
            self._plans.repair(workers)
            if self._state.far():
                # An integer master over new columns gains more than neighbourhoods of a plan without them.
                self._masters.choose(workers, prices.best)
            round_s = self._clock.spent_s() - began
            self._plans.improve_while_it_pays(workers, self._state.bound - bound, round_s)
            if self._state.hopeless(prices.rounds):
                return True
            self._masters.pending = prices.best
            if not self._state.good():
                self._masters.choose_pending(workers)
            prices.settled = (found.complete and not (found.new or more)) or prices.spread <= SETTLED_RATIO
            steep = prices.bound - before > STEEP_GAIN * abs(prices.bound)
            share = STEEP_ROUNDS_SHARE_OF_TIME if steep else ROUNDS_SHARE_OF_TIME
            spent = self._clock.spent_s() > share * self._clock.limit_s
            if prices.settled or spent:
                if self._masters.violated and found.new:
                    penalty *= PENALTY_GROWTH
                    continue
                if self._state.incumbent.objective is None and not self._state.finished():
                    self._masters.choose_pending(workers)
                return True
            if self._leads(prices):
                return False
        return True

    def _more_columns(
        self, workers: Workers, prices: Prices, penalty: float, master_lp: float, round_s: float
    ) -> tuple[float, int]:
        """Search more columns among few slots while that lowers the master LP.

        Parameters
        ----------
        workers, prices, penalty
            As in `_rounds`.
        master_lp : float
            Objective of the master LP so far. [objective units]
        round_s : float
            Time of the round of all blocks, and the limit for this. [s]

        Returns
        -------
        tuple[float, int]
            Objective of the master LP, and the number of new columns.
        """
        until, found = self._clock.spent_s() + round_s, 0
        while not (self._state.finished() or self._state.hopeless(prices.rounds)):
            if self._clock.spent_s() >= until:
                break
            before, priced = master_lp, self._lagrangian.price(prices.master)
            effort, share = self._clock.pricing(prices.spread), self._plans.even_share
            new = self._blocks.more_columns(workers, priced, effort, share)
            master_lp = self._masters.solve_lp_near_best(workers, prices, list(self._pool.columns), penalty)
            found += new
            if not new or before - master_lp <= COLUMNS_GAIN * abs(master_lp):
                break
        return master_lp, found

    def _price_blocks(self, workers: Workers, prices: Prices) -> PricingRound | None:
        """Price all blocks, with an integer master over earlier columns in parallel.

        Returns
        -------
        PricingRound or None
            Answers so far; None if time runs out before every block has a column.
        """
        began, priced = self._clock.spent_s(), self._lagrangian.price(prices.current)
        # Every other round skips the master while the plan is near its bound, to favour the bound. Masters of
        # two rounds at once would leave no seats to blocks.
        turn = (prices.rounds % 2 == 0 or self._state.far()) and not self._blocks.side_jobs_run
        side_jobs = self._masters.side_jobs(self._masters.take_pending()) if turn else []
        side_jobs += self._supply.side_jobs(prices)
        side_jobs += self._plans.construction_side_jobs()
        prices.rounds += 1

        def on_bound(of: PricingRound) -> None:
            if prices.note(of.priced.duals, of.bound, of.bounds):
                self._state.raise_bound(prices.bound, "pricing of blocks")

        found = self._blocks.price(
            workers,
            priced,
            self._clock.pricing(prices.spread, len(self._parts.blocks)),
            even_share=self._plans.even_share,
            side_jobs=side_jobs,
            on_bound=on_bound,
            # Without a bound there are no best prices to stay near.
            ahead=prices.bound > -math.inf,
        )
        self._plans.plan_repair.decide_supply(workers)
        self._round_s = self._clock.spent_s() - began
        return found if self._blocks.complete_pool(workers, priced) else None

    def _alternate(self, workers: Workers, prices: Prices, settled: bool) -> None:
        """Alternate between plan and bound, with about equal time, until the search ends.

        The plan comes first if rounds stopped for it, or because their share of the time is spent.
        """
        plans_first = not (settled and prices.settled)
        around = Neighbourhoods(self._parts, self._master, self._lagrangian, self._pool, prices, self._seed)
        while not self._state.finished() and not self._state.hopeless(prices.rounds):
            if self._state.incumbent.selection is None:
                self._plans.try_again(workers)
            began = self._clock.spent_s()
            if self._state.incumbent.selection is not None and self._clock.left_s() < self._round_s:
                # The bound arrives with the last block of a round, which would be too late.
                until = math.inf
            elif plans_first and self._state.incumbent.selection is not None:
                until = began + self._round_s
            else:
                # Without a bound, the last round was cut off before every block had one.
                if settled and prices.bound > -math.inf:
                    if not self._supply.round(workers, prices) and not prices.settled:
                        self._rounds(workers, prices)
                else:
                    settled = self._rounds(workers, prices)
                until = 2 * self._clock.spent_s() - began
            plans_first = False
            if not self._state.finished():
                self._masters.choose_pending(workers)
            while not self._state.finished() and self._state.incumbent.selection is not None:
                self._improve(workers, around, self._state.incumbent.selection)
                self._plans.plan_repair.decide_supply(workers)
                self._plans.improve(workers)
                if self._clock.spent_s() > until:
                    break

    def _improve(self, workers: Workers, around: Neighbourhoods, selection: Selection) -> None:
        """Solve neighbourhoods, and keep improvements one by one."""
        for found in around.improve(workers, self._clock, selection, self._masters.lp_supply):
            before = self._state.incumbent.selection
            better = self._master.chosen(found.scope, found.columns, found.answer, before)
            # Two improvements that share a limit may violate it together.
            if better is None or not self._master.holds(better):
                continue
            if self._plans.plan_repair.offer(better):
                self._state.tell("neighbourhood", f"re-optimised {counted(len(found.scope.blocks), 'block')}")

    def _leads(self, prices: Prices) -> bool:
        """Return whether nearly all of the gap is the plan's to close."""
        objective = self._state.incumbent.objective
        return objective is not None and prices.to_gain < LEAD_SHARE * (float(objective) - prices.bound)
