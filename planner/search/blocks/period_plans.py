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
"""Share of the time limit for the program of one period among all slots; two run in parallel on two cores."""

FEW_SLOTS_SHARE_OF_TIME: Final = 0.05
"""Share among the slots that the supply and the best plan use. All slots, starting from that plan, gain 0.2 %
at most in twice the time, and neighbourhoods gain more: without that step teams 1 to 5 end at 0.81, 3.19,
0.71, 1.54 and 3.52 instead of 1.03, 5.13, 0.91, 1.81 and 4.10 % after 30 s (means of one to four runs)."""

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

        Each period is solved among few slots first. Those without a plan are solved among all; what all slots
        gain for the others, neighbourhoods gain sooner.
        """
        few, effort = self._effort(FEW_SLOTS_SHARE_OF_TIME), self._effort(PLAN_SHARE_OF_TIME)
        opened = self._plans.slots_near(supply)
        among_few = yield self._periods.plan_jobs(supply, few, impossible, opened)
        answers = list(among_few)
        without = [number for number, answer in enumerate(answers) if answer.values is None]
        if not without:
            yield from self._offer(answers)
            return
        jobs = self._periods.plan_jobs(supply, effort, impossible)
        answers = _with(answers, without, (yield [jobs[number] for number in without]))
        if short := sorted(self._noted_impossible(answers)):
            jobs = self._periods.plan_jobs(supply, effort, short)
            answers = _with(answers, short, (yield [jobs[number] for number in short]))
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


def _with(answers: Sequence[Answer], periods: Sequence[int], others: Sequence[Answer]) -> list[Answer]:
    """Return the answers of all periods, with others for some."""
    found = dict(zip(periods, others, strict=True))
    return [found.get(number, answer) for number, answer in enumerate(answers)]
