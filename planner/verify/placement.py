"""Family 11: no pool serves more than its share of a service."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from fleetplan.planner.problem import Phase
from fleetplan.planner.scaling import LOAD_UNITS_PER_REPLICA
from fleetplan.planner.statements import Violation, exceeds
from fleetplan.planner.verify.plan_check import PlanCheck


def check_placement(check: PlanCheck) -> Iterator[Violation]:
    """Services run where they may, and within their share of each pool but for a load unit of each load."""
    for row, _ in check.rows:
        if not check.problem.services[row.service].may_run_in(row.region):
            yield Violation("placement", f"{row.service} may not run in {row.region}")
    served: dict[tuple[str, str, str, Phase], float] = defaultdict(float)
    rounding: dict[tuple[str, str, str, Phase], float] = defaultdict(float)
    for row, candidate in check.rows:
        for phase in (Phase.PREFILL, Phase.DECODE):
            if candidate.phase in (phase, Phase.AGGREGATED):
                key = (row.service, row.period, row.pool, phase)
                served[key] += row.requests_per_s
                rounding[key] += sum(candidate.requests_per_s) / LOAD_UNITS_PER_REPLICA
    for (name, period, pool, phase), rate in served.items():
        limits = (check.problem.fleet.policy.max_share_per_pool, check.pool(pool).spot_max_share)
        share = min((limit for limit in limits if limit is not None), default=1.0)
        demands = check.problem.services[name].demand_requests_per_s
        demand = sum(asked for (_, when, _), asked in demands.items() if when == period)
        limit = share * demand
        if exceeds(rate, limit + rounding[name, period, pool, phase]):
            yield Violation(
                "placement", f"{name} {phase} {period}: {pool} serves {rate} of at most {limit} requests/s"
            )
