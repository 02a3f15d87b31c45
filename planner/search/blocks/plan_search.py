"""The plans of a search over blocks: the first one constructed, then repaired and improved part by part."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from fleetplan.fleet.figures import counted
from fleetplan.planner.search.blocks.columns import ColumnPool
from fleetplan.planner.search.blocks.construction import (
    RootRelaxation,
    Structure,
    construction_job,
    root_at,
    root_of,
    slots_used,
)
from fleetplan.planner.search.blocks.direct_neighbourhoods import DirectNeighbourhoods
from fleetplan.planner.search.blocks.effort import Clock, GainRate, gain_rate
from fleetplan.planner.search.blocks.master import Master, Selection
from fleetplan.planner.search.blocks.mending import Mending
from fleetplan.planner.search.blocks.split import Split
from fleetplan.planner.search.blocks.state import SearchState
from fleetplan.planner.search.solvers.highs_jobs import Answer, AnyJob, CompositeJob
from fleetplan.planner.search.solvers.matrix import BoolArray, FloatArray, IntArray
from fleetplan.planner.search.solvers.workers import UNKNOWN, Workers

REPAIR_SHARE_OF_TIME: Final = 0.15
"""Share of the time for repairing a plan that violates limits, after each round while there is no other."""

RECENT: Final = 10
"""So many of the last changes that neighbourhoods found are put together."""

TOGETHER_S: Final = 1.0
"""Most time for that. Most take 0.03 to 0.3 s for a company of twelve services. [s]"""

PROMISING_SHARE_OF_TIME: Final = 0.15
"""Share of the time for improving a plan with better supply until it is the best."""

SideJob = tuple[AnyJob, Callable[[Answer], None]]
"""A job that runs beside others, and what is called with its answer."""


class PlanSearch:
    """Finds plans and improves them.

    Parameters
    ----------
    parts, structure : Split, Structure
        The program, in blocks and as it is relaxed.
    master, pool : Master, ColumnPool
        Selections of columns, and the columns that are known.
    state : SearchState
        Keeps the best plan.
    clock : Clock
        Says how long.
    seed : int
        Of the neighbourhoods.

    Attributes
    ----------
    master, pool : Master, ColumnPool
        As they are given.
    mending : Mending
        Receives plans.
    root : RootRelaxation or None
        The last linear relaxation that was solved, by which constructions and neighbourhoods go.
    """

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
        self._parts = parts
        self._structure = structure
        self.master = master
        self.pool = pool
        self.mending = Mending(master, pool, state, clock)
        self._state = state
        self._clock = clock
        self._seed = seed
        self.root: RootRelaxation | None = None
        self._direct: DirectNeighbourhoods | None = None
        self._direct_rate = GainRate()
        self._attempts = 0
        # The best plan that still violates limits, in scaled values.
        self._draft: FloatArray | None = None
        # A plan that is not the best, with supply that promises more, and until when it is improved. [s]
        self._promising: FloatArray | None = None
        self._promising_until_s = 0.0
        # What neighbourhoods found lately.
        self._recent: deque[Selection] = deque(maxlen=RECENT)

    def note_root(self, answer: Answer, structure: Structure | None = None) -> RootRelaxation | None:
        """Let a relaxation root constructions and neighbourhoods.

        Parameters
        ----------
        answer : Answer
            To the linear relaxation.
        structure : Structure, optional
            The program that it relaxes, where that has cuts; plans are looked for in it from now on.

        Returns
        -------
        RootRelaxation or None
            None where the answer has no optimum.
        """
        structure = structure or self._structure
        root = root_of(structure, answer)
        if root is not None:
            self._structure, self.root = structure, root
            self._direct = DirectNeighbourhoods(structure, root, self._seed, self._direct)
        return root

    @property
    def slot(self) -> IntArray:
        """By variable: number of its slot; -1 for none."""
        return self._structure.roles.slot

    def slots_near(self, values: FloatArray) -> BoolArray:
        """Which slots some scaled values or the best plan use."""
        best = self._scaled()
        used = slots_used(self._structure, values)
        return used if best is None else used | slots_used(self._structure, best)

    @property
    def even_share(self) -> float:
        """What a block would cost in the root relaxation if all did the same. [objective units]

        That is what it spends, without what comes back by sales: the sum of both may be near zero. Infinite
        where there is no relaxation.
        """
        if self.root is None:
            return math.inf
        spent = float(np.abs(self._structure.cost) @ np.abs(self.root.values))
        return spent / len(self._parts.blocks)

    def selection_of(self, values: IntArray) -> Selection:
        """A plan as columns, which are remembered."""
        return self._selection(values / self._structure.relaxation.variable_scale)

    def _selection(self, scaled: FloatArray) -> Selection:
        """Scaled values of all variables as columns, which are remembered."""
        columns = [
            self.pool.known(block, scaled[each.variables]) for block, each in enumerate(self._parts.blocks)
        ]
        return self.master.selection(columns, scaled[self._parts.master_variables])

    def offer(self, scaled: FloatArray) -> bool:
        """Keep a plan if it is exact and the best; its columns are remembered.

        While there is no plan, what is not exact is kept to be repaired.
        """
        return self._offer(self._selection(scaled), scaled)

    def _offer(self, selection: Selection, scaled: FloatArray) -> bool:
        """The same with its columns."""
        if self.master.holds(selection) and self.mending.offer(selection):
            return True
        incumbent = self._state.incumbent
        if incumbent.objective is None and self._direct is not None:
            draft = scaled.copy()
            for column, values in incumbent.mended(selection):
                self.pool.replace(column, values)
                draft[self._parts.blocks[column.block].variables] = values
            known = math.inf if self._draft is None else self._direct.objective(self._draft)
            if self._direct.objective(draft) < known:
                self._draft = draft
        return False

    def construction_side_jobs(self) -> list[SideJob]:
        """The construction of a first plan, once, unless there is a plan that is not far from its bound."""
        return [] if self._attempts or self._near() else self._constructions()

    def _near(self) -> bool:
        """Whether there is a plan that is not far from its bound."""
        return self._state.incumbent.objective is not None and not self._state.far()

    def _constructions(self) -> list[SideJob]:
        """Constructions with integer supply first and with supply as needed; among more slots each time."""
        linear = self.root
        if linear is None:
            return []
        self._attempts += 1

        def on_answer(answer: Answer) -> None:
            if answer is UNKNOWN:
                return
            if answer.values is None:
                self._state.tell("construction", "no plan moment by moment")
            elif self.offer(answer.values):
                self._state.tell("construction", "moment by moment, the hardest of a period first")
            elif self._state.incumbent.objective is None:
                self._state.tell("construction", "moment by moment, a plan that violates limits")

        jobs = [
            construction_job(self._structure, linear, self._clock, self._attempts, integer_supply)
            for integer_supply in (True, False)
        ]
        return [(job, on_answer) for job in jobs]

    def construction_at(self, values: FloatArray) -> CompositeJob | None:
        """The construction of a plan by some values, supply whole among them; None without a relaxation."""
        if self.root is None:
            return None
        root = root_at(self._structure, self.root, values)
        return construction_job(self._structure, root, self._clock, 1, integer_supply=False)

    def _solve_together(
        self,
        jobs: Sequence[SideJob],
        workers: Workers,
        enough: Callable[[], bool] = lambda: False,
    ) -> None:
        """Solve jobs side by side; answers are handed on in their order where runs must repeat."""
        together = [job for job, _ in jobs]
        if self._clock.deterministic:
            for (_, on_answer), answer in zip(jobs, workers.solve(together), strict=True):
                on_answer(answer)
            return
        batch = workers.give(
            together,
            self._state.expired,
            lambda number, answer: jobs[number][1](answer),
        )
        workers.wait(batch, enough)

    def construct(self, workers: Workers) -> None:
        """Construct a plan by the last relaxation, unless there is one that is not far from its bound.

        What else is being constructed once there is a better plan is handed on later, where runs need not
        repeat.
        """
        self._attempts, before = 0, self._state.incumbent.objective
        jobs = self.construction_side_jobs()
        self._solve_together(jobs, workers, lambda: self._state.incumbent.objective != before)

    def construct_in_background(self, workers: Workers) -> None:
        """Begin one construction by the last relaxation; its plan is handed on whenever it is known."""
        self._attempts = 0
        self._solve_together(self.construction_side_jobs()[:1], workers, lambda: True)

    def try_again(self, workers: Workers) -> None:
        """Look for a first plan without columns: repair one that violates limits, or construct another."""
        if self._draft is None:
            self._solve_together(self._constructions(), workers)
        self.repair(workers)

    def repair(self, workers: Workers) -> None:
        """Bring a plan that violates limits within them: its cost and their price fall step by step."""
        direct, until = self._direct, self._clock.spent_s() + REPAIR_SHARE_OF_TIME * self._clock.limit_s
        while direct is not None and self._draft is not None and self._state.incumbent.objective is None:
            if self._state.finished() or self._clock.spent_s() > until:
                return
            self._mend(workers, direct, self._draft)

    def _mend(self, workers: Workers, direct: DirectNeighbourhoods, now: FloatArray) -> None:
        """Bring a draft closer to its limits by some neighbourhoods, and keep it once it is a plan."""
        self._draft = now = _improved(direct, workers, self._clock, now)
        if direct.holds(now) and self.offer(now):
            self._state.tell("construction", "repaired by neighbourhoods")

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
        now = _improved(direct, workers, self._clock, now)
        if self.offer(now):
            self._state.tell("neighbourhood", "plan for better supply improved")
            self._promising = None
        else:
            self._promising = now if self._clock.spent_s() < self._promising_until_s else None

    def _scaled(self) -> FloatArray | None:
        """Scaled values of the best plan."""
        values = self._state.incumbent.values
        return None if values is None else values / self._structure.relaxation.variable_scale

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

    def open_cost(self) -> float:
        """What plan and bound differ by. [objective units]"""
        return float(self._state.incumbent.objective or math.inf) - self._state.bound

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


def _improved(direct: DirectNeighbourhoods, workers: Workers, clock: Clock, values: FloatArray) -> FloatArray:
    """Values after some neighbourhoods, each of which makes them better; the price of limits counts."""
    for change in direct.improve(workers, clock, values):
        changed = values.copy()
        changed[change.variables] = change.values
        if direct.objective(changed) < direct.objective(values):
            values = changed
    return values
