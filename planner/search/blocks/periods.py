r"""What is worth buying over all periods, and what runs in each of them there.

A block is what one service does in one moment; hosts that blocks share are priced, and at a price a mixture
of columns runs. In fleets of few services that mixture keeps the Lagrangian bound from the best plan. Here
one program decides all supply whole while a part of a replica may run, with cuts that say what blocks cost
at least in whole replicas (block_cuts.py). What runs on the best supply is then decided period by period.
Where cuts say no more, periods are decided whole in that program, one after the other.

Rows that only say which configurations run, and rows of loads alone that do not bind in the relaxation, are
left out of it. Its bound holds without them, and HiGHS proves more in the same time: 90.1 instead of 81.8
thousand USD of 95.9 for the first quarter of a team's year in 8 s without the former, and without shares of
pools too 95.6 in 3.7 s.
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
"""Uses of a configuration in a pool and moment that a period may have: HiGHS takes longer for more than a
round may. A team has 260 to 380 a quarter. With percentiles, three times the variables each, it has 410 to
850, and bounds 2.6 to 8 % above those of pricing after 60 s. In a team's year of four slices, 1,036, the
bound is 1.4 % higher so and the plan 4 % dearer. Companies have 1,350 and more."""

NEXT_TO_NOTHING: Final = 2e-3
"""Share of all cost below which changes from period to period are left out when supply is decided. Their rows
are a third of a team's, and HiGHS takes 18 and 28 instead of 30 and 46 s of a core for seeds 2 and 5 without
them; the bound is 0.1 % lower."""

SLACK: Final = 1e-6
"""How far a row is from its limits that does not bind. [scaled units]"""

MOST_CUTS: Final = 400
"""Cuts of blocks from which those that bind nowhere are dropped. Each has hundreds of entries: so many add
half as many as a team's program has."""

NEARLY_BINDS: Final = 1e-3
"""A cut binds where it is kept by a smaller share of its limit: HiGHS rounds what it decides whole."""


def small_periods(roles: VariableRoles) -> bool:
    """Whether there are several periods, each small enough to be decided whole."""
    moment = np.where(roles.moment != NONE, roles.moment, roles.home)
    count = 1 + int(roles.period_of[moment[moment != NONE]].max(initial=NONE))
    if count <= 1:
        return False
    placed, n_slots = (roles.slot != NONE) & (roles.moment != NONE), int(roles.slot.max()) + 1
    used = np.unique(roles.moment[placed] * n_slots + roles.slot[placed])
    return int(np.bincount(roles.period_of[used // n_slots], minlength=count).max()) <= MOST_SLOTS


class Periods:
    """The programs of all periods.

    Parameters
    ----------
    structure : Structure
        The whole program.
    indicators : Collection[int]
        Variables that only say which configurations run.
    root : RootRelaxation
        An optimum of the linear relaxation.

    Attributes
    ----------
    relaxation : Relaxation
        The whole program.
    period, of_row : IntArray
        Period of every variable and row, `SHARED`, or of rows that hold variables of several `JOINING`.
    count : int
        Periods.
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
        """Rows that the bound keeps."""
        program = self.relaxation
        used = program.rows @ values
        binds = np.minimum(program.row_upper - used, used - program.row_lower) <= SLACK
        of_whole = _holds(program.rows, np.flatnonzero(program.whole))
        kept: BoolArray = (of_whole | binds) & ~_holds(
            program.rows, np.array(sorted(indicators), dtype=np.int64)
        )
        return kept

    def _cheap_following(self, values: FloatArray) -> BoolArray:
        """Rows of what only follows other variables, where that costs next to nothing."""
        following = np.flatnonzero(self._following)
        spent = float(self._cost[following] @ values[following])
        if spent > NEXT_TO_NOTHING * float(np.abs(self._cost) @ values):
            return np.zeros(len(self.of_row), dtype=bool)
        return _holds(self.relaxation.rows, following)

    def _only_in_use(self) -> BoolArray:
        """Rows by which loads alone need a pool that is in use: what these loads run on needs it as well."""
        rows = self.relaxation.rows
        use = (self._service == NONE) & (self._growth == 0) & self.relaxation.whole
        others = self.relaxation.whole & ~use
        return _holds(rows, np.flatnonzero(use)) & ~_holds(rows, np.flatnonzero(others))

    def add(self, cuts: Cuts) -> None:
        """Add cuts to all programs that decide supply."""
        self._cuts = self._cuts.and_more([cuts])

    def keep_binding(self, points: Sequence[FloatArray]) -> None:
        """Where there are many cuts, drop those that bind at none of some points: scaled values."""
        if self._cuts.count > MOST_CUTS:
            self._cuts = self._cuts.first_and_binding(0, points, NEARLY_BINDS)

    def _with_cuts(self) -> Relaxation:
        """The relaxation of the whole with all cuts."""
        return self.relaxation.with_cuts(self._cuts.rows, self._cuts.least)

    def supply_program(self, whole: Collection[int] = ()) -> Substitution:
        """The same with supply whole, and whether pools are in use.

        Parameters
        ----------
        whole : Collection[int]
            Periods in which all replicas are whole as well.
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
        """Period of the block of every cut: where replicas are whole, cuts say nothing new, and take time."""
        return self.period[self._cuts.rows.indices[self._cuts.rows.indptr[:-1]]]

    def held_job(self, values: FloatArray) -> Job:
        """The linear relaxation of the whole with all cuts, where supply is that of some values.

        Parameters
        ----------
        values : FloatArray
            Scaled values of all variables; those that `supply_program` decides whole are looked at.
        """
        held = self.relaxation.whole & self._of_no_service
        lower, upper = self.relaxation.lower.copy(), self.relaxation.upper.copy()
        lower[held] = upper[held] = np.round(values[held])
        given = replace(self.relaxation.without_limits_on(self._indicators), lower=lower, upper=upper)
        return whole_job(given.with_cuts(self._cuts.rows, self._cuts.least), self._cost)

    def linear_job_at(self, supply: FloatArray) -> Job:
        """The linear relaxation of the whole where what stands in several periods is given.

        Parameters
        ----------
        supply : FloatArray
            Scaled values of all variables; those of shared supply are looked at.
        """
        relaxed = self.relaxation
        lower, upper = relaxed.lower.copy(), relaxed.upper.copy()
        lower[self._shared] = upper[self._shared] = np.round(supply[self._shared])
        given = replace(relaxed, lower=lower, upper=upper)
        return whole_job(given.without_limits_on(self._indicators), self._cost)

    def supply_key(self, values: FloatArray) -> tuple[int, ...]:
        """What stands in several periods, in whole numbers."""
        return tuple(np.round(values[self._shared]).astype(int).tolist())

    def plan_jobs(
        self,
        supply: FloatArray,
        effort: Effort,
        more: Collection[int] = (),
        opened: BoolArray | None = None,
        starts: Sequence[FloatArray | None] | None = None,
    ) -> list[Job]:
        """What runs in each period with some supply.

        Parameters
        ----------
        supply : FloatArray
            Scaled values of all variables; those of shared supply are looked at.
        effort : Effort
            Of each job.
        more : Collection[int]
            Periods in which there may be more of it.
        opened : BoolArray, optional
            Which slots are looked at, by slot; all where nothing is said.
        starts : sequence of FloatArray or None, optional
            By period: what each job begins with, values of its own variables.
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
            start = None if starts is None else starts[period]
            program, cost = program.within(lower, upper), self._cost[variables]
            found.append(Job(program, cost, effort, start, length=float(len(variables))))
        return found

    def _variables_of(self, period: int) -> IntArray:
        """Variables of the job of a period: its own, then supply that several periods share."""
        return np.concatenate([np.flatnonzero(self.period == period), self._shared])

    def merged(self, answers: Sequence[Answer]) -> FloatArray | None:
        """The plan of all periods, with as much supply as any of them wants; None where one has none."""
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
        """What only follows the other variables of a plan, at least cost; None where nothing does."""
        variables = np.flatnonzero(self._following)
        if not len(variables):
            return None
        return Job(self._parts.part(variables, values).program, self._cost[variables], None)

    def completed(self, values: FloatArray, answer: Answer) -> FloatArray | None:
        """A plan with `following_job`'s answer; None where it has none."""
        if answer.values is None:
            return None
        found = values.copy()
        found[self._following] = answer.values
        return found


def _holds(rows: sp.csr_array, variables: IntArray) -> BoolArray:
    """Which rows hold any of some variables."""
    found = np.zeros(rows.shape[0], dtype=bool)
    found[rows.tocsc()[:, variables].indices] = True
    return found
