"""Supply rounds: each chooses supply, raises the bound and leads to a plan with that supply.

A round chooses whole supply while replicas may be fractional, constructs a plan for it, prices blocks at it
for cuts on the cost of whole replicas (block_cuts.py), and repeats. After 30 s, the bounds of five teams'
years are 5.749, 2.662, 3.530, 4.691 and 3.040 M USD; without cuts, with the first period's replicas whole,
they are 5.719, 2.656, 3.500, 4.757 and 3.066 M USD.
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
"""Share of the time limit for the supply program, while plans are improved in parallel. It takes 4 to 13 s of
a core for teams, and its bound arrives when it ends."""

WHOLE_SHARE_OF_TIME: Final = 0.75
"""Share of the time limit with whole replicas in some periods."""

PRICING_ROUNDS: Final = 4
"""Pricing rounds per supply. A round takes about 1 s on two cores for teams, the next supply program 4 to 13
s of one."""

PRICING_GAP: Final = 2e-4
"""Gap of a block: cuts lose as much."""

CLOSING_SHARE: Final = 0.05
"""Least share of the gap that a round must close; otherwise the next makes replicas whole in one more
period."""

SOURCE: Final = "integer supply with block cuts"
"""Source of these bounds."""

SUPPLY_GAP: Final = 3e-3
"""Target gap of the supply program, as a share of the bound."""

LEAST_GAIN: Final = 2e-4
"""Relative gain of the bound below which rounds end. [share of the bound]"""


class PeriodRounds:
    """Rounds that raise the bound and lead to plans, period by period.

    Parameters
    ----------
    periods : Periods
        Programs of the periods.
    cuts : BlockCuts
        Lower bounds on the cost of blocks.
    state : SearchState
        Receives the bounds.
    clock : Clock
        Time limits.
    plans : PlanSearch
        Stores plans and improves them.
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
        # Points at one of which a cut must bind to be kept.
        self._points: list[FloatArray] = []
        # Supplies to plan for.
        self._supplies: list[FloatArray] = []
        self._start: FloatArray | None = None
        # Time of the latest supply program. [s]
        self._supply_s = 0.0

    def run(self, workers: Workers) -> None:
        """Raise the bound while that pays, and improve the plan in parallel, until the search ends.

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
        """Alternate one step with improvements of the plan for the same time."""
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
        """Plan for the supplies found so far."""
        while self._supplies and not self._over():
            steps = self._planning.steps(self._supplies.pop())
            jobs = next(steps, None)
            while jobs is not None:
                jobs = _sent(steps, workers.solve(jobs, self._state.expired))

    def _beside(self, workers: Workers) -> None:
        """Run each step as soon as the one before is done, with neighbourhoods in the background.

        Rounds wait for a plan with the supply they found: it closes more of the gap than the next bound, and
        both together compete for the cores. In one team the plan follows its supply after 8 s instead of 14
        s.
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

            # Follow-up jobs depend on these; neighbourhoods have none.
            batch = workers.give(jobs, self._state.expired, note, urgent=True)

        rounds = self._rounds()
        follow(rounds, next(rounds, None), lambda: None)
        while not self._over():
            self._plans.improve_or_find(workers)

    def _over(self) -> bool:
        return self._state.finished() or self._state.hopeless(0)

    def _rounds(self) -> Steps:
        """Choose supply, learn its cost with whole replicas, and repeat.

        Once that closes little of the gap, replicas become whole period by period, starting with the first,
        which shapes all others, and with periods that had no plan for some supply.
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
            # Without a plan there is no gap to measure progress by.
            if self._state.bound - before < CLOSING_SHARE * open_cost < math.inf:
                whole |= self._next(whole)

    def _is_late(self) -> bool:
        """Return whether another supply program would not end in time; its bound arrives when it ends."""
        return self._clock.left_s() < self._supply_s

    def _next(self, whole: frozenset[int]) -> frozenset[int]:
        """Return the first period whose replicas are not whole yet."""
        return frozenset([each for each in range(self._periods.count) if each not in whole][:1])

    def _decide_supply(
        self, whole: frozenset[int]
    ) -> Generator[Sequence[AnyJob], list[Answer], FloatArray | None]:
        """Choose supply; return scaled values of all variables, or None if its time ran out.

        The program covers all periods, with fractional replicas except in `whole` periods, so its bound is
        valid.

        Raises
        ------
        InfeasibleBlockError
            If no plan serves all demand even with fractional replicas.
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
        detail = "chose supply with fractional replicas"
        if whole:
            detail = (
                f"chose supply with whole replicas in {len(whole)} of "
                f"{counted(self._periods.count, 'period')}"
            )
        self._state.tell("periods", detail)
        return None if best.values is None else program.values(best.values)

    def _price(self, values: FloatArray) -> Generator[Sequence[AnyJob], list[Answer], bool]:
        """Price all blocks at the supply of these values, until it proves to cost more or prices settle.

        Returns
        -------
        bool
            Whether the supply now proves to cost more than before.

        Raises
        ------
        InfeasibleBlockError
            If a block has no column.
        """
        self._points.append(values)
        linear = (yield [self._periods.held_job(values)])[0]
        if linear.row_duals is None:
            # Rows about which configurations run, for example, leave no plan with this supply.
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
        """Price all blocks at prices of the linking rows, and keep the resulting cuts."""
        effort = self._clock.pricing(PRICING_GAP / SPREAD_SHARE)
        answers = yield self._cuts.jobs(prices, effort)
        self._periods.add(self._cuts.learned(answers))
        return answers


def _sent(steps: Steps, answers: list[Answer]) -> Sequence[AnyJob] | None:
    """Return the jobs that follow from answers; None if there are none."""
    try:
        return steps.send(answers)
    except StopIteration:
        return None
