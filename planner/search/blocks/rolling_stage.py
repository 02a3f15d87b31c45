"""State of a rolling construction, and the solve of its next stage."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import TYPE_CHECKING, Final

import numpy as np

from fleetplan.planner.search.blocks.rolling_supply import TOLERANCE, first_supply, horizon_cost
from fleetplan.planner.search.blocks.subprograms import FEW_STAGES, Parts, spans, with_slack
from fleetplan.planner.search.solvers.highs_jobs import (
    Answer,
    Array,
    Effort,
    Indices,
    Job,
    Mask,
    Rows,
    Solver,
)

if TYPE_CHECKING:
    from fleetplan.planner.search.blocks.composite_jobs import RollingJob

LEAST_STAGE_S: Final = 1.0
"""Least time of one attempt at a stage, past the limit too: a plan is worth it. [s]"""

ROUGH_PLANS: Final = 2
"""Improving plans of all regions of a moment before each region is improved alone."""

FINISH_S: Final = 2.0
"""Time to decide supply and loads again once everything else is fixed. [s]"""


@dataclass(frozen=True, slots=True)
class StageAttempt:
    """Settings of one attempt at a stage.

    Attributes
    ----------
    width : float
        Largest rank of the open slots.
    elastic : bool
        Whether linking rows may be violated at a price.
    first : bool
        Whether to ignore the undecided rest of the moment.
    roughly : bool
        Whether any plan suffices.
    """

    width: float = 0.0
    elastic: bool = False
    first: bool = False
    roughly: bool = False


class StageResult(Enum):
    """Outcome of an attempt: a decision, none in time, or a proof of infeasibility."""

    PLAN = auto()
    NOTHING = auto()
    IMPOSSIBLE = auto()


class StageDecisions:
    """Decisions of a rolling construction so far.

    Parameters
    ----------
    job : RollingJob
        Program and its stages.
    solver : Solver
        Solves integer programs.

    Attributes
    ----------
    values : Array
        Values of all variables; those of the root until decided.
    known : Mask
        Which variables are decided.
    """

    def __init__(self, job: RollingJob, solver: Solver) -> None:
        self._job = job
        self._solver = solver
        self._parts = Parts(job.program)
        stage = np.full(len(job.cost), -1, dtype=np.int64)
        for number, variables in enumerate(job.stages):
            stage[variables] = number
        self._stage = stage
        self._spans = spans(job.program, stage)
        self.known = stage < 0
        self._supply = np.flatnonzero(job.growth)
        # Violation of each row's limits by earlier stages, which later ones need not undo.
        self._below, self._above = np.zeros((2, len(job.program.row_lower)))
        self._rank = job.rank
        self._now: Indices = np.zeros(0, dtype=np.int64)
        # Supply when the moment began; the moment may add to it.
        self._floor: Array = np.zeros(len(self._supply))
        self._later: Mask = np.zeros(len(self._supply), dtype=bool)
        # Costs that a stage sees, with a look ahead.
        self._cost = job.cost
        self.values = job.root.copy()
        across = self.known & job.program.whole
        whole = np.round(job.root)
        whole[self._supply] = first_supply(job, self._parts, self._solved, LEAST_STAGE_S)
        self.values[across] = whole[across]

    def begin(self, variables: Indices, periods_left: Collection[int]) -> None:
        """Begin a moment.

        Parameters
        ----------
        variables : Indices
            Variables of the moment.
        periods_left : Collection[int]
            Periods with an undecided moment, including this one's.
        """
        job = self._job
        self._now = variables
        self._floor = self.values[self._supply]
        self._cost = horizon_cost(job, periods_left)
        # Supply kept longer than in the relaxation must leave later, after the decided moments.
        decided = (self.known & (self._stage >= 0)) | (self._stage == self._stage[variables[0]])
        apart = self._parts.apart(self._supply, np.flatnonzero(decided))
        self._later = (job.growth[self._supply] < 0) & apart

    def decide(
        self, variables: Indices, attempt: StageAttempt, seconds: float, decided: Indices | None = None
    ) -> StageResult:
        """Decide one stage.

        Parameters
        ----------
        variables : Indices
            Free variables, in addition to supply.
        attempt : StageAttempt
            Settings of the attempt.
        seconds : float
            Time limit. [s]
        decided : Indices, optional
            Variables to decide for good, while other replicas may be fractional; all if missing.
        """
        job = self._job
        free = np.concatenate([variables, self._supply])
        undecided = ~self.known
        # The undecided rest of this moment keeps its earlier values.
        undecided[self._now] = False
        postponed_rows = self._parts.rows_of(np.flatnonzero(undecided)) & (self._spans <= FEW_STAGES)
        kept_values = self.values
        if attempt.first:
            kept_values = kept_values.copy()
            kept_values[self._now[~self.known[self._now]]] = 0.0
        part = self._parts.part(free, kept_values, ~postponed_rows)
        lower, upper = part.program.lower.copy(), part.program.upper.copy()
        slot = job.slot[free]
        closed = (slot >= 0) & (self._rank[slot] > attempt.width) & (lower <= 0)
        upper[closed] = 0.0
        growth, is_later = job.growth[free], np.zeros(len(free), dtype=bool)
        is_later[len(variables) :] = self._later
        current = np.clip(np.concatenate([self.values[variables], self._floor]), lower, upper)
        lower[growth > 0] = current[growth > 0]
        # Rounded up, more might leave than exists.
        lower[is_later] = np.minimum(current, np.floor(job.root[free] + TOLERANCE))[is_later]
        may_only_shrink = (growth < 0) & ~is_later
        upper[may_only_shrink] = current[may_only_shrink]
        stage_program = replace(
            part.program.within(lower, upper),
            row_lower=part.program.row_lower - self._below[part.rows],
            row_upper=part.program.row_upper + self._above[part.rows],
        )
        # Leaving later counts as a cost although it saves money: the needs of that time are unknown.
        cost = np.where(is_later, np.abs(job.cost[free]), self._cost[free])
        if decided is not None:
            shared = (growth != 0) | (job.service[free] < 0)
            stage_program = replace(
                stage_program, whole=stage_program.whole & (shared | np.isin(free, decided))
            )
        if attempt.elastic:
            stage_program, cost = with_slack(
                stage_program, cost, job.linking[part.rows], job.penalty[part.rows]
            )
        was_decided = self.known[variables].all() and not attempt.elastic
        start = self.values[free] if was_decided else None
        answer = self._solved(stage_program, cost, seconds, start, ROUGH_PLANS if attempt.roughly else None)
        if answer.values is None:
            return StageResult.IMPOSSIBLE if answer.infeasible else StageResult.NOTHING
        self.values[free] = answer.values[: len(free)]
        self.known[variables if decided is None else decided] = True
        if attempt.elastic:
            used = part.program.rows @ self.values[free]
            self._below[part.rows] = np.maximum(part.program.row_lower - used, 0)
            self._above[part.rows] = np.maximum(used - part.program.row_upper, 0)
        return StageResult.PLAN

    def _solved(
        self,
        program: Rows,
        cost: Array,
        seconds: float,
        start: Array | None = None,
        improvements: int | None = None,
    ) -> Answer:
        effort = self._job.effort
        timed = effort.time_limit_s is not None
        limits = Effort(
            max(seconds, LEAST_STAGE_S) if timed else None,
            effort.node_limit,
            effort.gap_ratio,
            gap=effort.gap,
            rounds=True,
            improvements=improvements,
            firm=True,
        )
        return self._solver(Job(program, cost, limits, start))

    def cost_of(self, variables: Indices) -> float:
        """Return the cost of these variables and of supply, with a look ahead. [objective units]"""
        free = np.concatenate([variables, self._supply])
        return float(self._cost[free] @ self.values[free])

    def note_slots(self, variables: Indices) -> None:
        """Treat the slots that a decided moment uses as the relaxation's."""
        slot = self._job.slot[variables]
        used = slot[(slot >= 0) & (self.values[variables] > TOLERANCE)]
        self._rank = np.where(np.isin(np.arange(len(self._rank)), used), 0.0, self._rank)

    def round_up(self, variables: Indices) -> None:
        """Take the root's values, rounded up, for variables that ran out of time; later steps repair them."""
        whole, upper = self._job.program.whole[variables], self._job.program.upper[variables]
        root = self._job.root[variables]
        up = np.minimum(np.ceil(root - TOLERANCE), upper)
        self.values[variables] = np.where(whole, up, root)
        self.known[variables] = True

    def finish(self) -> None:
        """Decide supply and continuous variables again, with replicas fixed."""
        job = self._job
        free = np.flatnonzero(~job.program.whole | (job.growth != 0))
        part = self._parts.part(free, self.values)
        violation = self._violation(part.rows)
        # Rows within their limits stay strict: a violation must not save more than its penalty.
        elastic = job.linking[part.rows] & (violation > 0)
        own, cost = with_slack(part.program, job.cost[free], elastic, job.penalty[part.rows])
        answer = self._solved(own, cost, FINISH_S)
        held = float(job.cost[free] @ self.values[free]) + violation
        if answer.values is not None and answer.objective <= held:
            self.values[free] = answer.values[: len(free)]

    def _violation(self, rows: Indices) -> float:
        """Return the penalty of the limits that the values violate. [objective units]"""
        program = self._job.program
        used = program.rows[rows] @ self.values
        beyond = np.maximum(used - program.row_upper[rows], program.row_lower[rows] - used)
        return float(self._job.penalty[rows] @ np.where(beyond > TOLERANCE, beyond, 0.0))
