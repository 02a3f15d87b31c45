"""Rolling-horizon construction of a first plan: moment by moment, the hardest of each period first.

Runs in a worker process, in parallel to other jobs. Where several regions can serve a service, a moment is
decided service by service in all regions (rolling_services.py); region by region, each would round up its
share of the replicas. Elsewhere each stage decides what runs in one region and how much supply it adds; the
other regions keep the values of the relaxation until their turn. If that is impossible, the regions of a
moment are decided together, then each again.

Earlier stages are fixed. Rows that join a moment to its neighbours wait until both are decided. Rows that sum
over many moments use the relaxation's values for later moments. Supply only grows, so earlier decisions stay
feasible; it costs a stage what it would cost in every remaining period (rolling_supply.py). A stage opens the
slots that the relaxation uses, and more if these do not suffice or time allows. If moments share the supply
of a period and time runs short, it also opens the slots of earlier moments. As a last resort it violates
limits at a price, for later steps to repair.
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
"""Least time for a plan of all regions of a moment, or of a stage that may violate limits. A company's moment
takes 1 to 2 s of a core; neighbourhoods took 100 s to repair an undecided one. [s]"""

ROUGH_SHARE: Final = 0.36
"""Largest share of the construction's time for it: with 30 s, a team has 4.5 s for all its moments."""

GROUPS_GROWTH, MOST_GROUPS = 2, 6
"""Factor on the number of service groups per moment after one was too hard, and the largest number."""

STRICT_SHARE: Final = 0.5
"""Share of a stage's time to satisfy all limits. Most stages without such a plan are proven infeasible at
once."""

MOST_SHARE: Final = 0.4
"""Largest share of the remaining time for a moment, while others follow."""

KEPT_SHARE: Final = 0.5
"""Share of an even part of the time reserved for each later moment: rough decisions at the end cost as much
as the first moments save."""


def construct(job: RollingJob, solver: Solver) -> Answer:
    """Construct a plan.

    Parameters
    ----------
    job : RollingJob
        Program and its stages.
    solver : Solver
        Solves integer programs.

    Returns
    -------
    Answer
        Values that may violate linking rows, and rows of stages that ran out of time.
    """
    return _Construction(job, solver).run()


class _Construction:
    """One construction: order and time of stages, and fallbacks for stages without an answer."""

    def __init__(self, job: RollingJob, solver: Solver) -> None:
        self._job = job
        self._decisions = StageDecisions(job, solver)
        self._limit_s = job.effort.time_limit_s or np.inf
        self._ends = time.monotonic() + self._limit_s
        self._rough_s = min(LEAST_ROUGH_S, ROUGH_SHARE * self._limit_s)
        self._groups = 1
        self._services = ServiceByService(job, self._decisions)

    def run(self) -> Answer:
        """Decide all stages, then supply and loads again."""
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
        """Return whether less than an even share of the time is left per moment."""
        return self._ends - time.monotonic() < self._limit_s * moments_left / len(self._job.stages)

    def _moment(self, variables: Indices, moments_left: int) -> None:
        """Decide one moment, service by service or region by region."""
        if not self._job.by_service or not self._services.decide(variables, self._seconds(moments_left)):
            self._by_region(variables, moments_left)
        # Variables of no region's service were decided with these.
        self._decisions.known[variables] = True

    def _by_region(self, variables: Indices, moments_left: int) -> None:
        """Decide the rest of a moment region by region; if that is impossible, all together.

        Then each region is decided again. If a region is too hard as a whole, its services are decided in
        groups.
        """
        regions = self._in_groups(variables)
        together = len(regions) > 1
        waiting = self._in_groups(variables)
        while waiting:
            group, *rest = waiting
            seconds = self._seconds(moments_left) / len(waiting)
            found = self._keep(group, StageAttempt(), seconds)
            if found is StageResult.IMPOSSIBLE and rest:
                # The relaxation opens a tenth of a pool, with a tenth of its reserve, for the undecided rest.
                found = self._keep(group, StageAttempt(first=True), seconds)
            if found is StageResult.IMPOSSIBLE and together:
                # Decisions in other regions may leave this one no room.
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
        """Decide all regions of a moment together: any plan first, then improve each region, then all."""
        share_s = self._seconds(moments_left)
        ends = time.monotonic() + share_s
        # Few slots rarely suffice, and proving that takes long.
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
        """Decide within all limits, among more slots while fewer are proven infeasible.

        If many slots leave no time for any plan, try few.
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
        """Return the undecided variables of a moment in groups of services of one region.

        Variables that services share in a region, or several regions share, are decided with each group.
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
        """Decide a group that cannot satisfy all limits in time, at a penalty; return False if that fails."""
        # Few slots first: many take long, and there is little to repair.
        ways = (StageAttempt(width, elastic=True) for width in self._job.widths[-2:])
        seconds = max(self._seconds(moments_left), self._rough_s)
        return any(self._decisions.decide(variables, way, seconds) is StageResult.PLAN for way in ways)

    def _seconds(self, moments_left: int) -> float:
        """Return the time of the next attempt at a moment. [s]"""
        left_s, kept_s = self._ends - time.monotonic(), KEPT_SHARE * self._limit_s / len(self._job.stages)
        if moments_left == 1 or np.isinf(left_s):
            return left_s
        share = min(self._job.moment_share / moments_left, MOST_SHARE)
        return min(share * left_s, max(left_s - kept_s * (moments_left - 1), 0.0))
