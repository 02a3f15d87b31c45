"""Rolling-horizon construction of a first plan: moment by moment, the hardest of each period first.

Runs in the worker process, beside other jobs. Where several regions can serve a service, a moment is decided
service by service, in all regions at once (rolling_services.py): region by region each region would round up
its part of them. Else each stage decides what runs in one region and how much supply grows for it; what the
other regions do counts as before until they are decided.
Where that is impossible the regions of a moment are decided together, and each once more. Earlier stages are
held. Rows that join a moment to its neighbours wait until both are decided. Rows that sum over many moments
count the linear relaxation's values for those that are left. Supply only grows, so earlier decisions stay
possible, and costs a stage what it would cost to have it in every period that is left (rolling_supply.py). A
stage looks at the slots that the relaxation uses, and at more where these are not enough or where there is
time; where several moments share the supply of a period and time runs short, at those of earlier moments as
well. As a last resort it violates limits at a price, for later steps to mend.
"""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from fleetplan.planner.search.blocks.rolling_services import ServiceByService
from fleetplan.planner.search.blocks.rolling_stage import StageAttempt, StageDecisions, StageResult
from fleetplan.planner.search.blocks.subprograms import in_order
from fleetplan.planner.search.solvers.highs_jobs import Answer, Indices, Solver

if TYPE_CHECKING:
    from fleetplan.planner.search.blocks.composite_jobs import RollingJob

LEAST_ROUGH_S: Final = 5.0
"""Least time for a plan of all regions of a moment: a company's has one after 1 to 2 s of a core. A stage
that may violate limits has as much: what nobody decides took neighbourhoods 100 s to mend. [s]"""

ROUGH_SHARE: Final = 0.36
"""Most of that, over the time of the construction: a team of 30 s has 4.5 s for all its moments."""

GROUPS_GROWTH, MOST_GROUPS = 2, 6
"""Factor of the groups of services that a moment is decided in once one was too hard, and their most."""

STRICT_SHARE: Final = 0.5
"""Part of a stage's time to keep all limits. Where that is impossible, most stages say so at once."""

MOST_SHARE: Final = 0.4
"""Most of the time left that a moment may take while others come after it."""

KEPT_SHARE: Final = 0.5
"""Part of an even share of all time that is kept for each of these: what is decided roughly at the end costs
as much as what the first moments save."""


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


class _Construction:
    """One construction: in which order, for how long, and what is done where a stage has no answer."""

    def __init__(self, job: RollingJob, solver: Solver) -> None:
        self._job = job
        self._decisions = StageDecisions(job, solver)
        self._limit_s = job.effort.time_limit_s or np.inf
        self._ends = time.monotonic() + self._limit_s
        self._rough_s = min(LEAST_ROUGH_S, ROUGH_SHARE * self._limit_s)
        self._groups = 1
        self._services = ServiceByService(job, self._decisions)

    def run(self) -> Answer:
        """Decide all stages, then supply and loads once more."""
        job, made = self._job, self._decisions
        for number, variables in enumerate(job.stages):
            left = len(job.stages) - number
            made.begin(variables, set(job.period_of_stage[number:].tolist()))
            self._moment(variables, left)
            if job.follow_slots and self._is_late(left - 1):
                made.note_slots(variables)
        made.finish()
        return Answer(made.values, float(job.cost @ made.values), -np.inf)

    def _is_late(self, moments_left: int) -> bool:
        """Whether less than an even share of the time is left for each moment."""
        return self._ends - time.monotonic() < self._limit_s * moments_left / len(self._job.stages)

    def _moment(self, variables: Indices, moments_left: int) -> None:
        """Decide one moment, service by service or region by region."""
        if not self._job.by_service or not self._services.decide(variables, self._seconds(moments_left)):
            self._by_region(variables, moments_left)
        # What stands in no region's service has been decided with those.
        self._decisions.known[variables] = True

    def _by_region(self, variables: Indices, moments_left: int) -> None:
        """Decide what is left of one moment region by region; where that is impossible all together.

        Then each region comes once more. Where a region is too hard as a whole, some of its services are
        decided after the others.
        """
        regions = self._in_groups(variables)
        together = len(regions) > 1
        waiting = self._in_groups(variables)
        while waiting:
            group, *rest = waiting
            seconds = self._seconds(moments_left) / len(waiting)
            found = self._keep(group, StageAttempt(), seconds)
            if found is StageResult.IMPOSSIBLE and rest:
                # The relaxation opens a pool by a tenth for those that are left, with a tenth of its reserve.
                found = self._keep(group, StageAttempt(first=True), seconds)
            if found is StageResult.IMPOSSIBLE and together:
                # What was decided in all regions may leave one no room.
                region = variables[np.isin(self._job.region[variables], self._job.region[group])]
                if len(region) > len(group):
                    found = self._keep(region, StageAttempt(), seconds)
            if found is not StageResult.PLAN and together:
                together = False
                if self._together(variables, regions, moments_left):
                    return
            if found is StageResult.NOTHING and self._groups < MOST_GROUPS:
                self._groups = min(GROUPS_GROWTH * self._groups, MOST_GROUPS)
                waiting = self._in_groups(variables)
                if len(waiting[0]) < len(group):
                    continue
                group, *rest = waiting
            if found is not StageResult.PLAN and not self._give(group, moments_left):
                self._decisions.round_up(group)
            waiting = rest

    def _together(self, variables: Indices, regions: list[Indices], moments_left: int) -> bool:
        """Decide all regions of a moment: any plan, then the best of each, then of all in the time left."""
        share_s = self._seconds(moments_left)
        ends = time.monotonic() + share_s
        # Few slots rarely suffice, and that takes long to be found out.
        for width in self._job.widths[-2:]:
            attempt = StageAttempt(width)
            rough = replace(attempt, roughly=True)
            found = self._decisions.decide(variables, rough, max(ends - time.monotonic(), self._rough_s))
            if found is not StageResult.IMPOSSIBLE:
                break
        if found is not StageResult.PLAN:
            return False
        for each in (*regions, variables):
            left = ends - time.monotonic()
            if left > 0:
                self._decisions.decide(each, attempt, left if each is variables else STRICT_SHARE * left)
        return True

    def _keep(
        self, variables: Indices, attempt: StageAttempt, seconds: float, decided: Indices | None = None
    ) -> StageResult:
        """Decide within all limits, among more slots while fewer prove impossible, which is soon said.

        Where many slots leave no time for any plan, few may.
        """
        ends = time.monotonic() + seconds
        found = StageResult.IMPOSSIBLE
        for width in self._job.widths[:-1]:
            left = ends - time.monotonic()
            found = self._decisions.decide(
                variables, replace(attempt, width=width), STRICT_SHARE * left, decided
            )
            if found is not StageResult.IMPOSSIBLE or left <= 0:
                break
        if found is StageResult.NOTHING and self._job.widths[0] > 0:
            few, left = replace(attempt, width=0.0), ends - time.monotonic()
            if self._decisions.decide(variables, few, STRICT_SHARE * left, decided) is StageResult.PLAN:
                found = StageResult.PLAN
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
            left = in_order(service[here & ~self._decisions.known[variables]])
            for start in range(0, len(left), size):
                some = here & np.isin(service, left[start : start + size])
                groups.append(variables[some | shared])
        return groups

    def _give(self, variables: Indices, moments_left: int) -> bool:
        """Decide what cannot keep all limits, or not in time; False where nothing helps in time."""
        # Among few slots before many are looked at: that takes long, and little is to mend.
        ways = (StageAttempt(width, elastic=True) for width in self._job.widths[-2:])
        seconds = max(self._seconds(moments_left), self._rough_s)
        return any(self._decisions.decide(variables, way, seconds) is StageResult.PLAN for way in ways)

    def _seconds(self, moments_left: int) -> float:
        """Time of the next attempt at a moment. [s]"""
        left_s, kept_s = self._ends - time.monotonic(), KEPT_SHARE * self._limit_s / len(self._job.stages)
        if moments_left == 1 or np.isinf(left_s):
            return left_s
        share = min(self._job.moment_share / moments_left, MOST_SHARE)
        return min(share * left_s, max(left_s - kept_s * (moments_left - 1), 0.0))
