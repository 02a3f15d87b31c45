"""Rounds of a search that decides every period whole: each raises the bound, then makes plans from it."""

from __future__ import annotations

import math
from collections.abc import Generator
from dataclasses import replace
from typing import Final

from fleetplan.planner.search.blocks.effort import Clock
from fleetplan.planner.search.blocks.periods import Periods
from fleetplan.planner.search.blocks.plan_search import PlanSearch
from fleetplan.planner.search.blocks.pricing import InfeasibleBlockError
from fleetplan.planner.search.blocks.state import SearchState
from fleetplan.planner.search.solvers.highs_jobs import Answer, Effort, Job
from fleetplan.planner.search.solvers.matrix import FloatArray
from fleetplan.planner.search.solvers.relaxation import BOUND_SAFETY
from fleetplan.planner.search.solvers.workers import LEAST_WITH_BACKGROUND, Workers

Steps = Generator[list[Job], list[Answer], None]
"""Gives batches of jobs, and is sent their answers."""

Stalls = Generator[list[Job], list[Answer], bool]
"""The same; says in the end whether it came to no end and proved nothing."""

BOUND_SHARE_OF_TIME: Final = 0.14
"""Share of the time limit that the program of one period may take; two run at once on two cores."""

PLAN_SHARE_OF_TIME: Final = 0.1
"""The same where the supply is known."""

SUPPLY_SHARE_OF_TIME: Final = 0.5
"""The same for what is worth buying, while plans are improved beside it. It takes 2 to 6 s of a core for
teams, and its bound comes with its end."""

WHOLE_SHARE_OF_TIME: Final = 0.75
"""The same with periods decided whole: 11 to 15 s of a core for the first quarter of teams 2, 3 and 5."""

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
        self._seats = 1
        self._gain = math.inf
        self._losses: list[float] = []
        self._tried: dict[tuple[int, ...], list[Answer]] = {}

    def run(self, workers: Workers) -> None:
        """Raise the bound while that pays, and improve the plan beside it, until the search ends.

        Raises
        ------
        InfeasibleBlockError
            If a period has no plan at all.
        """
        self._seats = self._clock.sharing(workers.count)
        if self._clock.deterministic or workers.count < LEAST_WITH_BACKGROUND:
            self._in_turn(workers)
        else:
            self._beside(workers)

    def _in_turn(self, workers: Workers) -> None:
        """A step, then plans for as long as that took."""
        steps = self._all_steps()
        jobs = next(steps, None)
        while not self._state.finished() and not self._state.hopeless(self.taken):
            began = self._clock.spent_s()
            if jobs is not None:
                jobs = _sent(steps, workers.solve(jobs, self._state.expired))
            until = 2 * self._clock.spent_s() - began if jobs is not None else math.inf
            while not self._state.finished() and not self._state.hopeless(self.taken):
                self._plans.improve_or_find(workers)
                if self._clock.spent_s() > until:
                    break

    def _beside(self, workers: Workers) -> None:
        """Each step as soon as the one before is done, whatever neighbourhoods run."""

        def follow(steps: Steps, jobs: list[Job] | None) -> None:
            if jobs is None or self._state.finished():
                return

            def note(_number: int, _answer: Answer) -> None:
                if batch.complete:
                    follow(steps, _sent(steps, batch.ordered))

            batch = workers.give(jobs, self._state.expired, note)

        for steps in (self._first_plan(), self._rounds()):
            follow(steps, next(steps, None))
        while not self._state.finished() and not self._state.hopeless(self.taken):
            self._plans.improve_or_find(workers)

    def _all_steps(self) -> Steps:
        """Every batch of jobs that raises the bound or leads to a plan, one after the other."""
        yield from self._first_plan()
        yield from self._rounds()

    def _first_plan(self) -> Steps:
        """What is worth buying where a part of a replica may run, and a plan with that."""
        yield from self._decide_supply(frozenset())

    def _rounds(self) -> Steps:
        """The same with more and more periods whole, from the first one on, and bounds of single periods."""
        whole = frozenset({0})
        stalls = yield from self._decide_supply(whole)
        while True:
            if more := frozenset() if stalls else self._to_decide_whole(whole):
                whole |= more
            elif self._pays():
                yield from self._bound_periods()
            else:
                return
            stalls = yield from self._decide_supply(whole)

    def _pays(self) -> bool:
        """Whether another bound of every period is worth its time."""
        rounds = math.ceil(self._periods.count / self._seats)
        enough = self._clock.left_s() > rounds * BOUND_SHARE_OF_TIME * self._clock.limit_s
        return enough and self._gain > LEAST_GAIN

    def _to_decide_whole(self, whole: frozenset[int]) -> frozenset[int]:
        """Periods that the last supply has no plan for, or else the first that costs more than its parts.

        The first one shapes all others: in 40 s of a core teams 1, 2 and 3 have bounds of 5.743, 2.653 and
        3.262 M USD with it, of 5.730, 2.623 and 3.258 M with the last one, which loses most, and of 5.719,
        2.643 and 3.244 M with none.
        """
        losses = {each: loss for each, loss in enumerate(self._losses) if each not in whole}
        impossible = frozenset(each for each, loss in losses.items() if loss == math.inf)
        lossy = [each for each, loss in losses.items() if loss > self._gap_of_period()]
        return impossible or frozenset(lossy[:1])

    def _bound_periods(self) -> Steps:
        """Bounds of all periods, and what runs where the supply is as some period would have it.

        Raises
        ------
        InfeasibleBlockError
            If a period has no plan at all.
        """
        self.taken += 1
        before = self._state.bound
        effort = replace(self._effort(BOUND_SHARE_OF_TIME), lp_age=BOUND_LP_AGE, restarts=False)
        jobs = self._periods.jobs(effort)
        answers = yield jobs
        if any(answer.infeasible for answer in answers):
            raise InfeasibleBlockError
        self._periods.learn(jobs, answers)
        linear = yield [self._periods.linear_job()]
        self._state.raise_bound(self._periods.follow(linear[0]), SOURCE)
        self._state.tell("periods", f"bounds of {self._periods.count} periods")
        self._gain = self._state.bound / before - 1 if before else 0.0
        until = self._clock.spent_s() + PLANS_SHARE_OF_TIME * self._clock.limit_s
        for supply in self._periods.wanted_supplies:
            if self._clock.spent_s() > until:
                return
            yield from self._plan(supply)

    def _decide_supply(self, whole: frozenset[int]) -> Stalls:
        """Decide what is worth buying, then what runs there.

        That is decided in the whole program where a part of a replica may run in other periods than some, so
        its bound holds. Returns whether its time was over before it proved anything.
        """
        program = self._periods.supply_program(whole)
        before = self._state.bound
        gap = SUPPLY_GAP * abs(before)
        share = WHOLE_SHARE_OF_TIME if whole else SUPPLY_SHARE_OF_TIME
        effort = replace(self._effort(share), gap=gap, smaller_programs=False)
        # A plan to begin with is far from what is bought here: without it team 5 took 13 s instead of 14.5.
        best = (yield [Job(program.rows, program.cost, effort)])[0]
        self._state.raise_bound(best.bound - BOUND_SAFETY * abs(best.bound), SOURCE)
        detail = "what is worth buying, where a part of a replica may run"
        if whole:
            detail = f"what is worth buying, {len(whole)} of {self._periods.count} periods decided whole"
        self._state.tell("periods", detail)
        solved = best.values is not None and best.objective - best.bound <= 2 * gap
        stalls = not solved and self._state.bound - before <= LEAST_GAIN * abs(before)
        self._losses = []
        if best.values is None:
            return stalls
        values = program.values(best.values)
        yield from self._plan(values, note_losses=True)
        # What runs beside whole supply is nearer to plans than what runs beside fractions of it.
        linear = yield [self._periods.linear_job_at(values)]
        self._plans.note_root(linear[0])
        return stalls

    def _plan(self, supply: FloatArray, note_losses: bool = False) -> Steps:
        """Decide, once, what runs in every period with some supply, or with more where it has no plan."""
        key, effort = self._periods.supply_key(supply), self._plan_effort()
        tried, answers = key in self._tried, self._tried.get(key, [])
        if not tried:
            answers = yield self._periods.plan_jobs(supply, effort)
            self._tried[key] = answers
        if note_losses:
            self._losses = self._periods.losses(supply, answers)
        if tried:
            return
        if short := [number for number, answer in enumerate(answers) if answer.infeasible]:
            jobs = self._periods.plan_jobs(supply, effort, more=True)
            more = yield [jobs[number] for number in short]
            found = dict(zip(short, more, strict=True))
            answers = [found.get(number, answer) for number, answer in enumerate(answers)]
        values = self._periods.merged(answers)
        following = None if values is None else self._periods.following_job(values)
        if values is not None and following is not None:
            values = self._periods.completed(values, (yield [following])[0])
        if values is not None and self._plans.offer(values):
            self._state.tell("periods", "plan period by period for the best supply")

    def _plan_effort(self) -> Effort:
        """Effort for what runs in one period where the supply is known."""
        return replace(self._effort(PLAN_SHARE_OF_TIME), rounds=True)

    def _effort(self, share: float) -> Effort:
        """Effort for one program, for so much of the time."""
        effort = self._clock.master(share * self._clock.limit_s)
        return replace(effort, gap_ratio=0.0, gap=self._gap_of_period())

    def _gap_of_period(self) -> float:
        """Gap at which one period is good enough. [objective units]"""
        return GAP * abs(self._state.bound) / self._periods.count


def _sent(steps: Steps, answers: list[Answer]) -> list[Job] | None:
    """The jobs that follow from some answers; None where there are no more."""
    try:
        return steps.send(answers)
    except StopIteration:
        return None
