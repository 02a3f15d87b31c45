"""Family 11: no pool serves more than its share of a service."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from fleetplan.planner.problem import Phase
from fleetplan.planner.scaling import LOAD_UNITS_PER_REPLICA
from fleetplan.planner.statements import Violation, exceeds
from fleetplan.planner.verify.plan_check import PlanCheck

Group = tuple[str, tuple[int, ...], str, Phase]
"""Service, moment indices, pool, phase."""


def check_placement(check: PlanCheck) -> Iterator[Violation]:
    """Services run where they may, and within their share of each pool but for a load unit of each load."""
    for row, _ in check.rows:
        if not check.problem.services[row.service].may_run_in(row.region):
            yield Violation("placement", f"{row.service} may not run in {row.region}")
    problem = check.problem
    served: dict[Group, float] = defaultdict(float)
    rounding: dict[Group, float] = defaultdict(float)
    for row, candidate in check.rows:
        m = problem.moment_index(row)
        if m is None:
            raise ValueError(f"a row of no moment: {row.moment_key}")
        # An offline service is counted by the day, others moment by moment.
        offline = problem.services[row.service].offline is not None
        together = problem.day_of(m) if offline else (m,)
        hours = problem.moments[m].hours
        for phase in (Phase.PREFILL, Phase.DECODE):
            if candidate.phase in (phase, Phase.AGGREGATED):
                key = (row.service, together, row.pool, phase)
                served[key] += row.requests_per_s * hours
                rounding[key] += sum(candidate.requests_per_s) / LOAD_UNITS_PER_REPLICA * hours
    for (name, together, pool, phase), done in served.items():
        limits = (problem.fleet.policy.max_share_per_pool, check.pool(pool).spot_max_share)
        share = min((limit for limit in limits if limit is not None), default=1.0)
        asked = sum(sum(problem.demand(name, m).values()) * problem.moments[m].hours for m in together)
        if exceeds(done, share * asked + rounding[name, together, pool, phase]):
            label = f"{name} {phase} {problem.moments[together[0]].label}"
            text = f"{label}: {pool} serves {done / asked:.6g} of it, {share} at most"
            yield Violation("placement", text)
