"""Plans for a given supply: moment by moment, then each period as a whole."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace
from typing import Final

from fleetplan.planner.search.blocks.effort import Clock
from fleetplan.planner.search.blocks.periods import Periods
from fleetplan.planner.search.blocks.plan_search import PlanSearch
from fleetplan.planner.search.blocks.state import SearchState
from fleetplan.planner.search.solvers.highs_jobs import Answer, AnyJob, Effort
from fleetplan.planner.search.solvers.matrix import FloatArray

Steps = Generator[Sequence[AnyJob], list[Answer], None]
"""Generator that yields batches of jobs and receives their answers."""

PLAN_SHARE_OF_TIME: Final = 0.1
"""Share of the time limit for the program of one period; two run in parallel on two cores."""

FEW_SLOTS_SHARE_OF_TIME: Final = 0.05
"""Share among the slots that the supply and the best plan use: mostly quicker, and a start for the other. It
lowers the first plans of teams 1 to 5 from 5.81, 2.81, 3.59, 4.31 and 2.57 to 5.79, 2.78, 3.56, 4.25 and 2.55
M USD, with 3 s per period."""

PROOF_S: Final = 0.5
"""Time to prove that a period has no plan with a supply: most take 0.3 s of a core for teams. [s]"""

GAP: Final = 1e-3
"""Target gap of all periods' programs together, as a share of the bound."""


class PeriodPlans:
    """Search for plans with a given supply.

    Parameters
    ----------
    periods : Periods
        Programs of the periods.
    state : SearchState
        Notified of plans.
    clock : Clock
        Time limits.
    plans : PlanSearch
        Receives plans.

    Attributes
    ----------
    impossible : set[int]
        Periods without a plan for a supply at which fractional replicas have one.
    """

    def __init__(self, periods: Periods, state: SearchState, clock: Clock, plans: PlanSearch) -> None:
        self._periods = periods
        self._state = state
        self._clock = clock
        self._plans = plans
        self._tried: set[tuple[int, ...]] = set()
        self.impossible: set[int] = set()

    def steps(self, supply: FloatArray) -> Steps:
        """Plan once for a supply, or for more where a period has no plan with it.

        A plan is constructed moment by moment; then each period is solved as a whole.
        """
        key = self._periods.supply_key(supply)
        if key in self._tried:
            return
        self._tried.add(key)
        impossible = yield from self._construct(supply)
        yield from self._decide(supply, impossible)
        # What runs with whole supply is closer to plans than what runs with fractions of it.
        linear = yield [self._periods.linear_job_at(supply)]
        self._plans.note_root(linear[0])

    def _construct(self, supply: FloatArray) -> Generator[Sequence[AnyJob], list[Answer], frozenset[int]]:
        """Construct a plan that starts with a supply.

        Returns
        -------
        frozenset[int]
            Periods proven to have no plan with this supply.
        """
        job = self._plans.construction_at(supply)
        if job is None:
            return frozenset()
        proof = replace(self._clock.master(PROOF_S), improvements=1)
        constructed, *answers = yield [job, *self._periods.plan_jobs(supply, proof)]
        if constructed.values is not None and self._plans.offer(constructed.values):
            self._state.tell("periods", "built a plan moment by moment for the best supply")
        return self._noted_impossible(answers)

    def _noted_impossible(self, answers: Sequence[Answer]) -> frozenset[int]:
        """Return, and note, the periods without a plan for a supply at which fractional replicas have one."""
        found = frozenset(number for number, answer in enumerate(answers) if answer.infeasible)
        self.impossible |= found
        return found

    def _decide(self, supply: FloatArray, impossible: frozenset[int]) -> Steps:
        """Plan period by period, with more supply where a period has no plan.

        Each period is solved among few slots first, then among all, starting from that plan.
        """
        few, effort = self._effort(FEW_SLOTS_SHARE_OF_TIME), self._effort(PLAN_SHARE_OF_TIME)
        opened = self._plans.slots_near(supply)
        among_few = yield self._periods.plan_jobs(supply, few, impossible, opened)
        yield from self._offer(among_few)
        starts = [answer.values for answer in among_few]
        answers = yield self._periods.plan_jobs(supply, effort, impossible, starts=starts)
        if short := self._noted_impossible(answers):
            jobs = self._periods.plan_jobs(supply, effort, short)
            more = yield [jobs[number] for number in short]
            found = dict(zip(short, more, strict=True))
            answers = [found.get(number, answer) for number, answer in enumerate(answers)]
        yield from self._offer(answers)

    def _offer(self, answers: Sequence[Answer]) -> Steps:
        """Keep the plan of all periods, if each has one."""
        values = self._periods.merged(answers)
        following = None if values is None else self._periods.following_job(values)
        if values is not None and following is not None:
            values = self._periods.completed(values, (yield [following])[0])
        if values is not None and self._plans.offer_promising(values):
            self._state.tell("periods", "built a plan period by period for the best supply")

    def _effort(self, share: float) -> Effort:
        """Return the effort for one period with a given supply, by share of the time limit."""
        effort = self._clock.master(share * self._clock.limit_s)
        gap = GAP * abs(self._state.bound) / self._periods.count
        return replace(effort, gap_ratio=0.0, gap=gap, rounds=True, firm=True)
