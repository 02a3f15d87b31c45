"""Rounds of a search that decides every period whole: each raises the bound, then makes plans from it."""

from __future__ import annotations

import math
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

SUPPLY_SHARE_OF_TIME: Final = 0.5
"""The same for what is worth buying, while plans are improved beside it. Its bound comes with its end, after
2 to 14 s of a core for teams; after a tenth of 30 s three of five were still at the root."""

PLANS_SHARE_OF_TIME: Final = 0.2
"""Share of the time after which a round begins no other plan."""

BOUND_LP_AGE: Final = 3
"""Linear programs after which a cut that does not bind leaves those of a bound, without restarts: HiGHS then
branches within the time that it spends on cuts at the root. Bounds of the first round of teams, seeds 1 to 5,
4.2 s of a core a period: 5.701, 2.556, 3.133, 4.647 and 2.700 M USD; by HiGHS's own settings 5.706, 2.534,
3.113, 4.650 and 2.687 M USD."""

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
        self._decide_supply(workers)
        while not self._state.finished():
            began, pays = self._clock.spent_s(), self.pays(workers.count)
            if pays:
                self.round(workers)
                self._decide_supply(workers)
            # The plan has as much time now.
            until = 2 * self._clock.spent_s() - began if pays else math.inf
            while not self._state.finished():
                if self._state.hopeless(self.taken):
                    return
                self._plans.improve_or_find(workers)
                if self._clock.spent_s() > until:
                    break

    def round(self, workers: Workers) -> None:
        """One round: the bound, and what runs where the supply is as some period would have it.

        Raises
        ------
        InfeasibleBlockError
            If a period has no plan at all.
        """
        self.taken += 1
        before = self._state.bound
        effort = replace(self._effort(BOUND_SHARE_OF_TIME), lp_age=BOUND_LP_AGE, restarts=False)
        jobs = self._periods.jobs(effort)
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
        for supply in self._periods.wanted_supplies:
            if self._state.finished() or self._clock.spent_s() > until:
                return
            self._plan(workers, supply)

    def _decide_supply(self, workers: Workers) -> None:
        """Decide what is worth buying while plans are improved; then what runs there.

        That is decided in the whole program where a part of a replica may run, so its bound holds.
        """
        known = self._state.incumbent.values
        start = None if known is None else known / self._periods.relaxation.variable_scale
        gap = SUPPLY_GAP * abs(self._state.bound)
        effort = replace(self._effort(SUPPLY_SHARE_OF_TIME), gap=gap, smaller_programs=False)
        job = self._periods.supply_job(effort, start)
        best = self._plans.improve_beside(workers, job, self._plans.plan_among_used_slots)
        self._state.raise_bound(best.bound - BOUND_SAFETY * abs(best.bound), SOURCE)
        self._state.tell("periods", "what is worth buying, where a part of a replica may run")
        if best.values is not None and not self._state.finished():
            self._plan(workers, best.values)
            self._plans.plan_among(best.values, workers)
            # What runs beside whole supply is nearer to plans than what runs beside fractions of it.
            self._plans.note_root(workers.solve_one(self._periods.linear_job_at(best.values)))

    def _plan(self, workers: Workers, supply: FloatArray) -> None:
        """Decide, once, what runs in every period with some supply, or with more; offer that as a plan."""
        if self._periods.supply_key(supply) in self._tried:
            return
        self._tried.add(self._periods.supply_key(supply))
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
