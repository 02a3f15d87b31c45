"""The plans of a search over blocks, improved part by part until the bound of its rounds gains more.

`PlanSearch` extends `FirstPlans` and does not hold one, because both change one state: the last relaxation,
its neighbourhoods, the columns of plans and the draft of the first. Whoever improves plans offers and
constructs them as well. Two objects would need a third one with the state, and would pass most calls to it.
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
"""So many of the last changes that neighbourhoods found are put together."""

TOGETHER_S: Final = 1.0
"""Most time for that. Most take 0.03 to 0.3 s for a company of twelve services. [s]"""

PROMISING_SHARE_OF_TIME: Final = 0.15
"""Share of the time for improving a plan with better supply until it is the best."""


class PlanSearch(FirstPlans):
    """Finds plans and improves them; parameters and attributes as those of `FirstPlans`."""

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
        # A plan that is not the best, with supply that promises more, and until when it is improved. [s]
        self._promising: FloatArray | None = None
        self._promising_until_s = 0.0
        # What neighbourhoods found lately.
        self._recent: deque[Selection] = deque(maxlen=RECENT)

    def offer_promising(self, scaled: FloatArray) -> bool:
        """Keep a plan if it is the best; improve it for a while first where its supply promises more.

        Of team 2 the plan for the best supply cost as much as the best one, in whose supply neighbourhoods
        found nothing for ten seconds, and 2.8 % less after seven seconds of them.
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
        """Try some neighbourhoods of a plan that is not the best, until it is or its time is over."""
        now = improved(direct, workers, self._clock, now)
        if self.offer(now):
            self._state.tell("neighbourhood", "plan for better supply improved")
            self._promising = None
        else:
            self._promising = now if self._clock.spent_s() < self._promising_until_s else None

    def improve(self, workers: Workers) -> None:
        """Try some neighbourhoods on the variables themselves, and keep what makes the plan better."""
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
                self._state.tell("neighbourhood", f"{change.detail} decided anew")
        self.mending.decide_supply(workers)
        if changes:
            self._put_together(workers)

    def _put_together(self, workers: Workers) -> None:
        """Choose among the columns of the plan and of the last changes, and decide supply with them.

        Each change was decided as if all else stayed as it was, with supply for it alone: two that save
        something seldom hold as they are. Five of 26 pairs of a company (seed 3) were such, and lost one.
        """
        plan = self._state.incumbent.selection
        if plan is None or self._state.finished():
            return
        found = (self.pool.current(column) for each in self._recent for column in each.columns)
        columns = list({id(column): column for column in (*plan.columns, *found)}.values())
        everything, effort = self.master.everything(), self._clock.master(TOGETHER_S)
        answer = workers.solve_one(self.master.integer_job(everything, columns, effort, plan))
        chosen = self.master.chosen(everything, columns, answer, None)
        if chosen is not None and self.mending.offer(chosen):
            self._state.tell("neighbourhood", f"{counted(len(self._recent), 'neighbourhood')} together")
        self.mending.decide_supply(workers)

    def improve_or_find(self, workers: Workers) -> None:
        """Improve the plan, or look for one where there is none."""
        if self._state.incumbent.values is None:
            self.try_again(workers)
        else:
            self.improve(workers)

    def improve_to_the_end(self, workers: Workers) -> None:
        """Improve the plan, or look for one, by neighbourhoods and constructions alone."""
        while self._direct is not None and not self._state.finished() and not self._state.hopeless(0):
            self.improve_or_find(workers)

    def improve_while_it_pays(self, workers: Workers, raised: float, round_s: float) -> None:
        """Improve the plan while that closes more of the gap in its time than the bound of the last round.

        Parameters
        ----------
        workers : Workers
            Who does it.
        raised : float
            What the round raised the bound by. [objective units]
        round_s : float
            Time of the round, and the most for this. [s]
        """
        round_rate = gain_rate(raised, round_s)
        until = self._clock.spent_s() + round_s
        while self._direct is not None and self._state.incumbent.values is not None:
            began, before = self._clock.spent_s(), self.open_cost()
            if self._direct_rate.per_s <= round_rate or began >= until or self._state.finished():
                return
            self.improve(workers)
            self._direct_rate.note(before - self.open_cost(), self._clock.spent_s() - began)
