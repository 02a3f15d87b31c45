"""One moment of a rolling construction, service by service, with fractional replicas of the others.

HiGHS finds poor plans of all services of a moment after half a minute, and good plans of each service after a
second. Their order matters: a service whose pools are taken needs supply of its own. The construction
remembers what each service added to the cost, and decides those that added most first in later moments. The
first moment, which decides most of the supply, is decided twice, the second time in the order learned from
the first (benchmarks/RESULTS.md).
"""

from __future__ import annotations

import time
from collections import defaultdict
from typing import TYPE_CHECKING, Final

import numpy as np

from fleetplan.planner.search.blocks.rolling_stage import StageAttempt, StageDecisions, StageResult
from fleetplan.planner.search.blocks.subprograms import in_order
from fleetplan.planner.search.solvers.highs_jobs import Indices

if TYPE_CHECKING:
    from fleetplan.planner.search.blocks.composite_jobs import RollingJob

SERVICE_SHARE, LEAST_SERVICE_SHARE = 0.1, 0.03
"""Share of a moment's time for one service, and its least share of the construction's time, past the moment's
time too. Most take less than 1 s; a service cut off after 0.8 s doubled a company's supply cost, with 108 s
for the construction."""

REMEMBERED_SHARE: Final = 0.02
"""Share of the moment's cost above which a service's added cost is remembered. A service without room counts
as adding this share."""

MOST_TOGETHER: Final = 4
"""Earlier services that are decided again with a service that finds no room alone."""

MOST_PASSES: Final = 2
"""Passes over the first moment."""


class ServiceByService:
    """Decides moments service by service.

    Parameters
    ----------
    job : RollingJob
        Program and its stages.
    decisions : StageDecisions
        Decisions so far.
    """

    def __init__(self, job: RollingJob, decisions: StageDecisions) -> None:
        self._job = job
        self._decisions = decisions
        # Cost added by each service so far. [objective units]
        self._added: dict[int, float] = defaultdict(float)
        self._passes = MOST_PASSES

    def decide(self, variables: Indices, seconds: float) -> bool:
        """Decide a moment; return False if a service found no room and stays undecided.

        Parameters
        ----------
        variables : Indices
            Variables of the moment.
        seconds : float
            Time limit. [s]
        """
        made = self._decisions
        values, known = made.values.copy(), made.known.copy()
        began = time.monotonic()
        all_s = self._job.effort.time_limit_s or np.inf
        limit_s = max(LEAST_SERVICE_SHARE * all_s, SERVICE_SHARE * seconds)
        best = self._decided(variables, limit_s)
        for _ in range(1, self._passes):
            took = time.monotonic() - began
            if not self._added or seconds - took < took:
                break
            kept = made.values.copy(), made.known.copy()
            made.values, made.known = values.copy(), known.copy()
            again = self._decided(variables, limit_s)
            if again < best:
                best = again
            else:
                made.values, made.known = kept
        self._passes = 1
        return bool(np.isfinite(best))

    def _decided(self, variables: Indices, limit_s: float) -> float:
        """Decide all services once; return the cost, infinite if one found no room."""
        job, made = self._job, self._decisions
        service = job.service[variables]
        attempt, done, cost, complete = StageAttempt(job.widths[0]), list[int](), np.inf, True
        for each in sorted(in_order(service[service >= 0]).tolist(), key=lambda name: -self._added[name]):
            before = cost
            left = variables[~made.known[variables]]
            found = made.decide(left, attempt, limit_s, variables[service == each])
            for count in range(1, min(MOST_TOGETHER, len(done)) + 1):
                if found is StageResult.PLAN:
                    break
                self._added[each] += REMEMBERED_SHARE * abs(before)
                again = variables[np.isin(service, [each, *done[-count:]])]
                found = made.decide(np.union1d(left, again), attempt, limit_s, again)
            if found is not StageResult.PLAN:
                complete = False
                continue
            done.append(each)
            cost = made.cost_of(variables)
            if cost - before > REMEMBERED_SHARE * abs(cost):
                self._added[each] += cost - before
        return cost if complete else np.inf
