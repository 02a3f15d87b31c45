"""Column generation over blocks: the root relaxation, pricing rounds, then neighbourhood search.

A round prices all blocks at the current prices of the linking rows, which gives a bound and new columns;
beside it an integer master chooses among the columns found so far, which gives a plan. Prices come from the
master LP, the first ones from the linear relaxation of the whole program. Once more rounds could close
little of the gap they take turns with neighbourhoods, in which the blocks around a shared row are priced at
prices of their own and chosen anew; once they have settled, rounds whose bound knows that supply is whole do.
Where a period is small enough to be decided whole, that takes the place of rounds (periods.py).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from fleetplan.planner.search.blocks.bound import Lagrangian, Priced, total_bound
from fleetplan.planner.search.blocks.columns import ColumnPool
from fleetplan.planner.search.blocks.construction import (
    RootRelaxation,
    Structure,
    construction_job,
    root_of,
    sifting_job,
)
from fleetplan.planner.search.blocks.direct_neighbourhoods import DirectNeighbourhoods
from fleetplan.planner.search.blocks.effort import Clock
from fleetplan.planner.search.blocks.incumbent import Incumbent
from fleetplan.planner.search.blocks.integer_supply import IntegerSupply
from fleetplan.planner.search.blocks.linear import whole_job
from fleetplan.planner.search.blocks.master import Master, Selection
from fleetplan.planner.search.blocks.neighbourhoods import Neighbourhoods
from fleetplan.planner.search.blocks.period_rounds import PeriodRounds
from fleetplan.planner.search.blocks.periods import Periods
from fleetplan.planner.search.blocks.pricing import (
    InfeasibleBlockError,
    PartFailedError,
    Prices,
    pricing_jobs,
    take,
)
from fleetplan.planner.search.blocks.request import BlockOutcome, Request
from fleetplan.planner.search.blocks.restricted_masters import RestrictedMasters
from fleetplan.planner.search.blocks.state import SearchState
from fleetplan.planner.search.solvers.highs_jobs import Answer, AnyJob, Effort, Job
from fleetplan.planner.search.solvers.interrupt import Stop
from fleetplan.planner.search.solvers.matrix import FloatArray, IntArray
from fleetplan.planner.search.solvers.relaxation import BOUND_SAFETY, Relaxation, relax
from fleetplan.planner.search.solvers.workers import (
    LEAST_WITH_BACKGROUND,
    Background,
    Workers,
    WorkersStoppedError,
    ending,
)

PENALTY_RATIO: Final = 20.0
"""Penalty of passing a linking row's limit in the master LP, over the largest first price."""

PENALTY_GROWTH: Final = 10.0
"""Factor of the penalty where columns violate limits in spite of it."""

ROUNDS_SHARE_OF_TIME: Final = 0.33
"""Share of the time for rounds; the rest is for integer supply and for plans."""

STEEP_ROUNDS_SHARE_OF_TIME: Final = 0.6
"""The same while rounds raise the bound steeply, as in scarce fleets, whose prices are far from the first."""

STEEP_GAIN: Final = 1e-3
"""Gain of a round that is steep. [bound]"""

LEAD_SHARE: Final = 0.2
"""Rounds wait for a better plan where they could close no more than this share of the gap."""

SETTLED_RATIO: Final = 5e-4
"""Distance of the bound from the master LP at which more rounds gain too little."""

SUPPLY_S: Final = 4.0
"""Time of the program of integer supply. [s]"""

SUPPLY_GAP: Final = 1e-4
"""Gap at which it is content: the bound loses as much."""

REPAIR_SHARE_OF_TIME: Final = 0.15
"""Share of the time for repairing a plan that violates limits, after each round while there is no other."""

NEW_RATE_WEIGHT: Final = 0.5
"""Weight of the last neighbourhoods in what they are known to gain: many find nothing."""

LEAST_MEASURED_S: Final = 1e-3
"""Shorter times count as so much. [s]"""

GRACE_S: Final = 1.0
"""Time past the limit after which running jobs are given up. [s]"""


SideJob = tuple[AnyJob, Callable[[Answer], None]]
"""A job that runs beside the pricing of blocks, and what is called with its answer."""


class BlockSearch:
    """One search.

    Parameters
    ----------
    request : Request
        What is to be solved.
    clock : Clock
        When to stop.
    seed : int
        Of the neighbourhoods.
    """

    def __init__(self, request: Request, clock: Clock, seed: int) -> None:
        self._request = request
        self._clock = clock
        self._seed = seed
        self.parts = request.parts
        self._relaxation: Relaxation = relax(self.parts.program, request.continuous)
        self._lagrangian = Lagrangian(self.parts, self._relaxation)
        self._master = Master(self.parts, self._relaxation, self._lagrangian.cost)
        self._pool = ColumnPool(self.parts, self._relaxation, self._lagrangian.cost)
        incumbent = Incumbent(self.parts, self._relaxation, request.complete)
        self._state = SearchState(request, clock, incumbent, self._lagrangian.least)
        self._structure = Structure(
            roles=request.roles,
            relaxation=self._relaxation,
            cost=self._lagrangian.cost,
            linking=self.parts.linking_rows,
            following=self.parts.following_variables,
        )
        self._linear: RootRelaxation | None = None
        self._direct: DirectNeighbourhoods | None = None
        # What neighbourhoods on the variables close of the gap. [objective units/s]
        self._direct_rate = math.inf
        self._attempts = 0
        # The best plan that still violates limits, in scaled values.
        self._draft: FloatArray | None = None
        n_blocks, n_linking = len(self.parts.blocks), len(self.parts.linking_rows)
        self._masters = RestrictedMasters(self._master, self._pool, self._state, clock, n_blocks, n_linking)
        self._variables = [block.variables for block in self.parts.blocks]
        self._nodes: FloatArray = np.zeros(n_blocks)

    def run(self, stop: Stop) -> BlockOutcome:
        """Search until the gap is small enough, the time is over, or somebody stops it."""
        blocks = [self._relaxation.part(block.rows, block.variables).program for block in self.parts.blocks]
        infeasible = False
        limit_s = math.inf if self._clock.deterministic else self._clock.left_s() + GRACE_S
        if self._request.overtime is not None:
            limit_s += self._request.overtime.seconds
        with Workers(self._clock.workers, blocks, self._clock.count) as workers:
            try:
                with ending(workers, stop, limit_s):
                    infeasible = self._run(workers)
            except WorkersStoppedError:
                # The best plan so far is what somebody who stops a search wants.
                pass
        self._request.warm_start.memory.keep(self._pool)
        return self._state.outcome(infeasible)

    def _run(self, workers: Workers) -> bool:
        """All stages; True if a relaxation is infeasible."""
        if self._request.start is not None:
            self._state.incumbent.offer(self._selection_of(self._request.start))
            self._state.tell("start", "a plan that was known before")
        try:
            return self._search(workers)
        except InfeasibleBlockError:
            return True
        except PartFailedError as failed:
            self._state.tell("pricing", f"given up: {failed}")
            self._go_on_without_prices(workers)
            return False

    def _search(self, workers: Workers) -> bool:
        """Root relaxation, pricing, then bound and plan by turns; True if a relaxation is infeasible."""
        experienced = self._request.warm_start.memory.recall(self._pool)
        prices = self._root(workers)
        if prices is None:
            return True
        rounds = self._period_rounds()
        if rounds is not None:
            self._alternate_with_periods(workers, rounds)
            return False
        if experienced:
            self._learn(workers, prices)
        settled = self._rounds(workers, prices)
        self._alternate(workers, prices, settled)
        return False

    def _period_rounds(self) -> PeriodRounds | None:
        """Rounds that decide every period whole, where that is within reach."""
        if self._linear is None or len(self._linear.duals) != len(self._relaxation.row_lower):
            return None
        periods = Periods(self._structure, self._request.indicators, self._linear)
        if not periods.worthwhile:
            return None
        return PeriodRounds(periods, self._state, self._clock, self._offer)

    def _alternate_with_periods(self, workers: Workers, rounds: PeriodRounds) -> None:
        """Raise the bound by periods decided whole while that pays, and improve the plan for as long."""
        while not self._state.finished():
            until = math.inf
            if rounds.pays:
                began = self._clock.spent_s()
                rounds.run(workers)
                until = 2 * self._clock.spent_s() - began
            while not self._state.finished():
                if self._state.hopeless(rounds.taken):
                    return
                if self._state.incumbent.values is None:
                    self._try_again(workers)
                elif self._direct is not None:
                    self._improve_directly(workers, self._direct)
                if self._clock.spent_s() > until:
                    break

    def _go_on_without_prices(self, workers: Workers) -> None:
        """Improve the plan, or look for one, by neighbourhoods and constructions alone."""
        while self._direct is not None and not self._state.finished():
            if self._state.hopeless(0):
                return
            if self._state.incumbent.values is None:
                self._try_again(workers)
            else:
                self._improve_directly(workers, self._direct)

    def _alternate(self, workers: Workers, prices: Prices, settled: bool) -> None:
        """Raise the bound and improve the plan for about as long each, until the search ends."""
        around = Neighbourhoods(self.parts, self._master, self._lagrangian, self._pool, prices, self._seed)
        supply: IntegerSupply | None = None
        while not self._state.finished() and not self._state.hopeless(prices.rounds):
            if self._state.incumbent.selection is None:
                self._try_again(workers)
            began = self._clock.spent_s()
            # Without a bound, the last round was cut before every block had one.
            if settled and prices.bound > -math.inf:
                supply = supply or self._integer_supply(prices)
                self._settled_round(workers, supply, prices)
            else:
                settled = self._rounds(workers, prices)
            if not self._state.finished():
                self._masters.choose_pending(workers)
            until = 2 * self._clock.spent_s() - began
            while not self._state.finished() and self._state.incumbent.selection is not None:
                self._improve(workers, around, self._state.incumbent.selection)
                if self._direct is not None:
                    self._improve_directly(workers, self._direct)
                if self._clock.spent_s() > until:
                    break

    def _try_again(self, workers: Workers) -> None:
        """Look for a first plan without columns: repair one that violates limits, or construct another."""
        if self._draft is None:
            self._solve_together(self._constructions(), workers)
        self._repair(workers)

    def _integer_supply(self, prices: Prices) -> IntegerSupply:
        """The program of integer supply, with what the best prices say of the blocks."""
        best = self._lagrangian.price(prices.best)
        supply = IntegerSupply(self.parts, self._master, self._lagrangian, best, self._masters.lp_supply)
        supply.cut(best, prices.block_bounds)
        return supply

    def _settled_round(self, workers: Workers, supply: IntegerSupply, prices: Prices) -> None:
        """Raise the bound by integer supply where that pays, else by rounds until they settle."""
        before = self._state.bound
        if supply.pays(self._open_cost()):
            self._supply_round(workers, supply)
            supply.note_gain(self._state.bound / before - 1 if before else 0.0)
        elif not prices.settled:
            self._rounds(workers, prices)

    def _open_cost(self) -> float:
        """What plan and bound differ by. [objective units]"""
        return float(self._state.incumbent.objective or math.inf) - self._state.bound

    def _leads(self, prices: Prices) -> bool:
        """Whether nearly all that plan and bound differ by is the plan's to gain."""
        objective = self._state.incumbent.objective
        return objective is not None and prices.to_gain < LEAD_SHARE * (float(objective) - prices.bound)

    def _supply_round(self, workers: Workers, supply: IntegerSupply) -> None:
        """Find best integer supply for the known cuts, and price the blocks for it."""
        pending = self._masters.take_pending()
        columns = list(self._pool.columns)
        first = [self._supply_side_job(supply)]
        if pending is None:
            first.append(self._masters.side_job(self._masters.job(supply.centre, SUPPLY_S)))
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
        side_jobs = [] if pending is None else [self._masters.side_job(pending)]
        bounds, new = self._solve_blocks(workers, priced, self._clock.pricing(spread=0.0), side_jobs)
        if np.isfinite(bounds).all():
            supply.cut(priced, bounds)
        self._state.tell("supply", f"{new} new columns of {len(self._pool.columns)}")

    def _improve(self, workers: Workers, around: Neighbourhoods, selection: Selection) -> None:
        """Try some neighbourhoods, and keep what makes the plan better, one after the other."""
        for found in around.improve(workers, self._clock, selection, self._masters.lp_supply):
            before = self._state.incumbent.selection
            better = self._master.chosen(found.scope, found.columns, found.answer, before)
            # Two that share a limit may pass it together.
            if better is None or not self._master.holds(better):
                continue
            if self._state.incumbent.offer(better):
                self._state.tell("neighbourhood", f"{len(found.scope.blocks)} blocks chosen anew")

    def _improve_directly(self, workers: Workers, direct: DirectNeighbourhoods) -> None:
        """Try some neighbourhoods on the variables themselves, and keep what makes the plan better."""
        values = self._state.incumbent.values
        if values is None:
            return
        now = values / self._relaxation.variable_scale
        for change in direct.improve(workers, self._clock, now):
            changed = now.copy()
            changed[change.variables] = change.values
            if self._offer(changed):
                now = changed
                self._state.tell("neighbourhood", f"{change.detail} decided anew")

    def _improve_while_it_pays(self, workers: Workers, open_cost: float, round_s: float) -> None:
        """Improve the plan while that closes more of the gap in its time than the last round of pricing.

        Parameters
        ----------
        workers : Workers
            Who does it.
        open_cost : float
            What plan and bound differed by before the round. [objective units]
        round_s : float
            Time of the round, and the most for this. [s]
        """
        closed = open_cost - self._open_cost()
        # A first plan is no measure of what a round is worth.
        round_rate = closed / max(round_s, LEAST_MEASURED_S) if closed < math.inf else 0.0
        until = self._clock.spent_s() + round_s
        while self._direct is not None and self._state.incumbent.values is not None:
            began, before = self._clock.spent_s(), self._open_cost()
            if self._direct_rate <= round_rate or began >= until or self._state.finished():
                return
            self._improve_directly(workers, self._direct)
            rate = (before - self._open_cost()) / max(self._clock.spent_s() - began, LEAST_MEASURED_S)
            known = self._direct_rate < math.inf
            self._direct_rate = (
                NEW_RATE_WEIGHT * rate + (1 - NEW_RATE_WEIGHT) * self._direct_rate if known else rate
            )

    def _selection_of(self, values: IntArray) -> Selection:
        """A plan as columns, which are remembered."""
        scaled = values / self._relaxation.variable_scale
        columns = [
            self._pool.known(block, scaled[each.variables]) for block, each in enumerate(self.parts.blocks)
        ]
        return self._master.selection(columns, scaled[self.parts.master_variables])

    def _root(self, workers: Workers) -> Prices | None:
        """First prices: those that are known, or from a linear relaxation.

        Returns
        -------
        Prices or None
            None where the relaxation of everything has no solution.
        """
        cost, linking = self._lagrangian.cost, self.parts.linking_rows
        self._note_root(workers.solve_one(sifting_job(self._structure)))
        known = self._request.warm_start.row_duals
        if known is not None:
            self._state.tell("root relaxation", "dual prices known before")
            duals = (known * self._relaxation.row_scale)[linking]
            return Prices(duals, duals, -np.inf)
        # A plan is worth more than prices.
        self._solve_together(self._construction_side_jobs(), workers)
        indicators = self._relaxation.without_limits_on(self._request.indicators)
        full = whole_job(indicators, cost)
        # The full relaxation may take a minute: meanwhile the other processes improve the plan.
        alone = self._clock.deterministic or workers.count < LEAST_WITH_BACKGROUND
        background = None if alone else workers.begin(full)
        self._repair(workers)
        if background is not None:
            self._improve_meanwhile(workers, background)
        answer = workers.solve_one(full) if background is None else background.answer()
        if answer.infeasible:
            return None
        if answer.row_duals is None:
            raise PartFailedError(f"HiGHS did not solve the linear relaxation: {answer.status}")
        bound = self._relaxation.bound(cost, answer.row_duals)
        self._state.raise_bound(bound - BOUND_SAFETY * abs(bound), "linear relaxation")
        self._state.tell("root relaxation", "linear relaxation of the whole program")
        self._note_root(answer)
        duals = answer.row_duals[linking]
        return Prices(duals, duals, -np.inf)

    def _improve_meanwhile(self, workers: Workers, background: Background) -> None:
        """Improve the plan, or mend what violates limits, until a job in the background has ended."""
        direct = self._direct
        while background.running and direct is not None and not self._state.finished():
            if self._state.incumbent.values is not None:
                self._improve_directly(workers, direct)
            elif self._draft is not None:
                self._mend(workers, direct, self._draft)
            else:
                return

    def _solve_together(self, jobs: Sequence[SideJob], workers: Workers) -> list[Answer]:
        """Solve jobs side by side; answers are handed on in their order where runs must repeat."""
        together = [job for job, _ in jobs]
        if self._clock.deterministic:
            answers = workers.solve(together)
            for (_, on_answer), answer in zip(jobs, answers, strict=True):
                on_answer(answer)
            return answers
        return workers.solve(together, self._state.expired, lambda number, answer: jobs[number][1](answer))

    def _note_root(self, answer: Answer) -> None:
        """Let a relaxation root constructions and neighbourhoods."""
        root = root_of(self._structure, answer)
        if root is not None:
            self._linear = root
            self._direct = DirectNeighbourhoods(self._structure, root, self._seed)

    def _learn(self, workers: Workers, prices: Prices) -> None:
        """Let a master choose among the columns that are known already, beside the first round.

        That round is at the first prices all the same: what known columns would make of these is worth less
        than the relaxation's. With theirs, two rounds of a large scarce fleet proved no better bound than it.
        """
        columns = list(self._pool.columns)
        self._masters.pending = self._masters.solve_lp(workers, columns, self._penalty(prices))

    @staticmethod
    def _penalty(prices: Prices) -> float:
        return PENALTY_RATIO * float(np.abs(prices.best).max(initial=1.0))

    def _rounds(self, workers: Workers, prices: Prices) -> bool:
        """Price until the bound settles, its share of time is spent, or the gap is small enough.

        Returns
        -------
        bool
            False where more rounds would raise the bound, but a better plan is worth more first.
        """
        penalty = self._penalty(prices)
        while not self._state.finished():
            before, began, open_cost = prices.bound, self._clock.spent_s(), self._open_cost()
            new = self._price_blocks(workers, prices)
            if new is None:
                return True
            columns = list(self._pool.columns)
            master_lp = self._masters.solve_lp_near_best(workers, prices, columns, penalty)
            self._state.tell(
                "pricing",
                f"round {prices.rounds}: {new} new columns of {len(columns)}, master LP {master_lp:.6g}",
            )
            # Even past the limit: any plan is better than none.
            self._masters.choose_first(workers, prices.best)
            self._repair(workers)
            self._improve_while_it_pays(workers, open_cost, self._clock.spent_s() - began)
            if self._state.hopeless(prices.rounds):
                return True
            self._masters.pending = prices.best
            if not self._state.good():
                self._masters.choose_pending(workers)
            prices.settled = new == 0 or prices.spread <= SETTLED_RATIO
            steep = prices.bound - before > STEEP_GAIN * abs(prices.bound)
            share = STEEP_ROUNDS_SHARE_OF_TIME if steep else ROUNDS_SHARE_OF_TIME
            spent = self._clock.spent_s() > share * self._clock.limit_s
            if prices.settled or spent:
                if self._masters.violated and new:
                    penalty *= PENALTY_GROWTH
                    continue
                if self._state.incumbent.objective is None and not self._state.finished():
                    self._masters.choose_pending(workers)
                return True
            if self._leads(prices):
                return False
        return True

    def _price_blocks(self, workers: Workers, prices: Prices) -> int | None:
        """Price all blocks, an integer master over earlier columns beside them.

        Returns
        -------
        int or None
            New columns; None where the time is over before every block has one.
        """
        priced = self._lagrangian.price(prices.current)
        # For the sake of the bound, every other round does without a master while the plan is near it.
        pending = self._masters.take_pending() if prices.rounds % 2 == 0 or self._state.far() else None
        side_jobs: list[SideJob] = [] if pending is None else [self._masters.side_job(pending)]
        side_jobs += self._integer_supply_side_jobs(prices)
        side_jobs += self._construction_side_jobs()
        bounds, new = self._solve_blocks(workers, priced, self._clock.pricing(prices.spread), side_jobs)
        if prices.note(priced.duals, total_bound(priced, bounds), bounds):
            self._state.raise_bound(prices.bound, "pricing of blocks")
        return new if self._complete_pool(workers, priced) else None

    def _construction_side_jobs(self) -> list[SideJob]:
        """The construction of a first plan, once, unless there is a plan that is not far from its bound."""
        known = self._state.incumbent.objective is not None and not self._state.far()
        return [] if self._attempts or known else self._constructions()

    def _constructions(self) -> list[SideJob]:
        """Constructions with supply as needed and with integer supply first; among more slots each time."""
        linear = self._linear
        if linear is None:
            return []
        self._attempts += 1

        def on_answer(answer: Answer) -> None:
            if answer.values is None:
                self._state.tell("construction", "no plan moment by moment")
            elif self._offer(answer.values):
                self._state.tell("construction", "moment by moment, the hardest of a period first")
            elif self._state.incumbent.objective is None:
                self._state.tell("construction", "moment by moment, a plan that violates limits")

        jobs = [
            construction_job(self._structure, linear, self._clock, self._attempts, integer_supply)
            for integer_supply in (False, True)
        ]
        return [(job, on_answer) for job in jobs]

    def _offer(self, scaled: FloatArray) -> bool:
        """Keep a plan if it is exact and the best; its columns are remembered.

        While there is no plan, what is not exact is kept to be repaired.
        """
        columns = [
            self._pool.known(block, scaled[each.variables]) for block, each in enumerate(self.parts.blocks)
        ]
        selection = self._master.selection(columns, scaled[self.parts.master_variables])
        incumbent = self._state.incumbent
        if self._master.holds(selection) and incumbent.offer(selection):
            return True
        draft = scaled.copy()
        for column, values in incumbent.mended(selection):
            self._pool.replace(column, values)
            draft[self.parts.blocks[column.block].variables] = values
        if incumbent.objective is None and self._direct is not None:
            known = math.inf if self._draft is None else self._direct.objective(self._draft)
            if self._direct.objective(draft) < known:
                self._draft = draft
        return False

    def _repair(self, workers: Workers) -> None:
        """Bring a plan that violates limits within them: its cost and their price fall step by step."""
        direct, until = self._direct, self._clock.spent_s() + REPAIR_SHARE_OF_TIME * self._clock.limit_s
        while direct is not None and self._draft is not None and self._state.incumbent.objective is None:
            if self._state.finished() or self._clock.spent_s() > until:
                return
            self._mend(workers, direct, self._draft)

    def _mend(self, workers: Workers, direct: DirectNeighbourhoods, now: FloatArray) -> None:
        """Bring a draft closer to its limits by some neighbourhoods, and keep it once it is a plan."""
        for change in direct.improve(workers, self._clock, now):
            changed = now.copy()
            changed[change.variables] = change.values
            if direct.objective(changed) < direct.objective(now):
                now = changed
        self._draft = now
        if direct.violation(now) == 0.0 and self._offer(now):
            self._state.tell("construction", "repaired by neighbourhoods")

    def _integer_supply_side_jobs(self, prices: Prices) -> list[SideJob]:
        """The program that says what the best prices prove once supply is whole, where that may be much.

        It takes a second; rounds of scarce fleets settle late. With the prices of the fourth round it raised
        the bound of one (medium, seed 3) by 1.8 %, where that round, of seven seconds, raised it by 0.4 %.
        """
        if not prices.block_bounds.size:
            return []
        supply = self._integer_supply(prices)
        return [self._supply_side_job(supply)] if supply.pays(self._open_cost()) else []

    def _supply_side_job(self, supply: IntegerSupply) -> SideJob:
        """The program of integer supply, and what is done with its answer."""
        effort = replace(self._clock.master(SUPPLY_S), gap_ratio=SUPPLY_GAP)

        def on_answer(answer: Answer) -> None:
            self._state.raise_bound(supply.bound(answer), "integer supply")
            # The search may end by it, and the next step be its last.
            self._state.tell("supply", "best integer supply for the known cuts")

        return replace(supply.job(effort), length=math.inf), on_answer

    def _solve_blocks(
        self, workers: Workers, priced: Priced, effort: Effort, side_jobs: Sequence[SideJob] = ()
    ) -> tuple[FloatArray, int]:
        """Bounds of all blocks at some prices, and how many of their columns are new."""
        jobs = pricing_jobs(priced, self._variables, self._pool, effort, self._nodes)

        def on_answer(number: int, answer: Answer) -> None:
            if number >= len(jobs):
                side_jobs[number - len(jobs)][1](answer)

        together = [*jobs, *(job for job, _ in side_jobs)]
        if self._clock.deterministic:
            # Which answer comes first depends on the machine.
            answers = workers.solve(together)
            for number in range(len(jobs), len(together)):
                on_answer(number, answers[number])
        else:
            answers = workers.solve(together, self._state.expired, on_answer)
        priced_blocks = answers[: len(jobs)]
        self._nodes = np.array([answer.nodes for answer in priced_blocks], dtype=float)
        return take(priced_blocks, self._pool)

    def _complete_pool(self, workers: Workers, priced: Priced) -> bool:
        """Find a column for the blocks whose pricing ended without one; False if the time is over."""
        without = self._pool.blocks_without_column()
        effort = self._clock.first_column()
        jobs = [
            Job(block, priced.reduced_cost[self.parts.blocks[block].variables], effort) for block in without
        ]
        answers = workers.solve(jobs, self._state.expired)
        for block, answer in zip(without, answers, strict=True):
            if answer.infeasible:
                raise InfeasibleBlockError
            if answer.values is not None:
                self._pool.add(block, answer.values)
        return not self._pool.blocks_without_column()
