r"""Supply program over all periods, and the program of each period at a given supply.

A block is one service in one moment. Blocks share hosts; at a price of hosts, the master LP mixes columns,
and in fleets of few services this mixture separates the Lagrangian bound from the best plan. Here, one
program chooses all supply in whole units while replicas may be fractional, with cuts on the cost of blocks in
whole replicas (block_cuts.py). Replicas for the best supply are then chosen period by period. Once cuts gain
little, replicas become whole in that program too, one period after the other.

The program leaves out rows about which configurations run, and rows of loads alone that do not bind in the
relaxation. Its bound is valid without them, and HiGHS proves more in the same time: for the first quarter of
a team's year, 90.1 instead of 81.8 of 95.9 thousand USD in 8 s without the former, and 95.6 in 3.7 s without
shares of pools too.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Final

import numpy as np
import scipy.sparse as sp

from fleetplan.planner.search.blocks.construction import RootRelaxation, Structure
from fleetplan.planner.search.blocks.cover_cuts import Cuts
from fleetplan.planner.search.blocks.linear import whole_job
from fleetplan.planner.search.blocks.period_numbers import SHARED, periods_of
from fleetplan.planner.search.blocks.roles import NONE, VariableRoles
from fleetplan.planner.search.blocks.subprograms import Parts
from fleetplan.planner.search.solvers.highs_jobs import Answer, Effort, Job
from fleetplan.planner.search.solvers.matrix import BoolArray, FloatArray, IntArray
from fleetplan.planner.search.solvers.relaxation import Relaxation
from fleetplan.planner.search.solvers.substitution import Substitution, substitute

MOST_SLOTS: Final = 900
"""Largest number of slots times moments per period: HiGHS takes longer for more than a round allows. Teams
have 260 to 380 per quarter; 410 to 850 with percentiles, where the bounds after 60 s are 2.6 to 8 % above
those of pricing. With 1,036, in a team's year of four slices, the bound is 1.4 % higher but the plan 4 % more
expensive. Companies have 1,350 and more."""

NEXT_TO_NOTHING: Final = 2e-3
"""Largest cost share of changes between periods that the supply program ignores. Their rows are a third of a
team's; without them, HiGHS takes 18 and 28 instead of 30 and 46 s of a core, and the bound is 0.1 % lower."""

SLACK: Final = 1e-6
"""Distance from its limits beyond which a row does not bind. [scaled units]"""

MOST_CUTS: Final = 400
"""Number of block cuts above which those that bind nowhere are dropped. Each has hundreds of entries: this
number adds half the entries of a team's program."""

NEARLY_BINDS: Final = 1e-3
"""A cut binds if its slack is a smaller share of its limit: HiGHS rounds integer variables."""


def small_periods(roles: VariableRoles) -> bool:
    """Return whether there are several periods, each small enough to solve as a whole."""
    moment = np.where(roles.moment != NONE, roles.moment, roles.home)
    count = 1 + int(roles.period_of[moment[moment != NONE]].max(initial=NONE))
    if count <= 1:
        return False
    placed, n_slots = (roles.slot != NONE) & (roles.moment != NONE), int(roles.slot.max()) + 1
    used = np.unique(roles.moment[placed] * n_slots + roles.slot[placed])
    return int(np.bincount(roles.period_of[used // n_slots], minlength=count).max()) <= MOST_SLOTS


class Periods:
    """Programs of all periods.

    Parameters
    ----------
    structure : Structure
        Whole program.
    indicators : Collection[int]
        Variables that only indicate which configurations run.
    root : RootRelaxation
        Optimum of the linear relaxation.

    Attributes
    ----------
    relaxation : Relaxation
        Whole program.
    period, of_row : IntArray
        Period of every variable and row, or `SHARED`; `JOINING` for rows with variables of several periods.
    count : int
        Number of periods.
    """

    def __init__(self, structure: Structure, indicators: Collection[int], root: RootRelaxation) -> None:
        self._cost = structure.cost
        self.relaxation = structure.relaxation
        self._program = structure.program
        self._following = structure.following
        self._growth = structure.roles.growth
        self._service = structure.roles.service
        self._slot = structure.roles.slot
        self._parts = Parts(self._program)
        rows = self.relaxation.rows
        self.period, self.of_row = periods_of(structure.roles, rows)
        self._indicators = indicators
        self._of_no_service = (self.period == SHARED) | (self._service == NONE)
        self._indicating = np.isin(np.arange(len(self._cost)), list(indicators))
        self._shared = np.flatnonzero(self.period == SHARED)
        self.count = int(self.period.max(initial=SHARED)) + 1
        self._bounding = self._rows_of_bound(indicators, root.values)
        self._deciding_supply = self._bounding & ~self._cheap_following(root.values) & ~self._only_in_use()
        self._cuts = Cuts(sp.csr_array((0, len(self._cost))), np.zeros(0))

    def _rows_of_bound(self, indicators: Collection[int], values: FloatArray) -> BoolArray:
        """Return the rows that the bound keeps."""
        program = self.relaxation
        used = program.rows @ values
        binds = np.minimum(program.row_upper - used, used - program.row_lower) <= SLACK
        of_whole = _holds(program.rows, np.flatnonzero(program.whole))
        kept: BoolArray = (of_whole | binds) & ~_holds(
            program.rows, np.array(sorted(indicators), dtype=np.int64)
        )
        return kept

    def _cheap_following(self, values: FloatArray) -> BoolArray:
        """Return the rows of following variables if these cost next to nothing."""
        following = np.flatnonzero(self._following)
        spent = float(self._cost[following] @ values[following])
        if spent > NEXT_TO_NOTHING * float(np.abs(self._cost) @ values):
            return np.zeros(len(self.of_row), dtype=bool)
        return _holds(self.relaxation.rows, following)

    def _only_in_use(self) -> BoolArray:
        """Return rows by which loads alone require a pool in use; their replicas require it too."""
        rows = self.relaxation.rows
        use = (self._service == NONE) & (self._growth == 0) & self.relaxation.whole
        others = self.relaxation.whole & ~use
        return _holds(rows, np.flatnonzero(use)) & ~_holds(rows, np.flatnonzero(others))

    def add(self, cuts: Cuts) -> None:
        """Add cuts to the supply program."""
        self._cuts = self._cuts.and_more([cuts])

    def keep_binding(self, points: Sequence[FloatArray]) -> None:
        """If there are many cuts, drop those that bind at none of these points (scaled values)."""
        if self._cuts.count > MOST_CUTS:
            self._cuts = self._cuts.first_and_binding(0, points, NEARLY_BINDS)

    def _with_cuts(self) -> Relaxation:
        """Return the relaxation of the whole program with all cuts."""
        return self.relaxation.with_cuts(self._cuts.rows, self._cuts.least)

    def supply_program(self, whole: Collection[int] = ()) -> Substitution:
        """Return the relaxation with whole supply and whole indicators of pools in use.

        Parameters
        ----------
        whole : Collection[int]
            Periods whose replicas are whole too.
        """
        program = self._with_cuts().program
        cuts = ~np.isin(self._period_of_cuts(), list(whole))
        kept = np.flatnonzero(np.concatenate([self._deciding_supply, cuts]))
        decided = np.isin(self.period, list(whole)) & ~self._following & ~self._indicating
        few = replace(
            program,
            rows=program.rows[kept],
            row_lower=program.row_lower[kept],
            row_upper=program.row_upper[kept],
            whole=program.whole & (self._of_no_service | decided),
        )
        return substitute(few, self._cost)

    def _period_of_cuts(self) -> IntArray:
        """Return the period of each cut's block: with whole replicas, cuts add nothing and take time."""
        return self.period[self._cuts.rows.indices[self._cuts.rows.indptr[:-1]]]

    def held_job(self, values: FloatArray) -> Job:
        """Return the linear relaxation of the whole program with all cuts, with supply fixed.

        Parameters
        ----------
        values : FloatArray
            Scaled values of all variables; used for those that `supply_program` makes whole.
        """
        held = self.relaxation.whole & self._of_no_service
        lower, upper = self.relaxation.lower.copy(), self.relaxation.upper.copy()
        lower[held] = upper[held] = np.round(values[held])
        given = replace(self.relaxation.without_limits_on(self._indicators), lower=lower, upper=upper)
        return whole_job(given.with_cuts(self._cuts.rows, self._cuts.least), self._cost)

    def linear_job_at(self, supply: FloatArray) -> Job:
        """Return the linear relaxation of the whole program with shared supply fixed.

        Parameters
        ----------
        supply : FloatArray
            Scaled values of all variables; used for shared supply.
        """
        relaxed = self.relaxation
        lower, upper = relaxed.lower.copy(), relaxed.upper.copy()
        lower[self._shared] = upper[self._shared] = np.round(supply[self._shared])
        given = replace(relaxed, lower=lower, upper=upper)
        return whole_job(given.without_limits_on(self._indicators), self._cost)

    def supply_key(self, values: FloatArray) -> tuple[int, ...]:
        """Return the shared supply in whole numbers."""
        return tuple(np.round(values[self._shared]).astype(int).tolist())

    def plan_jobs(
        self,
        supply: FloatArray,
        effort: Effort,
        more: Collection[int] = (),
        opened: BoolArray | None = None,
    ) -> list[Job]:
        """Return the program of each period at a given supply.

        Parameters
        ----------
        supply : FloatArray
            Scaled values of all variables; used for shared supply.
        effort : Effort
            Effort of each job.
        more : Collection[int]
            Periods that may add supply.
        opened : BoolArray, optional
            Slots to open; all if missing.
        """
        found = []
        for period in range(self.count):
            variables = self._variables_of(period)
            kept = (self.of_row == period) | (self.of_row == SHARED)
            program = self._parts.part(variables, np.zeros(len(supply)), kept).program
            growth, shared = self._growth[variables], self.period[variables] == SHARED
            known = np.clip(np.round(supply[variables]), program.lower, program.upper)
            decided = shared & (growth != 0)
            held = period not in more
            lower = np.where(decided & ((growth > 0) | held), known, program.lower)
            upper = np.where(decided & ((growth < 0) | held), known, program.upper)
            if opened is not None:
                slot = self._slot[variables]
                closed = (slot != NONE) & ~opened[slot]
                upper[closed] = np.maximum(lower[closed], 0.0)
            program, cost = program.within(lower, upper), self._cost[variables]
            found.append(Job(program, cost, effort, length=float(len(variables))))
        return found

    def _variables_of(self, period: int) -> IntArray:
        """Return the variables of a period's job: its own, then shared supply."""
        return np.concatenate([np.flatnonzero(self.period == period), self._shared])

    def merged(self, answers: Sequence[Answer]) -> FloatArray | None:
        """Merge the periods' plans, with the largest supply that any wants; None if a period has none."""
        values = np.zeros(len(self._cost))
        less = self._growth[self._shared] < 0
        wanted = []
        for period, answer in enumerate(answers):
            if answer.values is None:
                return None
            own = np.flatnonzero(self.period == period)
            values[own] = answer.values[: len(own)]
            wanted.append(answer.values[len(own) :])
        values[self._shared] = np.where(less, np.min(wanted, axis=0), np.max(wanted, axis=0))
        return values

    def following_job(self, values: FloatArray) -> Job | None:
        """Return the LP of a plan's following variables; None if there are none."""
        variables = np.flatnonzero(self._following)
        if not len(variables):
            return None
        return Job(self._parts.part(variables, values).program, self._cost[variables], None)

    def completed(self, values: FloatArray, answer: Answer) -> FloatArray | None:
        """Complete a plan with the answer to `following_job`; None if it has no values."""
        if answer.values is None:
            return None
        found = values.copy()
        found[self._following] = answer.values
        return found


def _holds(rows: sp.csr_array, variables: IntArray) -> BoolArray:
    """Return which rows contain any of these variables."""
    found = np.zeros(rows.shape[0], dtype=bool)
    found[rows.tocsc()[:, variables].indices] = True
    return found
