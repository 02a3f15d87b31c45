"""The search over blocks: guide, rounds of pricing, then neighbourhoods.

A round prices all blocks at the current prices of the linking rows, which gives a bound and new patterns;
beside it an integer master chooses among the patterns found so far, which gives a plan. Prices come from the
linear master, the first ones from the linear relaxation of the whole program. Once more rounds could close
little of the gap they take turns with neighbourhoods, in which the blocks around a shared row are priced at
prices of their own and chosen anew; once they have settled, rounds whose bound knows that supply is whole do.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from fleetplan.planner.decomposition.bound import Lagrangian, Priced, total_bound
from fleetplan.planner.decomposition.effort import Clock
from fleetplan.planner.decomposition.highs_jobs import Answer, Effort, Job
from fleetplan.planner.decomposition.incumbent import Incumbent
from fleetplan.planner.decomposition.linear import rows_of, whole_job
from fleetplan.planner.decomposition.master import Choice, Master, PriceRange
from fleetplan.planner.decomposition.matrix import FloatArray, IntArray
from fleetplan.planner.decomposition.neighbourhoods import Neighbourhoods
from fleetplan.planner.decomposition.patterns import Pattern, PatternPool
from fleetplan.planner.decomposition.relaxation import BOUND_SAFETY, Relaxation, relax
from fleetplan.planner.decomposition.request import BlockOutcome, Request
from fleetplan.planner.decomposition.rounds import (
    InfeasibleBlockError,
    Prices,
    pricing_jobs,
    take,
)
from fleetplan.planner.decomposition.whole_supply import WholeSupply
from fleetplan.planner.decomposition.workers import Workers, WorkersStoppedError, ending
from fleetplan.planner.solvers.interrupt import Stop
from fleetplan.planner.solvers.request import Step

PENALTY_RATIO: Final = 20.0
"""Penalty of passing a linking row's limit in the linear master, over the largest first price."""

PENALTY_GROWTH: Final = 10.0
"""Factor of the penalty where patterns pass limits in spite of it."""

ROUNDS_SHARE_OF_TIME: Final = 0.33
"""Share of the time for rounds; the rest is for whole supply and for plans."""

STEEP_ROUNDS_SHARE_OF_TIME: Final = 0.6
"""The same while rounds raise the bound steeply, as in scarce fleets, whose prices are far from the first."""

STEEP_GAIN: Final = 1e-3
"""Gain of a round that is steep. [bound]"""

LEAD_SHARE: Final = 0.2
"""Rounds wait for a better plan where they could close no more than this share of the gap."""

SETTLED_RATIO: Final = 5e-4
"""Distance of the bound from the linear master at which more rounds gain too little."""

MASTER_S_A_BLOCK: Final = 0.015
"""Time of an integer master over all blocks, per block. [s]"""

LEAST_MASTER_S: Final = 2.0
"""Its least time. [s]"""

SUPPLY_S: Final = 4.0
"""Time of the program of whole supply. [s]"""

SUPPLY_GAP: Final = 1e-4
"""Gap at which it is content: the bound loses as much."""

GRACE_S: Final = 1.0
"""Time past the limit after which running jobs are given up. [s]"""

FIRST_MASTER_S: Final = 1.5
"""Time of the integer master that is to find the first plan. [s]"""

FIRST_MASTERS: Final = 2
"""So many of them a round: the second chooses where patterns of the first lacked replicas, and got them."""

PATTERNS_A_BLOCK: Final = 3
"""Patterns of a block that an integer master over all blocks looks at, the cheapest at the best prices. In
3.4 s it finds better plans among three a block than among four, six or all, in early rounds and late ones."""

FAR_RATIO: Final = 0.1
"""Gap of a plan that is far from good. A master then runs beside every round, and looks at few patterns: the
cheapest of each block and what the linear master mixes. Unmet demand and cost of a large scarce fleet after
two rounds: 1.37e14 in 4 s; 1.51e14 in 3 s without the cheapest, 3.96e15 in 4 s with two a block, 2.29e14 in
14 s among three a block alone. Plans of medium fleets whose gap is 1 to 6 % gain less from it."""

LEAST_SHARE: Final = 1e-6
"""Share in the linear master from which a pattern is one that it mixes."""

PASSED_TOLERANCE: Final = 1e-6
"""Scaled limits that the linear master passes by no more than this, all together, are kept."""


@dataclass(frozen=True, slots=True, eq=False)
class _MasterJob:
    """An integer master, and the patterns that it chooses among."""

    job: Job
    patterns: list[Pattern]


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
        self._pool = PatternPool(self.parts, self._relaxation, self._lagrangian.cost)
        self._incumbent = Incumbent(self.parts, self._relaxation, request.complete)
        self._bound = self._lagrangian.least
        self._bound_source = "bounds of the variables"
        # Of the last linear master: the supply and the patterns it takes, and by how much it passes limits.
        self._mixed_supply: FloatArray = np.zeros(0)
        self._mixed: list[Pattern] = []
        self._passed = math.inf
        self._columns = [block.columns for block in self.parts.blocks]
        self._nodes: FloatArray = np.zeros(len(self._columns))
        # Best prices after the last round, until an integer master chooses among the patterns that suit them.
        self._pending: FloatArray | None = None
        self._late = False

    def run(self, stop: Stop) -> BlockOutcome:
        """Search until the gap is small enough, the time is over, or somebody stops it."""
        blocks = [rows_of(self._relaxation.part(block.rows, block.columns)) for block in self.parts.blocks]
        infeasible = False
        limit_s = math.inf if self._clock.deterministic else self._clock.left_s() + GRACE_S
        if self._request.overtime is not None:
            limit_s += self._request.overtime.seconds
        with Workers(self._clock.workers, blocks) as workers:
            try:
                with ending(workers, stop, limit_s):
                    infeasible = self._run(workers)
            except WorkersStoppedError:
                # The best plan so far is what somebody who stops a search wants.
                pass
        self._request.beginning.memory.keep(self._pool)
        found = self._incumbent
        return BlockOutcome(
            values=found.values,
            objective=None if found.objective is None else float(found.objective),
            bound=self._bound,
            bound_source=self._bound_source,
            infeasible=infeasible and found.values is None,
            work_s=self._clock.worked_s,
        )

    def _run(self, workers: Workers) -> bool:
        """All stages; True if a relaxation is infeasible."""
        if self._request.start is not None:
            self._incumbent.offer(self._choice_of(self._request.start))
            self._tell("start", "a plan that was known before")
        experienced = self._request.beginning.memory.recall(self._pool)
        prices = self._guide(workers)
        if prices is None:
            return True
        if experienced:
            self._learn(workers, prices)
        try:
            settled = self._rounds(workers, prices)
            if self._incumbent.choice is not None and not self._finished():
                self._take_turns(workers, prices, settled)
        except InfeasibleBlockError:
            return True
        return False

    def _take_turns(self, workers: Workers, prices: Prices, settled: bool) -> None:
        """Raise the bound and improve the plan for about as long each, until the search ends."""
        around = Neighbourhoods(self.parts, self._master, self._lagrangian, self._pool, prices, self._seed)
        supply: WholeSupply | None = None
        while not self._finished():
            began = self._clock.spent_s()
            # Without a bound, the last round was cut before every block had one.
            if settled and prices.bound > -math.inf:
                supply = supply or self._whole_supply(prices)
                self._settled_turn(workers, supply)
            else:
                settled = self._rounds(workers, prices)
            until = 2 * self._clock.spent_s() - began
            while not self._finished() and self._incumbent.choice is not None:
                self._improve(workers, around, self._incumbent.choice)
                if self._clock.spent_s() > until:
                    break

    def _whole_supply(self, prices: Prices) -> WholeSupply:
        """The program of whole supply, with what the best prices say of the blocks."""
        best = self._lagrangian.price(prices.best)
        supply = WholeSupply(self.parts, self._master, self._lagrangian, best, self._mixed_supply)
        supply.cut(best, prices.block_bounds)
        return supply

    def _settled_turn(self, workers: Workers, supply: WholeSupply) -> None:
        """Raise the bound by whole supply where that pays; choose among the last patterns in any case."""
        before = self._bound
        if supply.pays(float(self._incumbent.objective or 0) - before):
            self._supply_round(workers, supply)
            supply.note_gain(self._bound / before - 1 if before else 0.0)
        else:
            self._choose_pending(workers)

    def _leads(self, prices: Prices) -> bool:
        """Whether nearly all that plan and bound differ by is the plan's to gain."""
        objective = self._incumbent.objective
        if objective is None:
            return False
        return prices.to_gain < LEAD_SHARE * (float(objective) - prices.bound)

    def _supply_round(self, workers: Workers, supply: WholeSupply) -> None:
        """Find the best whole supply for what is known of the blocks, and price the blocks for it."""
        beside = self._take_pending()
        patterns = list(self._pool.patterns)
        effort = replace(self._clock.master(SUPPLY_S), gap_ratio=SUPPLY_GAP)
        jobs, master = [supply.job(effort)], None
        if beside is None:
            master = self._whole_master(supply.centre, SUPPLY_S, self._far())
            jobs.append(master.job)
        answers = workers.solve(jobs)
        chosen = answers[0]
        self._count(answers)
        self._raise_bound(supply.bound(chosen), "whole supply")
        if master is not None:
            self._offer(answers[1], master.patterns)
        if chosen.values is None or self._finished():
            return
        mixed = workers.solve([supply.prices_job(chosen.values[: len(self._mixed_supply)], patterns)])[0]
        self._clock.count(1, 0)
        if mixed.row_duals is None:
            raise RuntimeError(f"HiGHS did not solve the linear program of a supply: {mixed.status}")
        priced = self._lagrangian.price(supply.next_prices(mixed.row_duals))
        bounds, new = self._solve_blocks(workers, priced, self._clock.pricing(spread=0.0), beside)
        if np.isfinite(bounds).all():
            supply.cut(priced, bounds)
        self._tell("supply", f"{new} new patterns of {len(self._pool.patterns)}")

    def _improve(self, workers: Workers, around: Neighbourhoods, choice: Choice) -> None:
        """Try some neighbourhoods, and keep what makes the plan better, one after the other."""
        for found in around.improve(workers, self._clock, choice, self._mixed_supply):
            before = self._incumbent.choice
            better = self._master.chosen(found.scope, found.patterns, found.answer, before)
            # Two that share a limit may pass it together.
            if better is None or not self._master.holds(better):
                continue
            if self._incumbent.offer(better):
                self._tell("neighbourhood", f"{len(found.scope.blocks)} blocks chosen anew")

    def _choice_of(self, values: IntArray) -> Choice:
        """A plan as patterns, which are remembered."""
        scaled = values / self._relaxation.column_scale
        patterns = [
            self._pool.known(block, scaled[each.columns]) for block, each in enumerate(self.parts.blocks)
        ]
        return self._master.choice(patterns, scaled[self.parts.master_columns])

    def _expired(self) -> bool:
        """Whether work that is under way should be cut short; counted work is always done."""
        if self._clock.deterministic:
            return False
        return self._clock.left_s() + self._overtime_s() <= 0 or self._impatient()

    def _hopeless(self, rounds: int) -> bool:
        """Whether so much without a plan is reason enough to give up."""
        without = self._incumbent.objective is None
        return without and (rounds >= self._request.patience.rounds or self._impatient())

    def _impatient(self) -> bool:
        """Whether so much time without a plan is."""
        return self._incumbent.objective is None and self._clock.spent_s() > self._request.patience.seconds

    def _finished(self) -> bool:
        objective = self._incumbent.objective
        if self._clock.left_s() <= 0 and not self._goes_on():
            return True
        if self._late and self._good():
            return True
        return objective is not None and self._request.enough(objective, self._bound)

    def _goes_on(self) -> bool:
        """Whether the plan is so far from good that the limit is put off: once, until it is good."""
        more_s = self._overtime_s()
        if not more_s:
            return False
        self._late = True
        self._clock.extend(more_s)
        return self._clock.left_s() > 0

    def _overtime_s(self) -> float:
        """How much later than its limit the search would end as its plan is now. [s]"""
        overtime = self._request.overtime
        return 0.0 if self._late or overtime is None or self._good() else overtime.seconds

    def _good(self) -> bool:
        """Whether the plan does without overtime; without any plan there is nothing to improve."""
        objective, overtime = self._incumbent.objective, self._request.overtime
        return objective is None or overtime is None or overtime.good(objective, self._bound)

    def _guide(self, workers: Workers) -> Prices | None:
        """First prices: those that are known, or from the linear relaxation of everything.

        Returns
        -------
        Prices or None
            None where the relaxation has no solution.
        """
        linking = self.parts.linking_rows
        known = self._request.beginning.row_duals
        if known is not None:
            self._tell("guide", "prices that were known before")
            duals = (known * self._relaxation.row_scale)[linking]
            return Prices(duals, duals, -np.inf)
        job = whole_job(self._relaxation, self._lagrangian.cost, workers.count)
        answer = workers.solve([job])[0]
        self._clock.count(1, 0)
        if answer.row_duals is None:
            if not answer.infeasible:
                raise RuntimeError(f"HiGHS did not solve the linear relaxation: {answer.status}")
            return None
        bound = self._relaxation.bound(self._lagrangian.cost, answer.row_duals)
        self._raise_bound(bound - BOUND_SAFETY * abs(bound), "linear relaxation")
        self._tell("guide", "linear relaxation of the whole program")
        duals = answer.row_duals[linking]
        return Prices(duals, duals, -np.inf)

    def _learn(self, workers: Workers, prices: Prices) -> None:
        """Set the first prices by the patterns that are known already, and let a master choose among them."""
        patterns = list(self._pool.patterns)
        everywhere = PriceRange.of_penalty(self._penalty(prices), len(prices.best))
        _, prices.current, values = self._linear_master(workers, patterns, everywhere)
        self._mixed = _mixed_of(patterns, values)
        self._pending = prices.current

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
        while not self._finished():
            before = prices.bound
            new = self._price_blocks(workers, prices)
            if new is None:
                return True
            patterns = list(self._pool.patterns)
            mixed = self._mix(workers, prices, patterns, penalty)
            self._tell(
                "pricing",
                f"round {prices.rounds}: {new} new patterns of {len(patterns)}, linear master {mixed:.6g}",
            )
            # Even past the limit: any plan is better than none. Again where patterns lacked replicas.
            for _ in range(FIRST_MASTERS):
                if self._incumbent.objective is None:
                    self._choose(workers, prices.best, FIRST_MASTER_S)
            if self._hopeless(prices.rounds):
                return True
            self._pending = prices.best
            if not self._good():
                self._choose_pending(workers)
            settled = prices.spread <= SETTLED_RATIO
            steep = prices.bound - before > STEEP_GAIN * abs(prices.bound)
            share = STEEP_ROUNDS_SHARE_OF_TIME if steep else ROUNDS_SHARE_OF_TIME
            spent = self._clock.spent_s() > share * self._clock.limit_s
            if settled or spent or new == 0:
                if self._passed > PASSED_TOLERANCE and new:
                    penalty *= PENALTY_GROWTH
                    continue
                if self._incumbent.objective is None and not self._finished():
                    self._choose_pending(workers)
                return True
            if self._leads(prices):
                return False
        return True

    def _price_blocks(self, workers: Workers, prices: Prices) -> int | None:
        """Price all blocks, an integer master over earlier patterns beside them.

        Returns
        -------
        int or None
            New patterns; None where the time is over before every block has one.
        """
        priced = self._lagrangian.price(prices.current)
        # For the sake of the bound, every other round does without a master while the plan is near it.
        beside = self._take_pending() if prices.rounds % 2 == 0 or self._far() else None
        bounds, new = self._solve_blocks(workers, priced, self._clock.pricing(prices.spread), beside)
        if prices.note(priced.duals, total_bound(priced, bounds), bounds):
            self._raise_bound(prices.bound, "pricing of blocks")
        return new if self._complete_pool(workers, priced) else None

    def _solve_blocks(
        self, workers: Workers, priced: Priced, effort: Effort, beside: _MasterJob | None = None
    ) -> tuple[FloatArray, int]:
        """Bounds of all blocks at some prices, and how many of their patterns are new."""
        jobs = pricing_jobs(priced, self._columns, self._pool, effort, self._nodes)

        def hear(number: int, answer: Answer) -> None:
            if beside is not None and number == len(jobs):
                self._offer(answer, beside.patterns)

        answers = workers.solve(jobs if beside is None else [*jobs, beside.job], self._expired, hear)
        self._count(answers)
        priced_blocks = answers[: len(jobs)]
        self._nodes = np.array([answer.nodes for answer in priced_blocks], dtype=float)
        return take(priced_blocks, self._pool)

    def _mix(self, workers: Workers, prices: Prices, patterns: list[Pattern], penalty: float) -> float:
        """Set the next prices by the linear master with prices near the best; its objective."""
        n_linking = len(prices.best)
        everywhere = PriceRange.of_penalty(penalty, n_linking)
        _, anywhere, values = self._linear_master(workers, patterns, everywhere)
        self._mixed_supply = values[len(patterns) : -2 * n_linking]
        self._mixed = _mixed_of(patterns, values)
        self._passed = float(values[-2 * n_linking :].sum())
        objective, duals, _ = self._linear_master(workers, patterns, prices.near(anywhere) & everywhere)
        prices.follow(objective, duals)
        return objective

    def _linear_master(
        self, workers: Workers, patterns: list[Pattern], prices: PriceRange
    ) -> tuple[float, FloatArray, FloatArray]:
        """Objective, prices of the linking rows, and values of the linear master over all blocks."""
        job = self._master.linear_job(self._master.everything(), patterns, prices)
        mixed = workers.solve([job])[0]
        self._clock.count(1, 0)
        if mixed.row_duals is None or mixed.values is None:
            raise RuntimeError(f"HiGHS did not solve the linear master: {mixed.status}")
        return mixed.objective, mixed.row_duals[: len(self.parts.linking_rows)], mixed.values

    def _whole_master(self, prices: FloatArray, seconds: float, few: bool) -> _MasterJob:
        """The integer master over all blocks, and the patterns that it chooses among: few or more."""
        everything, effort = self._master.everything(), self._clock.master(seconds, self._overtime_s())
        choice = self._incumbent.choice
        kept = () if choice is None else choice.patterns
        blocks = everything.blocks.tolist()
        most, besides = (1, (*self._mixed, *kept)) if few else (PATTERNS_A_BLOCK, kept)
        patterns = self._pool.promising(blocks, prices, most, besides)
        job = self._master.integer_job(everything, patterns, effort, choice)
        return _MasterJob(replace(job, length=math.inf), patterns)

    def _far(self) -> bool:
        """Whether there is a plan, and it is far from good."""
        objective = self._incumbent.objective
        return objective is not None and objective - self._bound > FAR_RATIO * abs(objective)

    def _master_s(self) -> float:
        """Time of an integer master over all blocks. [s]"""
        return max(LEAST_MASTER_S, MASTER_S_A_BLOCK * len(self.parts.blocks))

    def _choose(self, workers: Workers, prices: FloatArray, seconds: float) -> None:
        """Let integer masters choose now, each core among patterns of its own."""
        # What repeats on any number of cores has both on one, one after the other.
        both = workers.count > 1 or self._clock.deterministic
        kinds = (True, False) if both else (self._far(),)
        masters = [self._whole_master(prices, seconds, few) for few in kinds]
        answers = workers.solve([each.job for each in masters])
        self._count(answers)
        for answer, master in zip(answers, masters, strict=True):
            self._offer(answer, master.patterns)

    def _choose_pending(self, workers: Workers) -> None:
        """Let integer masters choose among the last patterns, if none has done so yet."""
        prices, self._pending = self._pending, None
        if prices is not None:
            self._choose(workers, prices, self._master_s())

    def _take_pending(self) -> _MasterJob | None:
        """The integer master over the last patterns, if none has been solved yet."""
        prices, self._pending = self._pending, None
        return None if prices is None else self._whole_master(prices, self._master_s(), self._far())

    def _complete_pool(self, workers: Workers, priced: Priced) -> bool:
        """Find a pattern for the blocks whose pricing ended without one; False if the time is over."""
        without = self._pool.blocks_without()
        effort = self._clock.first_pattern()
        jobs = [
            Job(block, priced.reduced_cost[self.parts.blocks[block].columns], effort) for block in without
        ]
        answers = workers.solve(jobs, self._expired)
        self._count(answers)
        for block, answer in zip(without, answers, strict=True):
            if answer.infeasible:
                raise InfeasibleBlockError
            if answer.values is not None:
                self._pool.add(block, answer.values)
        return not self._pool.blocks_without()

    def _offer(self, answer: Answer, patterns: list[Pattern]) -> None:
        """What an integer master chose, if it is better."""
        choice = self._master.chosen(self._master.everything(), patterns, answer, None)
        if choice is None:
            return
        if self._incumbent.offer(choice):
            self._tell("master", f"integer master over {len(patterns)} patterns")
            return
        if self._incumbent.objective is None or choice.cost < self._incumbent.objective:
            for pattern, values in self._incumbent.mended(choice):
                self._pool.replace(pattern, values)
                self._mixed = [each for each in self._mixed if each is not pattern]

    def _count(self, answers: list[Answer]) -> None:
        self._clock.count(len(answers), sum(answer.nodes for answer in answers))

    def _raise_bound(self, bound: float, source: str) -> None:
        if bound > self._bound:
            self._bound, self._bound_source = bound, source

    def _tell(self, source: str, detail: str) -> None:
        objective = self._incumbent.objective
        self._request.listen(
            Step(
                source,
                detail,
                None if objective is None else float(objective),
                self._bound,
                self._incumbent.values,
            )
        )


def _mixed_of(patterns: list[Pattern], values: FloatArray) -> list[Pattern]:
    """The patterns that a linear master takes, by its values, which begin with their shares."""
    return [patterns[index] for index in np.flatnonzero(values[: len(patterns)] > LEAST_SHARE)]
