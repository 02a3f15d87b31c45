"""Rounds of a search that decides every period whole: each raises the bound, then makes plans from it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from fleetplan.planner.search.blocks.effort import Clock
from fleetplan.planner.search.blocks.periods import Periods
from fleetplan.planner.search.blocks.plan_search import PlanSearch
from fleetplan.planner.search.blocks.pricing import InfeasibleBlockError
from fleetplan.planner.search.blocks.state import SearchState
from fleetplan.planner.search.solvers.highs_jobs import Effort
from fleetplan.planner.search.solvers.matrix import FloatArray
from fleetplan.planner.search.solvers.relaxation import BOUND_SAFETY
from fleetplan.planner.search.solvers.workers import Workers

BOUND_SHARE_OF_TIME: Final = 0.14
"""Share of the time limit that the program of one period may take; two run at once on two cores."""

PLAN_SHARE_OF_TIME: Final = 0.1
"""The same where the supply is known."""

SUPPLY_SHARE_OF_TIME: Final = 0.1
"""The same for what is worth buying; most take far less."""

PLANS_SHARE_OF_TIME: Final = 0.2
"""Share of the time after which a round begins no other plan."""

SOURCE: Final = "periods decided whole"
"""Who proves these bounds."""

GAP: Final = 1e-3
"""Gap of all periods together at which their programs are content, over the bound."""

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
    state : SearchState
        Receives the bounds.
    clock : Clock
        Says how long.
    plans : PlanSearch
        Keeps plans and improves them.

    Attributes
    ----------
    taken : int
        Rounds so far.
    """

    def __init__(self, periods: Periods, state: SearchState, clock: Clock, plans: PlanSearch) -> None:
        self._periods = periods
        self._state = state
        self._clock = clock
        self._plans = plans
        self.taken = 0
        self._gain = math.inf
        self._tried: set[tuple[int, ...]] = set()

    def pays(self, seats: int) -> bool:
        """Whether another round is worth its time, at so many seats."""
        rounds = math.ceil(self._periods.count / self._clock.sharing(seats))
        enough = self._clock.left_s() > rounds * BOUND_SHARE_OF_TIME * self._clock.limit_s
        return enough and self._gain > LEAST_GAIN

    def run(self, workers: Workers) -> None:
        """Raise the bound while that pays, and improve the plan for as long, until the search ends.

        Raises
        ------
        InfeasibleBlockError
            If a period has no plan at all.
        """
        self._plans.plan_among_used_slots(workers)
        while not self._state.finished():
            began, pays = self._clock.spent_s(), self.pays(workers.count)
            if pays:
                self.round(workers)
            # The plan has as much time now.
            until = 2 * self._clock.spent_s() - began if pays else math.inf
            while not self._state.finished():
                if self._state.hopeless(self.taken):
                    return
                self._plans.improve_or_find(workers)
                if self._clock.spent_s() > until:
                    break

    def round(self, workers: Workers) -> None:
        """One round: the bound, what is worth buying, and what runs there.

        Raises
        ------
        InfeasibleBlockError
            If a period has no plan at all.
        """
        self.taken += 1
        before = self._state.bound
        jobs = self._periods.jobs(self._effort(BOUND_SHARE_OF_TIME))
        answers = workers.solve(jobs, self._state.expired)
        if any(answer.infeasible for answer in answers):
            raise InfeasibleBlockError
        self._periods.learn(jobs, answers)
        bound = self._periods.follow(workers.solve_one(self._periods.linear_job()))
        self._state.raise_bound(bound, SOURCE)
        self._state.tell("periods", f"bounds of {self._periods.count} periods")
        self._gain = self._state.bound / before - 1 if before else 0.0
        if self._state.finished():
            return
        until = self._clock.spent_s() + PLANS_SHARE_OF_TIME * self._clock.limit_s
        for supply in self._supplies(workers):
            if self._state.finished() or self._clock.spent_s() > until:
                return
            if self._periods.supply_key(supply) not in self._tried:
                self._tried.add(self._periods.supply_key(supply))
                self._plan(workers, supply)

    def _supplies(self, workers: Workers) -> Iterator[FloatArray]:
        """What may be worth buying: the best for the whole of what is known, then what each period would."""
        known = self._state.incumbent.values
        start = None if known is None else known / self._periods.relaxation.variable_scale
        effort = replace(self._effort(SUPPLY_SHARE_OF_TIME), gap=SUPPLY_GAP * abs(self._state.bound))
        best = workers.solve_one(self._periods.supply_job(effort, start))
        if best.values is not None:
            self._state.raise_bound(best.bound - BOUND_SAFETY * abs(best.bound), SOURCE)
            yield best.values
        yield from self._periods.wanted_supplies

    def _plan(self, workers: Workers, supply: FloatArray) -> None:
        """Decide what runs in every period with some supply, or with more, and offer that as a plan."""
        effort = replace(self._effort(PLAN_SHARE_OF_TIME), rounds=True)
        answers = workers.solve(self._periods.plan_jobs(supply, effort), self._state.expired)
        if any(answer.infeasible for answer in answers):
            answers = workers.solve(self._periods.plan_jobs(supply, effort, more=True), self._state.expired)
        values = self._periods.merged(answers)
        following = None if values is None else self._periods.following_job(values)
        if values is not None and following is not None:
            values = self._periods.completed(values, workers.solve_one(following))
        if values is not None and self._plans.offer(values):
            self._state.tell("periods", "plan period by period for the best supply")

    def _effort(self, share: float) -> Effort:
        """Effort for one program, for so much of the time."""
        gap = GAP * abs(self._state.bound) / self._periods.count
        return replace(self._clock.master(share * self._clock.limit_s), gap_ratio=0.0, gap=gap)
