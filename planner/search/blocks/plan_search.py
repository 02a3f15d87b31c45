"""Plans of a search over blocks, improved by neighbourhoods until bound rounds gain more.

`PlanSearch` extends `FirstPlans` instead of holding one, because both change the same state: the last
relaxation, its neighbourhoods, the columns of plans and the first draft. Code that improves plans also offers
and constructs them. Two objects would need a third for the state, and would pass most calls to it.
"""

from __future__ import annotations

from collections import deque
from typing import Final

from fleetplan.fleet.figures import counted
from fleetplan.planner.search.blocks.columns import ColumnPool
from fleetplan.planner.search.blocks.construction import Structure
from fleetplan.planner.search.blocks.direct_neighbourhoods import DirectNeighbourhoods
from fleetplan.planner.search.blocks.effort import Clock, GainRate, gain_rate
from fleetplan.planner.search.blocks.first_plans import FirstPlans, improved
from fleetplan.planner.search.blocks.master import Master, Selection
from fleetplan.planner.search.blocks.split import Split
from fleetplan.planner.search.blocks.state import SearchState
from fleetplan.planner.search.solvers.matrix import FloatArray
from fleetplan.planner.search.solvers.workers import Workers

RECENT: Final = 10
"""Number of latest improvements to combine."""

TOGETHER_S: Final = 1.0
"""Time limit of the combination. Most take 0.03 to 0.3 s for a company of twelve services. [s]"""

FAR_SHARE_OF_TIME: Final = 0.2
"""Share of the time to improve a first plan that is far from its bound, before columns are priced. A large
company's gap is 8 % after 85 s, instead of 10 %, and 3.0 % after 300 s, instead of 3.5 %."""

FAR_PATIENCE: Final = 8
"""Times without a gain after which columns are priced."""

PROMISING_SHARE_OF_TIME: Final = 0.15
"""Share of the time to improve a plan with better supply until it is the best."""


class PlanSearch(FirstPlans):
    """Search for plans and their improvement; parameters and attributes as in `FirstPlans`."""

    def __init__(
        self,
        parts: Split,
        structure: Structure,
        master: Master,
        pool: ColumnPool,
        state: SearchState,
        clock: Clock,
        seed: int,
    ) -> None:
        super().__init__(parts, structure, master, pool, state, clock, seed)
        self._direct_rate = GainRate()
        # Plan with more promising supply that is not yet the best, and the end of its improvement. [s]
        self._promising: FloatArray | None = None
        self._promising_until_s = 0.0
        # Latest improvements.
        self._recent: deque[Selection] = deque(maxlen=RECENT)

    def offer_promising(self, scaled: FloatArray) -> bool:
        """Keep a plan if it is the best; otherwise improve it for a while if its supply is promising.

        In one team, the plan for the best supply first cost as much as the incumbent, whose neighbourhoods
        had found nothing for 10 s, and 2.8 % less after 7 s of neighbourhoods.
        """
        if self.offer(scaled):
            return True
        direct, best = self._direct, self._scaled()
        if direct is None or best is None or not direct.holds(scaled):
            return False
        if direct.objective(scaled) - direct.objective(best) < self.open_cost():
            self._promising = scaled
            share_s = PROMISING_SHARE_OF_TIME * self._clock.limit_s
            self._promising_until_s = self._clock.spent_s() + share_s
        return False

    def _improve_promising(self, workers: Workers, direct: DirectNeighbourhoods, now: FloatArray) -> None:
        """Improve a promising plan by neighbourhoods, until it is the best or its time is over."""
        now = improved(direct, workers, self._clock, now)
        if self.offer(now):
            self._state.tell("neighbourhood", "improved a plan with better supply")
            self._promising = None
        else:
            self._promising = now if self._clock.spent_s() < self._promising_until_s else None

    def improve(self, workers: Workers) -> None:
        """Solve neighbourhoods on the program's variables, and keep improvements."""
        now = self._scaled()
        if now is None or self._direct is None:
            return
        if self._promising is not None:
            self._improve_promising(workers, self._direct, self._promising)
            return
        changes = self._direct.improve(workers, self._clock, now, self.open_cost())
        for change in sorted(changes, key=lambda each: -each.gain):
            changed = now.copy()
            changed[change.variables] = change.values
            selection = self._selection(changed)
            self._recent.append(selection)
            if self._offer(selection, changed):
                self._state.tell("neighbourhood", f"re-optimised {change.detail}")
        self.plan_repair.decide_supply(workers)
        if changes:
            self._put_together(workers)

    def _put_together(self, workers: Workers) -> None:
        """Choose among the columns of the plan and of the latest improvements, together with supply.

        Each improvement assumed that all else stays, with supply for it alone, so two rarely fit together.
        Among 26 pairs of a company's improvements, the second of five would be lost.
        """
        plan = self._state.incumbent.selection
        if plan is None or self._state.finished():
            return
        found = (self.pool.current(column) for each in self._recent for column in each.columns)
        columns = list({id(column): column for column in (*plan.columns, *found)}.values())
        everything, effort = self.master.everything(), self._clock.master(TOGETHER_S)
        answer = workers.solve_one(self.master.integer_job(everything, columns, effort, plan))
        chosen = self.master.chosen(everything, columns, answer, None)
        if chosen is not None and self.plan_repair.offer(chosen):
            self._state.tell("neighbourhood", f"combined {counted(len(self._recent), 'neighbourhood')}")
        self.plan_repair.decide_supply(workers)

    def improve_or_find(self, workers: Workers) -> None:
        """Improve the plan, or search for a first one."""
        if self._state.incumbent.values is None:
            self.try_again(workers)
        else:
            self.improve(workers)

    def improve_to_the_end(self, workers: Workers) -> None:
        """Improve the plan, or search for one, by neighbourhoods and constructions alone."""
        while self._direct is not None and not self._state.finished() and not self._state.hopeless(0):
            self.improve_or_find(workers)

    def improve_while_far(self, workers: Workers) -> None:
        """Improve a first plan far from its bound, before columns are priced.

        Where it leaves much demand unmet, masters over columns gain more.
        """
        until, failed = self._clock.spent_s() + FAR_SHARE_OF_TIME * self._clock.limit_s, 0
        while self._direct is not None and self._state.far() and self._state.good():
            before = self.open_cost()
            if self._state.finished() or self._clock.spent_s() >= until or failed >= FAR_PATIENCE:
                return
            self.improve(workers)
            failed = 0 if self.open_cost() < before else failed + 1

    def improve_while_it_pays(self, workers: Workers, raised: float, round_s: float) -> None:
        """Improve the plan while that closes more of the gap per time than the last round's bound.

        Parameters
        ----------
        workers : Workers
            Processes that solve the jobs.
        raised : float
            Gain of the bound in the round. [objective units]
        round_s : float
            Time of the round, and the limit for this. [s]
        """
        round_rate = gain_rate(raised, round_s)
        until = self._clock.spent_s() + round_s
        while self._direct is not None and self._state.incumbent.values is not None:
            began, before = self._clock.spent_s(), self.open_cost()
            if self._direct_rate.per_s <= round_rate or began >= until or self._state.finished():
                return
            self.improve(workers)
            self._direct_rate.note(before - self.open_cost(), self._clock.spent_s() - began)
