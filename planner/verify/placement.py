"""Verify family 11: no pool serves more than its share of a service."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from fleetplan.planner.problem import Phase
from fleetplan.planner.problem.load_units import units_requests_per_s
from fleetplan.planner.verify.plan_check import PlanCheck
from fleetplan.planner.verify.rounding import exceeds
from fleetplan.planner.verify.violations import Violation

Group = tuple[str, tuple[int, ...], str, Phase]
"""Service, moment indices, pool, phase."""


def check_placement(check: PlanCheck) -> Iterator[Violation]:
    """Check that services run in allowed regions, and within their share of each pool except for rounding.

    The tolerance is one load unit for each load that the pool could carry, placed or not: the model rounds
    each of them by up to a load unit, and the placed ones may use the sum.
    """
    for row, _ in check.rows:
        if not check.problem.services[row.service].may_run_in(row.region):
            yield Violation("placement", f"{row.service} may not run in {row.region}")
    problem = check.problem
    served: dict[Group, float] = defaultdict(float)
    for row, candidate in check.rows:
        m = check.moments[row.moment_key]
        # Offline services count by the day, others by the moment.
        offline = problem.services[row.service].offline is not None
        together = problem.day_of(m) if offline else (m,)
        hours = check.mean_hours(problem.moments[m])
        for phase in (Phase.PREFILL, Phase.DECODE):
            if candidate.phase in (phase, Phase.AGGREGATED):
                key = (row.service, together, row.pool, phase)
                served[key] += row.requests_per_s * hours
    for (name, together, pool, phase), done in served.items():
        limits = (problem.fleet.policy.max_share_per_pool, check.pool(pool).spot_max_share)
        share = min((limit for limit in limits if limit is not None), default=None)
        if share is None:
            continue
        asked = sum(
            sum(problem.demand(name, m).values()) * check.mean_hours(problem.moments[m]) for m in together
        )
        if exceeds(done, share * asked + _rounding(check, (name, together, pool, phase))):
            label = f"{name} {phase} {problem.moments[together[0]].label}"
            served_share = f"a share of {done / asked:.6g}" if asked else "traffic without demand"
            text = f"{label}: {pool} serves {served_share}, above the limit of {share}"
            yield Violation("placement", text)


def _rounding(check: PlanCheck, group: Group) -> float:
    """Return the traffic of one load unit of every load of a group, without headroom. [requests/s x h]"""
    problem = check.problem
    name, together, pool_name, phase = group
    p = next(index for index, pool in enumerate(problem.pools) if pool.name == pool_name)
    runs = [
        c
        for c in problem.candidates_of(name)
        if problem.candidates[c].hardware == problem.pools[p].hardware
        and problem.candidates[c].phase in (phase, Phase.AGGREGATED)
    ]
    total = 0.0
    for cell in problem.cells:
        if cell.service == name and cell.moment in together:
            units = sum(
                units_requests_per_s(problem, problem.candidates[c])[k]
                for c in runs
                for k in range(len(cell.requests_per_s))
                if problem.may_serve((c, p), k, cell.region)
            )
            total += units * check.mean_hours(problem.moments[cell.moment])
    return total / (1 + problem.services[name].headroom)
