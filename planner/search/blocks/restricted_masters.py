"""Restricted masters over all blocks: the master LP sets dual prices, integer masters give plans."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from fleetplan.fleet.figures import counted
from fleetplan.planner.search.blocks.area_master_lp import AreaMasterLP
from fleetplan.planner.search.blocks.area_scopes import AreaScopes
from fleetplan.planner.search.blocks.column_limit import ColumnLimit
from fleetplan.planner.search.blocks.columns import Column, ColumnPool
from fleetplan.planner.search.blocks.effort import Clock
from fleetplan.planner.search.blocks.first_plans import SideJob
from fleetplan.planner.search.blocks.master import Master, PriceRange, Scope
from fleetplan.planner.search.blocks.plan_repair import PlanRepair
from fleetplan.planner.search.blocks.pricing import PartFailedError, Prices
from fleetplan.planner.search.blocks.state import SearchState
from fleetplan.planner.search.solvers.highs_jobs import Answer, Job
from fleetplan.planner.search.solvers.matrix import FloatArray, IntArray
from fleetplan.planner.search.solvers.workers import Workers

MASTER_S_A_BLOCK: Final = 0.015
"""Time limit of an integer master, per block. [s]"""

LEAST_MASTER_S: Final = 2.0
"""Least time limit of an integer master. [s]"""

FIRST_MASTER_S: Final = 1.5
"""Time limit of an integer master for the first plan. [s]"""

FIRST_MASTERS: Final = 2
"""Integer masters per round without a plan: the second uses the repaired columns of the first."""

MASTERS_AT_ONCE: Final = 2
"""Integer masters in parallel when nothing else runs."""

LEAST_SHARE: Final = 1e-6
"""Value in the master LP above which a column counts as used."""

VIOLATION_TOLERANCE: Final = 1e-6
"""Largest total violation of scaled limits in the master LP that counts as none."""


@dataclass(frozen=True, slots=True, eq=False)
class MasterJob:
    """Integer master with its columns.

    Attributes
    ----------
    job : Job
        Program to solve.
    part : MasterPart
        Part of the whole that it decides.
    scope : Scope
        Scope of that part, with its limits.
    columns : list[Column]
        Columns of its blocks.
    extra : int
        Number of columns beyond those of the master LP, of the plan, and the cheapest of each block.
    """

    job: Job
    part: MasterPart
    scope: Scope
    columns: list[Column]
    extra: int


class MasterPart:
    """Part that one integer master decides: everything, or an area.

    Parameters
    ----------
    blocks : IntArray
        Its blocks.

    Attributes
    ----------
    blocks
        As given.
    seconds : float
        Time limit of its masters. [s]
    limit : ColumnLimit
        Adaptive limit of columns.
    """

    def __init__(self, blocks: IntArray) -> None:
        self.blocks = blocks
        self.seconds = max(LEAST_MASTER_S, MASTER_S_A_BLOCK * len(blocks))
        self.limit = ColumnLimit(len(blocks))


class RestrictedMasters:
    """Solver of restricted masters over the columns of all blocks.

    Parameters
    ----------
    master, pool : Master, ColumnPool
        Restricted master, and the known columns.
    mending : PlanRepair
        Receives the plans.
    state : SearchState
        Holds the best plan.
    clock : Clock
        Time limits.
    areas : AreaScopes or None
        Areas, which get separate masters once there is a plan.

    Attributes
    ----------
    lp_supply : FloatArray
        Scaled values of the master's variables in the last master LP; zero before the first.
    violated : bool
        Whether that LP violates limits.
    pending : FloatArray or None
        Best prices of the last round, until an integer master uses its columns.
    """

    def __init__(
        self,
        master: Master,
        pool: ColumnPool,
        plan_repair: PlanRepair,
        state: SearchState,
        clock: Clock,
        areas: AreaScopes | None,
    ) -> None:
        n_linking = len(master.row_lower)
        self._master = master
        self._pool = pool
        self._mending = plan_repair
        self._state = state
        self._clock = clock
        self._n_linking = n_linking
        self._whole = MasterPart(master.everything().blocks)
        self._areas = areas
        self._area_lp = None if areas is None else AreaMasterLP(areas)
        self._parts = [] if areas is None else [MasterPart(each) for each in areas.blocks]
        self._lp_columns: list[Column] = []
        self._lp_duals: FloatArray = np.zeros(n_linking)
        self.lp_supply: FloatArray = np.zeros(len(master.cost))
        self.violated = True
        self.pending: FloatArray | None = None

    def solve_lp(self, workers: Workers, columns: list[Column], penalty: float) -> FloatArray:
        """Solve the master LP with prices up to a penalty, and note the columns it uses.

        Returns
        -------
        FloatArray
            Its prices of the linking rows.
        """
        n_linking = self._n_linking
        anywhere = PriceRange.of_penalty(penalty, n_linking)
        _, duals, values = self._linear(workers, columns, anywhere, self._lp_duals)
        self.lp_supply = values[len(columns) : -2 * n_linking]
        self._lp_duals = duals
        self._lp_columns = [columns[i] for i in np.flatnonzero(values[: len(columns)] > LEAST_SHARE)]
        self.violated = float(values[-2 * n_linking :].sum()) > VIOLATION_TOLERANCE
        return duals

    def solve_lp_near_best(
        self, workers: Workers, prices: Prices, columns: list[Column], penalty: float
    ) -> float:
        """Set the next prices from a master LP with prices near the best; return its objective."""
        anywhere = self.solve_lp(workers, columns, penalty)
        near = prices.near(anywhere) & PriceRange.of_penalty(penalty, self._n_linking)
        objective, duals, _ = self._linear(workers, columns, near, anywhere)
        prices.follow(objective, duals)
        return objective

    def _linear(
        self, workers: Workers, columns: list[Column], prices: PriceRange, first: FloatArray
    ) -> tuple[float, FloatArray, FloatArray]:
        """Return the objective, linking-row prices and values of the master LP; by areas if possible."""
        job, answer = self._master.linear_job(self._master.everything(), columns, prices), None
        if self._area_lp is not None:
            answer = self._area_lp.solve(workers, job, columns, prices, first)
        if answer is None:
            answer = workers.solve_one(job)
        if answer.row_duals is None or answer.values is None:
            raise PartFailedError(f"HiGHS did not solve the master LP: {answer.status}")
        return answer.objective, answer.row_duals[: self._n_linking], answer.values

    def choose_first(self, workers: Workers, prices: FloatArray) -> None:
        """Search a first plan by integer masters, again if columns had to be repaired."""
        for _ in range(FIRST_MASTERS):
            if self._state.incumbent.objective is None:
                self.choose(workers, prices, FIRST_MASTER_S)

    def choose_pending(self, workers: Workers) -> None:
        """Run integer masters over the latest columns, unless that was done."""
        prices, self.pending = self.pending, None
        if prices is not None:
            self.choose(workers, prices)

    def take_pending(self) -> list[MasterJob]:
        """Return integer masters over the latest columns, unless there were any."""
        prices, self.pending = self.pending, None
        return [] if prices is None else self.jobs(prices)

    def jobs(
        self, prices: FloatArray, seconds: float = math.inf, ranks: Sequence[int] = (0,)
    ) -> list[MasterJob]:
        """Return integer masters over the columns of the master LP and of the plan, and some more.

        Parameters
        ----------
        prices : FloatArray
            Prices of the linking rows at which the cheapest column of each block is added.
        seconds : float
            Time limit of each. [s]
        ranks : Sequence[int]
            Ranks of simultaneous masters of the whole: each has more columns than the one before. While the
            plan is far from its bound, the first has no extra columns. Masters of areas have the most.
        """
        selection, everything = self._state.incumbent.selection, self._master.everything()
        if self._areas is None or selection is None:
            return [self._job(self._whole, everything, prices, seconds, rank) for rank in ranks]
        scopes = self._areas.within(selection, self.lp_supply)
        return [
            self._job(part, scope, prices, seconds, MASTERS_AT_ONCE - 1)
            for part, scope in zip(self._parts, scopes, strict=True)
        ]

    def _job(
        self, part: MasterPart, scope: Scope, prices: FloatArray, seconds: float, rank: int
    ) -> MasterJob:
        """Return an integer master over one part."""
        state, selection, blocks = self._state, self._state.incumbent.selection, part.blocks.tolist()
        mixed = map(self._pool.current, self._lp_columns)
        always = (*mixed, *(() if selection is None else selection.columns))
        columns = self._pool.promising(blocks, prices, 1, always)
        known = len(columns)
        share = rank if state.far() else (rank + 1) / MASTERS_AT_ONCE
        if share:
            extra = int(share * part.limit.extra)
            columns = self._pool.by_reduced_cost(blocks, self._lp_duals, extra, columns)
        effort = self._clock.master(min(seconds, part.seconds), state.overtime_s())
        job = self._master.integer_job(scope, columns, effort, selection)
        # Masters of the whole start first.
        length = math.inf if part is self._whole else float(len(columns))
        return MasterJob(replace(job, length=length), part, scope, columns, len(columns) - known)

    def choose(self, workers: Workers, prices: FloatArray, seconds: float = math.inf) -> None:
        """Run integer masters now over the columns for these prices, each core with a different number."""
        # Reproducible runs solve both on one core, one after the other.
        both = workers.count > 1 or self._clock.deterministic
        masters = self.jobs(prices, seconds, range(MASTERS_AT_ONCE) if both else (0,))
        answers = workers.solve([each.job for each in masters])
        self.learn(answers, masters)
        self.offer(answers, masters)
        self._mending.decide_supply(workers)

    def offer(self, answers: Sequence[Answer], masters: Sequence[MasterJob]) -> None:
        """Keep the answers of integer masters if better: the best of the whole, or all areas together."""
        if masters[0].part is not self._whole:
            self._offer_areas(answers, masters)
            return
        for answer, master in zip(answers, masters, strict=True):
            selection = self._master.chosen(master.scope, master.columns, answer, None)
            if selection is not None and self._mending.offer(selection):
                self._state.tell(
                    "master", f"solved an integer master over {counted(len(master.columns), 'column')}"
                )

    def _offer_areas(self, answers: Sequence[Answer], masters: Sequence[MasterJob]) -> None:
        """Keep the answers of area masters, except where a changed plan makes them violate limits."""
        now, changed = self._state.incumbent.selection, 0
        for answer, master in zip(answers, masters, strict=True):
            better = self._master.chosen(master.scope, master.columns, answer, now)
            if better is None or now is None or better.cost >= now.cost or not self._master.holds(better):
                continue
            now, changed = better, changed + 1
        if now is not None and changed and self._mending.offer(now):
            self._state.tell("master", f"solved integer masters of {counted(changed, 'area')}")

    def side_jobs(self, masters: Sequence[MasterJob]) -> list[SideJob]:
        """Return masters as side jobs, with a callback that uses their answers once all have arrived."""
        answers: dict[int, Answer] = {}

        def listener(number: int) -> Callable[[Answer], None]:
            def on_answer(answer: Answer) -> None:
                answers[number] = answer
                if len(answers) == len(masters):
                    ordered = [answers[each] for each in range(len(masters))]
                    self.learn(ordered, masters)
                    self.offer(ordered, masters)

            return on_answer

        return [(each.job, listener(number)) for number, each in enumerate(masters)]

    def learn(self, answers: Sequence[Answer], masters: Sequence[MasterJob]) -> None:
        """Update the column limits from simultaneous masters of each part, widest last."""
        of_part: dict[int, list[tuple[Answer, MasterJob]]] = {}
        for answer, master in zip(answers, masters, strict=True):
            of_part.setdefault(id(master.part), []).append((answer, master))
        for together in of_part.values():
            widest = together[-1][1]
            start = math.inf if widest.job.start is None else float(widest.job.cost @ widest.job.start)
            widest.part.limit.learn(widest.extra, start, [answer for answer, _ in together])
