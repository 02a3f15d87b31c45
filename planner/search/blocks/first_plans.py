"""First plans of a search over blocks: constructed from a relaxation, repaired while they violate limits."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from fleetplan.fleet.figures import counted
from fleetplan.planner.search.blocks.areas import areas_of, programs_of
from fleetplan.planner.search.blocks.columns import ColumnPool
from fleetplan.planner.search.blocks.construction import (
    BESIDE_SUPPLY_SHARE_OF_TIME,
    TRAVELLING_SHARE_OF_TIME,
    RootRelaxation,
    Structure,
    construction_job,
    root_at,
    root_of,
    slots_used,
)
from fleetplan.planner.search.blocks.direct_neighbourhoods import DirectNeighbourhoods
from fleetplan.planner.search.blocks.effort import Clock
from fleetplan.planner.search.blocks.master import Master, Selection
from fleetplan.planner.search.blocks.plan_repair import PlanRepair
from fleetplan.planner.search.blocks.split import Split
from fleetplan.planner.search.blocks.state import SearchState
from fleetplan.planner.search.solvers.highs_jobs import Answer, AnyJob, CompositeJob
from fleetplan.planner.search.solvers.matrix import BoolArray, FloatArray, IntArray
from fleetplan.planner.search.solvers.workers import UNKNOWN, Workers

REPAIR_SHARE_OF_TIME: Final = 0.15
"""Share of the time to repair a plan that violates limits, after each round without a plan."""

SideJob = tuple[AnyJob, Callable[[Answer], None]]
"""Job that runs in parallel to others, and the function called with its answer."""


class FirstPlans:
    """Finds first plans, and stores plans as columns.

    Parameters
    ----------
    parts, structure : Split, Structure
        Program in blocks, and as a relaxation.
    master, pool : Master, ColumnPool
        Restricted master, and the known columns.
    state : SearchState
        Holds the best plan.
    clock : Clock
        Time limits.
    seed : int
        Random seed of the neighbourhoods.

    Attributes
    ----------
    master, pool : Master, ColumnPool
        As given.
    mending : PlanRepair
        Receives plans.
    root : RootRelaxation or None
        Latest solved relaxation, which guides constructions and neighbourhoods.
    areas : tuple[Area, ...]
        Areas that are relaxed and planned separately; none where they are few.
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
        self.plan_repair = PlanRepair(master, pool, state, clock)
        self._state = state
        self._clock = clock
        self._seed = seed
        self.root: RootRelaxation | None = None
        self.areas = areas_of(structure)
        self._direct: DirectNeighbourhoods | None = None
        self._attempts = 0
        # Best plan that still violates limits, in scaled values.
        self._draft: FloatArray | None = None

    def note_root(self, answer: Answer, structure: Structure | None = None) -> RootRelaxation | None:
        """Make a relaxation the root of constructions and neighbourhoods.

        Parameters
        ----------
        answer : Answer
            Answer to the linear relaxation.
        structure : Structure, optional
            Program that it relaxes, if it has cuts; later plans are searched in it.

        Returns
        -------
        RootRelaxation or None
            None if the answer has no optimum.
        """
        structure = structure or self._structure
        root = root_of(structure, answer)
        if root is not None:
            self._structure, self.root = structure, root
            self._direct = DirectNeighbourhoods(structure, root, self._seed, self._direct)
        return root

    @property
    def slot(self) -> IntArray:
        """Return the slot number by variable; -1 for none."""
        return self._structure.roles.slot

    def slots_near(self, values: FloatArray) -> BoolArray:
        """Return a mask of the slots that these scaled values or the best plan use."""
        best = self._scaled()
        used = slots_used(self._structure, values)
        return used if best is None else used | slots_used(self._structure, best)

    @property
    def even_share(self) -> float:
        """Return the cost of a block in the root relaxation if all cost the same. [objective units]

        It is the gross spending, because sales may bring the sum near zero. Infinite without a relaxation.
        """
        if self.root is None:
            return math.inf
        spent = float(np.abs(self._structure.cost) @ np.abs(self.root.values))
        return spent / len(self._parts.blocks)

    def selection_of(self, values: IntArray) -> Selection:
        """Return a plan as columns, adding them to the pool."""
        return self._selection(values / self._structure.relaxation.variable_scale)

    def _selection(self, scaled: FloatArray) -> Selection:
        """Return scaled values of all variables as columns, adding them to the pool."""
        columns = [
            self.pool.known(block, scaled[each.variables]) for block, each in enumerate(self._parts.blocks)
        ]
        return self.master.selection(columns, scaled[self._parts.master_variables])

    def offer(self, scaled: FloatArray) -> bool:
        """Keep a plan if it is exact and the best, and add its columns to the pool.

        Without any plan, the best inexact one is kept for repair.
        """
        return self._offer(self._selection(scaled), scaled)

    def _offer(self, selection: Selection, scaled: FloatArray) -> bool:
        """Keep a plan given with its columns."""
        if self.master.holds(selection) and self.plan_repair.offer(selection):
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
        """Return the jobs of one first construction; none if a plan near its bound exists."""
        return [] if self._attempts or self._near() else self._constructions()

    def _near(self) -> bool:
        """Return whether a plan near its bound exists."""
        return self._state.incumbent.objective is not None and not self._state.far()

    def _constructions(self, travelling_share: float = TRAVELLING_SHARE_OF_TIME) -> list[SideJob]:
        """Return constructions among few slots, which are quick, and among many; each time among more."""
        linear = self.root
        if linear is None:
            return []
        self._attempts += 1
        if self.areas:
            return self._of_areas(linear)

        def on_answer(answer: Answer) -> None:
            if answer is UNKNOWN:
                return
            if answer.values is None:
                self._state.tell("construction", "found no plan moment by moment")
            elif self.offer(answer.values):
                self._state.tell("construction", "built a plan moment by moment")
            elif self._state.incumbent.objective is None:
                self._state.tell("construction", "built a plan that violates limits")

        jobs = [
            construction_job(
                self._structure,
                linear,
                self._clock,
                self._attempts,
                wide,
                travelling_share=travelling_share,
            )
            for wide in (False, True)
        ]
        return [(job, on_answer) for job in jobs]

    def _of_areas(self, linear: RootRelaxation) -> list[SideJob]:
        """Return the constructions of all areas, whose plans add up to one."""
        values, programs = linear.values.copy(), programs_of(self._structure, self.areas, linear)
        left = set(range(len(programs)))

        def listener(number: int) -> Callable[[Answer], None]:
            def on_answer(answer: Answer) -> None:
                if answer.values is None:
                    return
                values[programs[number].area.variables] = answer.values
                left.discard(number)
                if not left and self.offer(values):
                    self._state.tell("construction", f"built a plan from {counted(len(programs), 'area')}")

            return on_answer

        clock, attempt, parts = self._clock, self._attempts, len(programs)
        return [
            (
                construction_job(each.structure, each.root, clock, attempt, wide=False, parts=parts),
                listener(number),
            )
            for number, each in enumerate(programs)
        ]

    def construction_at(self, values: FloatArray) -> CompositeJob | None:
        """Return the construction of a plan that follows these values; None without a relaxation."""
        if self.root is None:
            return None
        root = root_at(self._structure, self.root, values)
        return construction_job(self._structure, root, self._clock, 1, wide=False)

    def _solve_together(
        self,
        jobs: Sequence[SideJob],
        workers: Workers,
        enough: Callable[[], bool] = lambda: False,
    ) -> None:
        """Solve jobs in parallel; in reproducible runs, pass on the answers in order."""
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
        """Construct a plan from the latest relaxation, unless a plan near its bound exists.

        Constructions still running when a better plan arrives, or one to repair, report later, if runs need
        not be reproducible.
        """
        self._attempts, before = 0, self._state.incumbent.objective
        jobs = self.construction_side_jobs()
        self._solve_together(
            jobs, workers, lambda: self._state.incumbent.objective != before or self._draft is not None
        )
        self.repair(workers)

    def construct_in_background(self, workers: Workers) -> None:
        """Start a construction from the latest relaxation, which reports its plan when done."""
        self._attempts = 0
        jobs = [] if self._near() else self._constructions(BESIDE_SUPPLY_SHARE_OF_TIME)
        self._solve_together(jobs if self.areas else jobs[-1:], workers, lambda: True)

    def try_again(self, workers: Workers) -> None:
        """Search a first plan without columns: repair one that violates limits, or construct another."""
        if self._draft is None:
            self._solve_together(self._constructions(), workers)
        self.repair(workers)

    def repair(self, workers: Workers) -> None:
        """Repair a plan that violates limits: reduce its cost and penalties step by step."""
        direct, until = self._direct, self._clock.spent_s() + REPAIR_SHARE_OF_TIME * self._clock.limit_s
        while direct is not None and self._draft is not None and self._state.incumbent.objective is None:
            if self._state.finished() or self._clock.spent_s() > until:
                return
            self._mend(workers, direct, self._draft)

    def _mend(self, workers: Workers, direct: DirectNeighbourhoods, now: FloatArray) -> None:
        """Move a draft towards its limits by neighbourhoods, and keep it once it satisfies them."""
        self._draft = now = improved(direct, workers, self._clock, now)
        if direct.holds(now) and self.offer(now):
            self._state.tell("construction", "repaired a plan by neighbourhoods")

    def _scaled(self) -> FloatArray | None:
        """Return the scaled values of the best plan."""
        values = self._state.incumbent.values
        return None if values is None else values / self._structure.relaxation.variable_scale

    def open_cost(self) -> float:
        """Return the difference of plan and bound. [objective units]"""
        return float(self._state.incumbent.objective or math.inf) - self._state.bound


def improved(direct: DirectNeighbourhoods, workers: Workers, clock: Clock, values: FloatArray) -> FloatArray:
    """Apply the improvements of several neighbourhoods in turn, as far as cost and penalties fall."""
    for change in direct.improve(workers, clock, values):
        changed = values.copy()
        changed[change.variables] = change.values
        if direct.objective(changed) < direct.objective(values):
            values = changed
    return values
