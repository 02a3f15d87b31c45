"""Rounds that decide what is worth buying: each raises the bound, and leads to a plan with that supply.

A round decides supply where a part of a replica may run, constructs a plan for it, prices blocks at that
supply for cuts that say what whole replicas cost (block_cuts.py), and decides again. Bounds of teams' years
after 30 s, seeds 1 to 5: 5.749, 2.662, 3.530, 4.691 and 3.040 M USD; without cuts, with the first period
decided whole, 5.719, 2.656, 3.500, 4.757 and 3.066 M USD. After 60 s seed 2 is at 2.669 instead of 2.656 M
USD.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from fleetplan.fleet.figures import counted
from fleetplan.planner.search.blocks.block_cuts import BlockCuts
from fleetplan.planner.search.blocks.effort import SPREAD_SHARE, Clock
from fleetplan.planner.search.blocks.period_plans import PeriodPlans, Steps
from fleetplan.planner.search.blocks.periods import Periods
from fleetplan.planner.search.blocks.plan_search import PlanSearch
from fleetplan.planner.search.blocks.pricing import LEAST_SMOOTHING, InfeasibleBlockError, Prices
from fleetplan.planner.search.blocks.state import SearchState
from fleetplan.planner.search.solvers.highs_jobs import Answer, AnyJob, Job
from fleetplan.planner.search.solvers.matrix import FloatArray
from fleetplan.planner.search.solvers.relaxation import BOUND_SAFETY
from fleetplan.planner.search.solvers.workers import LEAST_WITH_BACKGROUND, Workers

SUPPLY_SHARE_OF_TIME: Final = 0.5
"""Share of the time limit for what is worth buying, while plans are improved beside it. It takes 4 to 13 s of
a core for teams, and its bound comes with its end."""

WHOLE_SHARE_OF_TIME: Final = 0.75
"""The same with periods decided whole."""

PRICING_ROUNDS: Final = 4
"""How often blocks are priced at one supply before the next is decided. A round takes about 1 s on two cores
for teams, and the next program of the supply 4 to 13 s of one."""

PRICING_GAP: Final = 2e-4
"""Gap at which a block is solved: cuts lose as much."""

CLOSING_SHARE: Final = 0.05
"""Share of the gap that a round has to close; otherwise a period more is decided whole in the next."""

SOURCE: Final = "supply decided whole"
"""Who proves these bounds."""

SUPPLY_GAP: Final = 3e-3
"""Gap at which what is worth buying is good enough, over the bound."""

LEAST_GAIN: Final = 2e-4
"""Rounds raise the bound until one raised it by less. [bound]"""


class PeriodRounds:
    """Raises the bound and makes plans, period by period.

    Parameters
    ----------
    periods : Periods
        Their programs.
    cuts : BlockCuts
        Says what blocks cost at least.
    state : SearchState
        Receives the bounds.
    clock : Clock
        Says how long.
    plans : PlanSearch
        Keeps plans and improves them.
    """

    def __init__(
        self, periods: Periods, cuts: BlockCuts, state: SearchState, clock: Clock, plans: PlanSearch
    ) -> None:
        self._periods = periods
        self._cuts = cuts
        self._state = state
        self._clock = clock
        self._plans = plans
        self._planning = PeriodPlans(periods, state, clock, plans)
        # Where cuts have to bind to be kept.
        self._points: list[FloatArray] = []
        # Supplies to plan for.
        self._supplies: list[FloatArray] = []
        self._start: FloatArray | None = None
        # Time of the last program of the supply. [s]
        self._supply_s = 0.0

    def run(self, workers: Workers) -> None:
        """Raise the bound while that pays, and improve the plan beside it, until the search ends.

        Raises
        ------
        InfeasibleBlockError
            If a block has no column.
        """
        if self._clock.deterministic or workers.count < LEAST_WITH_BACKGROUND:
            self._in_turn(workers)
        else:
            self._beside(workers)

    def _in_turn(self, workers: Workers) -> None:
        """A step, then plans for as long as that took."""
        steps = self._rounds()
        jobs = next(steps, None)
        while not self._over():
            began = self._clock.spent_s()
            if jobs is not None:
                jobs = _sent(steps, workers.solve(jobs, self._state.expired))
                self._plan_in_turn(workers)
            until = 2 * self._clock.spent_s() - began if jobs is not None else math.inf
            while not self._over():
                self._plans.improve_or_find(workers)
                if self._clock.spent_s() > until:
                    break

    def _plan_in_turn(self, workers: Workers) -> None:
        """Plan for the supplies that were found."""
        while self._supplies and not self._over():
            steps = self._planning.steps(self._supplies.pop())
            jobs = next(steps, None)
            while jobs is not None:
                jobs = _sent(steps, workers.solve(jobs, self._state.expired))

    def _beside(self, workers: Workers) -> None:
        """Each step as soon as the one before is done, whatever neighbourhoods run.

        Rounds wait until there is a plan for the supply that they found: that closes more of the gap than the
        next bound, and both together take the cores from each other. The plan of team 1 came 8 s after its
        supply, not 14.
        """

        def follow(steps: Steps, jobs: Sequence[AnyJob] | None, then: Callable[[], None]) -> None:
            if self._state.finished():
                return
            if jobs is None:
                then()
                return

            def note(_number: int, _answer: Answer) -> None:
                if batch.complete:
                    further = partial(follow, steps, _sent(steps, batch.ordered), then)
                    if self._supplies:
                        plan = self._planning.steps(self._supplies.pop())
                        follow(plan, next(plan, None), further)
                    else:
                        further()

            # What follows from these jobs waits for them; neighbourhoods lead to no others.
            batch = workers.give(jobs, self._state.expired, note, urgent=True)

        rounds = self._rounds()
        follow(rounds, next(rounds, None), lambda: None)
        while not self._over():
            self._plans.improve_or_find(workers)

    def _over(self) -> bool:
        return self._state.finished() or self._state.hopeless(0)

    def _rounds(self) -> Steps:
        """Decide what is worth buying, learn what that costs in whole replicas, and again.

        Once that closes little of the gap, periods are decided whole, from the first one on, which shapes all
        others. So are those that had no plan with some supply.
        """
        whole: frozenset[int] = frozenset()
        values = yield from self._decide_supply(whole)
        while True:
            learned = False
            if values is not None:
                self._supplies.append(values)
                learned = yield from self._price(values)
            if self._is_late() or (not learned and len(whole) == self._periods.count):
                return
            whole |= self._planning.impossible
            if not learned:
                whole |= self._next(whole)
            before, open_cost = self._state.bound, self._plans.open_cost()
            values = yield from self._decide_supply(whole)
            # Without a plan there is no gap that a round could close little of.
            if self._state.bound - before < CLOSING_SHARE * open_cost < math.inf:
                whole |= self._next(whole)

    def _is_late(self) -> bool:
        """Whether another program of the supply would not end in time: its bound comes with its end."""
        return self._clock.left_s() < self._supply_s

    def _next(self, whole: frozenset[int]) -> frozenset[int]:
        """The first period that is not decided whole."""
        return frozenset([each for each in range(self._periods.count) if each not in whole][:1])

    def _decide_supply(
        self, whole: frozenset[int]
    ) -> Generator[Sequence[AnyJob], list[Answer], FloatArray | None]:
        """Decide what is worth buying; scaled values of all variables, None where its time was over.

        That is decided in the whole program where a part of a replica may run in other periods than some, so
        its bound holds.

        Raises
        ------
        InfeasibleBlockError
            If nothing serves everything even so.
        """
        self._periods.keep_binding(self._points)
        program = self._periods.supply_program(whole)
        gap = SUPPLY_GAP * abs(self._state.bound)
        share = WHOLE_SHARE_OF_TIME if whole else SUPPLY_SHARE_OF_TIME
        effort = self._clock.master(share * self._clock.limit_s)
        effort = replace(effort, gap_ratio=0.0, gap=gap, for_a_bound=True)
        start = None if self._start is None or whole else program.found(self._start)
        began = self._clock.spent_s()
        best = (yield [Job(program.rows, program.cost, effort, start)])[0]
        self._supply_s = self._clock.spent_s() - began
        if best.infeasible and not self._points:
            raise InfeasibleBlockError
        if not best.infeasible:
            self._state.raise_bound(best.bound - BOUND_SAFETY * abs(best.bound), SOURCE)
        detail = "what is worth buying, where a part of a replica may run"
        if whole:
            detail = (
                f"what is worth buying, {len(whole)} of "
                f"{counted(self._periods.count, 'period')} decided whole"
            )
        self._state.tell("periods", detail)
        return None if best.values is None else program.values(best.values)

    def _price(self, values: FloatArray) -> Generator[Sequence[AnyJob], list[Answer], bool]:
        """Price all blocks where supply is that of some values, until that is known to cost more or settled.

        Returns
        -------
        bool
            Whether it is now known to cost more than before.

        Raises
        ------
        InfeasibleBlockError
            If a block has no column.
        """
        self._points.append(values)
        linear = (yield [self._periods.held_job(values)])[0]
        if linear.row_duals is None:
            # Rows that only say which configurations run, and the like, leave no plan with this supply.
            self._start = None
            return False
        before = linear.objective
        first = self._cuts.of_linking_rows(linear.row_duals)
        prices = Prices(first, first, -math.inf, smoothing=LEAST_SMOOTHING)
        for _ in range(PRICING_ROUNDS):
            if self._is_late():
                break
            answers = yield from self._learn(prices.current)
            prices.note(prices.current, self._cuts.bound_at(values, answers), prices.block_bounds)
            linear = (yield [self._periods.held_job(values)])[0]
            job = self._cuts.master_job(values, prices.near(prices.best))
            if linear.values is None or job is None:
                break
            master = (yield [job])[0]
            if master.row_duals is None:
                break
            prices.follow(master.objective, master.row_duals[: len(first)])
            if prices.spread < PRICING_GAP:
                break
        self._start = linear.values
        if linear.values is None:
            return linear.infeasible
        self._points.append(linear.values)
        return linear.objective - before > LEAST_GAIN * abs(self._state.bound)

    def _learn(self, prices: FloatArray) -> Generator[Sequence[AnyJob], list[Answer], list[Answer]]:
        """Price all blocks at some prices of the linking rows, and keep the cuts that this gives."""
        effort = self._clock.pricing(PRICING_GAP / SPREAD_SHARE)
        answers = yield self._cuts.jobs(prices, effort)
        self._periods.add(self._cuts.learned(answers))
        return answers


def _sent(steps: Steps, answers: list[Answer]) -> Sequence[AnyJob] | None:
    """The jobs that follow from some answers; None where there are no more."""
    try:
        return steps.send(answers)
    except StopIteration:
        return None
