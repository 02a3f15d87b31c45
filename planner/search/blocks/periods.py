r"""Every period decided whole: a bound that prices neither hosts nor replicas, and the plans it leads to.

A block is what one service does in one moment; hosts that blocks share are priced, and at a price a mixture
of columns runs. In fleets of few services that mixture keeps the Lagrangian bound from the best plan. Here
one integer program decides everything in a period, with a copy of the supply that several periods share. With
cost c, variables x_t of period t, shared variables s, prices y of the rows A with limits b that join periods
(changes from one to the next), and shares l_t of the cost of s that add up to c_s - A_s' y, no plan costs
less than::

    y b + sum_t bound_t
    bound_t <= min (c_t - A_t' y) x_t + l_t s   over the rows of t and those of s alone

whatever y and the shares are. Each bound is a cut as well, `(c_t - A_t' y) x_t + l_t s >= bound_t`: the
linear relaxation with all cuts is a bound that is no lower, and its prices are the next ones. With whole
supply it says what is worth buying; what runs there is then decided period by period. Periods that have no
plan there are decided whole in that program as well, where all others remain in parts: 76 thousand USD more
for the first quarter of team 5, of 104 thousand between the best supply and a plan, and all of that gap but
0.5 % for team 4.

Rows that only say which configurations run, and rows of loads alone that do not bind in the relaxation, are
left out of the bound. It holds without them, and HiGHS proves more in the same time: 90.1 instead of 81.8
thousand USD of 95.9 for the first quarter of a team's year in 8 s without the former, and without shares of
pools too 95.6 in 3.7 s.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import scipy.sparse as sp

from fleetplan.planner.search.blocks.construction import RootRelaxation, Structure
from fleetplan.planner.search.blocks.linear import whole_job
from fleetplan.planner.search.blocks.period_numbers import JOINING, SHARED, periods_of
from fleetplan.planner.search.blocks.roles import NONE
from fleetplan.planner.search.blocks.subprograms import Parts
from fleetplan.planner.search.solvers.highs_jobs import Answer, Effort, Job
from fleetplan.planner.search.solvers.matrix import BoolArray, FloatArray, IntArray
from fleetplan.planner.search.solvers.relaxation import BOUND_SAFETY, Relaxation
from fleetplan.planner.search.solvers.substitution import Substitution, substitute

MOST_VARIABLES: Final = 1500
"""Variables of a period that one integer program may decide: more take HiGHS longer than a round may."""

NEXT_TO_NOTHING: Final = 2e-3
"""Share of all cost below which changes from period to period are left out when supply is decided. Their rows
are a third of a team's, and HiGHS takes 18 and 28 instead of 30 and 46 s of a core for seeds 2 and 5 without
them; the bound is 0.1 % lower."""

SLACK: Final = 1e-6
"""How far a row is from its limits that does not bind. [scaled units]"""


@dataclass(frozen=True, slots=True, eq=False)
class _PeriodCut:
    """`coefficients @ x >= least` over all variables, of one period."""

    period: int
    coefficients: FloatArray
    least: float


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
    wanted_supplies : list[FloatArray]
        What the last programs of the periods would have stand in several, the last period's first; scaled
        values of all variables, those of others are 0.
    """

    def __init__(self, structure: Structure, indicators: Collection[int], root: RootRelaxation) -> None:
        self._cost = structure.cost
        self.relaxation = structure.relaxation
        self._program = structure.program
        self._following = structure.following
        self._growth = structure.roles.growth
        self._service = structure.roles.service
        self._parts = Parts(self._program)
        rows = self.relaxation.rows
        self.period, self.of_row = periods_of(structure.roles, rows)
        self._indicators = indicators
        self._indicating = np.isin(np.arange(len(self._cost)), list(indicators))
        self._shared = np.flatnonzero(self.period == SHARED)
        self._joining = np.flatnonzero(self.of_row == JOINING)
        self.count = int(self.period.max(initial=SHARED)) + 1
        self._bounding = self._rows_of_bound(indicators, root.values)
        self._deciding_supply = self._bounding & ~self._cheap_following(root.values) & ~self._only_in_use()
        self._duals = root.duals
        self._cuts: list[_PeriodCut] = []
        self.wanted_supplies: list[FloatArray] = []

    @property
    def worthwhile(self) -> bool:
        """Whether there are several periods, each small enough to be decided whole."""
        if self.count <= 1:
            return False
        decided = (self.period != SHARED) & ~self._following
        return int(np.bincount(self.period[decided], minlength=self.count).max()) <= MOST_VARIABLES

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

    def jobs(self, effort: Effort) -> list[Job]:
        """The program of every period at the last prices."""
        joining = self.relaxation.rows[self._joining]
        prices = self._duals[self._joining]
        cost = self._cost - joining.T @ prices
        found = []
        for period, share in enumerate(self._shares(cost)):
            variables = np.concatenate([np.flatnonzero(self.period == period), self._shared])
            kept = self._bounding & ((self.of_row == period) | (self.of_row == SHARED))
            program = self._parts.part(variables, np.zeros(len(cost)), kept).program
            own = np.concatenate([cost[self.period == period], share])
            found.append(Job(program, own, effort, length=float(len(variables))))
        return found

    def _shares(self, cost: FloatArray) -> list[FloatArray]:
        """What each period pays for what is shared: what its rows and cuts say, and an even rest."""
        rows, own = self.relaxation.rows, self._duals[: len(self.of_row)]
        shares = []
        for period in range(self.count):
            mine = np.flatnonzero(self.of_row == period)
            worth = (rows[mine].T @ own[mine])[self._shared]
            for cut, price in zip(self._cuts, self._duals[len(own) :], strict=True):
                if cut.period == period:
                    worth = worth + price * cut.coefficients[self._shared]
            shares.append(worth)
        rest = (cost[self._shared] - sum(shares)) / self.count
        return [share + rest for share in shares]

    def learn(self, jobs: Sequence[Job], answers: Sequence[Answer]) -> None:
        """Note what the programs of all periods prove.

        Parameters
        ----------
        jobs : Sequence[Job]
            Of `jobs`.
        answers : Sequence[Answer]
            To them.
        """
        self.wanted_supplies = []
        for period, (job, answer) in enumerate(zip(jobs, answers, strict=True)):
            if answer.values is not None:
                wish = np.zeros(len(self._cost))
                wish[self._shared] = answer.values[len(answer.values) - len(self._shared) :]
                self.wanted_supplies.insert(0, wish)
            if not np.isfinite(answer.bound):
                continue
            variables = np.concatenate([np.flatnonzero(self.period == period), self._shared])
            size = float(np.abs(job.cost).max(initial=1.0))
            coefficients = np.zeros(len(self._cost))
            coefficients[variables] = job.cost / size
            least = (answer.bound - BOUND_SAFETY * abs(answer.bound)) / size
            self._cuts.append(_PeriodCut(period, coefficients, least))
        # New cuts have no price yet.
        unpriced = len(self.of_row) + len(self._cuts) - len(self._duals)
        self._duals = np.concatenate([self._duals, np.zeros(unpriced)])

    def _with_cuts(self) -> Relaxation:
        """The relaxation of the whole with all cuts."""
        coefficients = np.array([cut.coefficients for cut in self._cuts])
        cuts = sp.csr_array(coefficients.reshape(len(self._cuts), len(self._cost)))
        return self.relaxation.with_cuts(cuts, np.array([cut.least for cut in self._cuts]))

    def linear_job(self) -> Job:
        """The linear relaxation of the whole with all cuts."""
        return whole_job(self._with_cuts(), self._cost)

    def follow(self, answer: Answer) -> float:
        """Take the next prices from `linear_job`'s answer; the bound that they prove. [objective units]"""
        if answer.row_duals is None:
            return -np.inf
        self._duals = answer.row_duals
        bound = self._with_cuts().bound(self._cost, answer.row_duals)
        return bound - BOUND_SAFETY * abs(bound)

    def supply_program(self, whole: Collection[int] = ()) -> Substitution:
        """The same with what stands in several periods whole, and whether pools are in use.

        Parameters
        ----------
        whole : Collection[int]
            Periods in which all replicas are whole as well.
        """
        program = self._with_cuts().program
        kept = np.flatnonzero(np.concatenate([self._deciding_supply, np.ones(len(self._cuts), dtype=bool)]))
        of_all = (self.period == SHARED) | ((self._service == NONE) & (self._growth == 0))
        decided = np.isin(self.period, list(whole)) & ~self._following & ~self._indicating
        few = replace(
            program,
            rows=program.rows[kept],
            row_lower=program.row_lower[kept],
            row_upper=program.row_upper[kept],
            whole=program.whole & (of_all | decided),
        )
        return substitute(few, self._cost)

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

    def plan_jobs(self, supply: FloatArray, effort: Effort, more: bool = False) -> list[Job]:
        """What runs in each period with some supply.

        Parameters
        ----------
        supply : FloatArray
            Scaled values of all variables; those of shared supply are looked at.
        effort : Effort
            Of each job.
        more : bool
            Whether there may be more of it.
        """
        found = []
        for period in range(self.count):
            variables = np.concatenate([np.flatnonzero(self.period == period), self._shared])
            kept = (self.of_row == period) | (self.of_row == SHARED)
            program = self._parts.part(variables, np.zeros(len(supply)), kept).program
            growth, shared = self._growth[variables], self.period[variables] == SHARED
            known = np.clip(np.round(supply[variables]), program.lower, program.upper)
            decided = shared & (growth != 0)
            lower = np.where(decided & ((growth > 0) | (not more)), known, program.lower)
            upper = np.where(decided & ((growth < 0) | (not more)), known, program.upper)
            job = Job(
                program.within(lower, upper), self._cost[variables], effort, length=float(len(variables))
            )
            found.append(job)
        return found

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

    def losses(self, supply: FloatArray, answers: Sequence[Answer]) -> list[float]:
        """What each period costs with whole replicas beyond its cost with parts; infinite without a plan.

        Parameters
        ----------
        supply : FloatArray
            Scaled values of all variables, of replicas in parts.
        answers : Sequence[Answer]
            To `plan_jobs` at this supply.
        """
        found = []
        for period, answer in enumerate(answers):
            own = np.flatnonzero(self.period == period)
            whole = math.inf if answer.values is None else float(self._cost[own] @ answer.values[: len(own)])
            found.append(whole - float(self._cost[own] @ supply[own]))
        return found

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
