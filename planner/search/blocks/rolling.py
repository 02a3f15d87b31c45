"""Rolling-horizon construction of a first plan: moment by moment, the hardest of each period first.

Runs in the worker process, beside other jobs. Each stage decides what runs in one region and moment and how
much supply grows for it; what the other regions do counts as the relaxation has it until they are decided.
Where that is impossible the regions of a moment are decided together, and each once more. Earlier stages are
held. Rows that join a moment to its neighbours wait until both are decided. Rows that sum over many moments
count the linear relaxation's values for those that are left. Supply only grows, so earlier decisions stay
possible. A stage looks at the slots that the relaxation uses, and at more where these are not enough; where
several moments share the supply of a period and time runs short, at those of earlier moments as well. As a
last resort it violates limits at a price, for later steps to mend.
So a company's year in three slices (12 moments) takes 23 and 26 s instead of 52 and 58, and costs 38.1
instead of 39.0 and 41.4 M USD. Fleet12, which has time, would cost 31.9 instead of 31.8. One region and
moment of a company (12 services) is optimal after 0.03 to 0.6 s, all its regions not after 8.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, replace
from enum import Enum, auto
from typing import TYPE_CHECKING, Final

import numpy as np

from fleetplan.planner.search.blocks.rolling_supply import TOLERANCE, first_supply, root_of_whole_supply
from fleetplan.planner.search.blocks.subprograms import FEW_STAGES, Parts, in_order, spans, with_slack
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
"""Time of one attempt at a stage at the least, past the limit too: a plan is worth it. [s]"""

LEAST_ROUGH_S: Final = 5.0
"""Least time for a plan of all regions of a moment: a company's has one after 1 to 2 s of a core. A stage
that may violate limits has as much: what nobody decides took neighbourhoods 100 s to mend. [s]"""

ROUGH_SHARE: Final = 0.36
"""Most of that, over the time of the construction: a team of 30 s has 4.5 s for all its moments."""

ROUGH_PLANS: Final = 2
"""Plans of all regions of a moment, each better than the one before, after which each region is improved."""

GROUPS_GROWTH, MOST_GROUPS = 2, 6
"""Factor of the groups of services that a moment is decided in once one was too hard, and their most."""

STRICT_SHARE: Final = 0.5
"""Part of a stage's time to keep all limits. Where that is impossible, most stages say so at once."""

STAGE_SHARE: Final = 1.5
"""Part of an even share of the time left that a stage may take: most take far less."""

SUPPLY_SHARE: Final = 0.4
"""Share of the time for deciding integer supply first, where that is asked for."""

FINISH_S: Final = 2.0
"""Time to decide supply and loads anew once everything else is decided. [s]"""


def construct(job: RollingJob, solver: Solver) -> Answer:
    """Construct a plan.

    Parameters
    ----------
    job : RollingJob
        The program and its stages.
    solver : Solver
        Solves an integer program.

    Returns
    -------
    Answer
        The values may pass linking rows, and rows of stages that nobody decided in time.
    """
    return _Construction(job, solver).run()


@dataclass(frozen=True, slots=True)
class _Attempt:
    """One way to decide a stage: slots up to a rank, with limits that hold or give, or by any plan at all.

    Who comes first leaves the rest of its moment what it does not take.
    """

    width: float = 0.0
    elastic: bool = False
    first: bool = False
    roughly: bool = False


class _Found(Enum):
    """What an attempt found: a decision, none in its time, or that there is none."""

    PLAN = auto()
    NOTHING = auto()
    IMPOSSIBLE = auto()


class _Construction:
    """One construction: what is decided so far."""

    def __init__(self, job: RollingJob, solver: Solver) -> None:
        self._job = job
        self._solver = solver
        self._parts = Parts(job.program)
        self._limit_s = job.effort.time_limit_s or np.inf
        self._ends = time.monotonic() + self._limit_s
        self._rough_s = min(LEAST_ROUGH_S, ROUGH_SHARE * self._limit_s)
        stage = np.full(len(job.cost), -1, dtype=np.int64)
        for number, variables in enumerate(job.stages):
            stage[variables] = number
        self._stage = stage
        self._spans = spans(job.program, stage)
        self._known = stage < 0
        self._supply = np.flatnonzero(job.growth)
        # By how much earlier stages have violated the limits of each row: later ones need not make up for it.
        self._below, self._above = np.zeros((2, len(job.program.row_lower)))
        self._root, self._rank = job.root, job.rank
        self._groups = 1
        self._now: Indices = np.zeros(0, dtype=np.int64)
        # Supply when the moment began, which it may add to.
        self._floor: Array = np.zeros(len(self._supply))
        self._later: Mask = np.zeros(len(self._supply), dtype=bool)
        if job.supply.any():
            ends = time.monotonic() + SUPPLY_SHARE * (job.effort.time_limit_s or 0.0)
            self._root, self._rank = root_of_whole_supply(job, self._solved, ends)
        self._values = self._root.copy()
        across = self._known & job.program.whole
        whole = np.round(self._root)
        whole[self._supply] = first_supply(job, self._parts, self._root, self._solved, LEAST_STAGE_S)
        self._values[across] = whole[across]

    def run(self) -> Answer:
        """Decide all stages, then supply and loads once more."""
        for left, variables in zip(range(len(self._job.stages), 0, -1), self._job.stages, strict=True):
            self._moment(variables, left)
            if self._job.follow_slots and self._is_late(left - 1):
                self._note_slots(variables)
        self._finish()
        objective = float(self._job.cost @ self._values)
        return Answer(self._values, objective, -np.inf)

    def _is_late(self, moments_left: int) -> bool:
        """Whether less than an even share of the time is left for each moment."""
        return self._ends - time.monotonic() < self._limit_s * moments_left / len(self._job.stages)

    def _note_slots(self, variables: Indices) -> None:
        """Count the slots that a decided moment uses as the relaxation's."""
        slot = self._job.slot[variables]
        used = slot[(slot >= 0) & (self._values[variables] > TOLERANCE)]
        self._rank = np.where(np.isin(np.arange(len(self._rank)), used), 0.0, self._rank)

    def _round_up(self, variables: Indices) -> None:
        """Take the root's values, rounded up: what nobody decided in time is for others to mend."""
        whole, upper = self._job.program.whole[variables], self._job.program.upper[variables]
        up = np.minimum(np.ceil(self._root[variables] - TOLERANCE), upper)
        self._values[variables] = np.where(whole, up, self._root[variables])
        self._known[variables] = True

    def _moment(self, variables: Indices, moments_left: int) -> None:
        """Decide one moment: region by region; where that is impossible all together, then each once more.

        Where a region is too hard as a whole, some of its services are decided after the others.
        """
        self._now = variables
        self._floor = self._values[self._supply]
        # What stays for longer than in the relaxation has to leave later, after what is decided by now.
        decided = (self._known & (self._stage >= 0)) | (self._stage == self._stage[variables[0]])
        self._later = (self._job.growth[self._supply] < 0) & self._parts.apart(
            self._supply, np.flatnonzero(decided)
        )
        regions = waiting = self._in_groups(variables)
        together = len(regions) > 1
        while waiting:
            group, *rest = waiting
            seconds = self._seconds(moments_left) / len(waiting)
            found = self._keep(group, _Attempt(), seconds)
            if found is _Found.IMPOSSIBLE and rest:
                # The relaxation opens a pool by a tenth for those that are left, with a tenth of its reserve.
                found = self._keep(group, _Attempt(first=True), seconds)
            if found is not _Found.PLAN and together:
                together = False
                if self._together(variables, regions, moments_left):
                    return
            if found is _Found.NOTHING and self._groups < MOST_GROUPS:
                self._groups = min(GROUPS_GROWTH * self._groups, MOST_GROUPS)
                waiting = self._in_groups(variables)
                if len(waiting[0]) < len(group):
                    continue
                group, *rest = waiting
            if found is not _Found.PLAN and not self._give(group, moments_left):
                self._round_up(group)
            waiting = rest

    def _together(self, variables: Indices, regions: list[Indices], moments_left: int) -> bool:
        """Decide all regions of a moment: any plan, then the best of each, then of all in the time left."""
        share_s = self._seconds(moments_left)
        ends = time.monotonic() + share_s
        # Few slots rarely suffice, and that takes long to be found out.
        for width in self._job.widths[-2:]:
            attempt = _Attempt(width)
            rough = replace(attempt, roughly=True)
            found = self._decide(variables, rough, max(ends - time.monotonic(), self._rough_s))
            if found is not _Found.IMPOSSIBLE:
                break
        if found is not _Found.PLAN:
            return False
        for each in (*regions, variables):
            left = ends - time.monotonic()
            if left > 0:
                self._decide(each, attempt, left if each is variables else STRICT_SHARE * left)
        return True

    def _keep(self, variables: Indices, attempt: _Attempt, seconds: float) -> _Found:
        """Decide within all limits, among more slots while fewer prove impossible, which is soon said."""
        ends = time.monotonic() + seconds
        found = _Found.IMPOSSIBLE
        for width in self._job.widths[:-1]:
            left = ends - time.monotonic()
            found = self._decide(variables, replace(attempt, width=width), STRICT_SHARE * left)
            if found is not _Found.IMPOSSIBLE or left <= 0:
                break
        return found

    def _in_groups(self, variables: Indices) -> list[Indices]:
        """What is left to decide of a moment, in groups: what some services do in a region.

        What services share in a region, and what several regions share, is decided with each group.
        """
        region, service = self._job.region[variables], self._job.service[variables]
        placed = (region >= 0) & (service >= 0)
        groups = []
        for place in in_order(region[placed]):
            here = placed & (region == place)
            shared = ~placed & ((region == place) | (region < 0))
            size = math.ceil(len(np.unique(service[here])) / self._groups)
            left = in_order(service[here & ~self._known[variables]])
            for start in range(0, len(left), size):
                some = here & np.isin(service, left[start : start + size])
                groups.append(variables[some | shared])
        return groups

    def _give(self, variables: Indices, moments_left: int) -> bool:
        """Decide what cannot keep all limits, or not in time; False where nothing helps in time."""
        # Among few slots before many are looked at: that takes long, and little is to mend.
        ways = (_Attempt(width, elastic=True) for width in self._job.widths[-2:])
        seconds = max(self._seconds(moments_left), self._rough_s)
        return any(self._decide(variables, way, seconds) is _Found.PLAN for way in ways)

    def _seconds(self, moments_left: int) -> float:
        """Time of the next attempt at a moment. [s]"""
        return (self._ends - time.monotonic()) * min(1.0, STAGE_SHARE / moments_left)

    def _decide(self, variables: Indices, attempt: _Attempt, seconds: float) -> _Found:
        job = self._job
        free = np.concatenate([variables, self._supply])
        left = ~self._known
        # What is left of the same moment counts as the relaxation has it.
        left[self._now] = False
        waits = self._parts.rows_of(np.flatnonzero(left)) & (self._spans <= FEW_STAGES)
        held = self._values
        if attempt.first:
            held = held.copy()
            held[self._now[~self._known[self._now]]] = 0.0
        part = self._parts.part(free, held, ~waits)
        lower, upper = part.program.lower.copy(), part.program.upper.copy()
        slot = job.slot[free]
        closed = (slot >= 0) & (self._rank[slot] > attempt.width) & (lower <= 0)
        upper[closed] = 0.0
        growth, later = job.growth[free], np.zeros(len(free), dtype=bool)
        later[len(variables) :] = self._later
        now = np.clip(np.concatenate([self._values[variables], self._floor]), lower, upper)
        lower[growth > 0] = now[growth > 0]
        # Rounded up, more might leave than there is.
        lower[later] = np.minimum(now, np.floor(self._root[free] + TOLERANCE))[later]
        at_most = (growth < 0) & ~later
        upper[at_most] = now[at_most]
        own = replace(
            part.program.within(lower, upper),
            row_lower=part.program.row_lower - self._below[part.rows],
            row_upper=part.program.row_upper + self._above[part.rows],
        )
        # To leave later counts as a cost, though it pays: what that time needs is not known yet.
        cost = np.where(later, np.abs(job.cost[free]), job.cost[free])
        if attempt.elastic:
            own, cost = with_slack(own, cost, job.linking[part.rows], job.penalty[part.rows])
        decided = self._known[variables].all() and not attempt.elastic
        start = self._values[free] if decided else None
        answer = self._solved(own, cost, seconds, start, ROUGH_PLANS if attempt.roughly else None)
        if answer.values is None:
            return _Found.IMPOSSIBLE if answer.infeasible else _Found.NOTHING
        self._values[free] = answer.values[: len(free)]
        self._known[variables] = True
        if attempt.elastic:
            used = part.program.rows @ self._values[free]
            self._below[part.rows] = np.maximum(part.program.row_lower - used, 0)
            self._above[part.rows] = np.maximum(used - part.program.row_upper, 0)
        return _Found.PLAN

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
        )
        return self._solver(Job(program, cost, limits, start))

    def _finish(self) -> None:
        """Decide supply and everything continuous anew, with what runs held."""
        job = self._job
        free = np.flatnonzero(~job.program.whole | (job.growth != 0))
        part = self._parts.part(free, self._values)
        violation = self._violation(part.rows)
        # What keeps all limits must not be told that passing one saves more than it is fined.
        elastic = job.linking[part.rows] & (violation > 0)
        own, cost = with_slack(part.program, job.cost[free], elastic, job.penalty[part.rows])
        answer = self._solved(own, cost, FINISH_S)
        held = float(job.cost[free] @ self._values[free]) + violation
        if answer.values is not None and answer.objective <= held:
            self._values[free] = answer.values[: len(free)]

    def _violation(self, rows: Indices) -> float:
        """What the values pay for the limits that they pass. [objective units]"""
        program = self._job.program
        used = program.rows[rows] @ self._values
        beyond = np.maximum(used - program.row_upper[rows], program.row_lower[rows] - used)
        return float(self._job.penalty[rows] @ np.where(beyond > TOLERANCE, beyond, 0.0))
