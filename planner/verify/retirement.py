"""Family 7: which owned hosts left, when, and for what."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from fleetplan.planner.plan import Retired
from fleetplan.planner.problem import Problem
from fleetplan.planner.verify.plan_check import PlanCheck
from fleetplan.planner.verify.violations import Violation, differs


def retirement_faults(problem: Problem, row: Retired) -> list[str]:
    """What makes a retirement impossible to check or to be; empty if it is sound."""
    label = f"{row.pool} {row.period}"
    pool = next((pool for pool in problem.pools if pool.name == row.pool), None)
    if pool is None:
        return [f"{label}: there is no such pool"]
    if row.period not in problem.periods:
        return [f"{label}: there is no such period"]
    if pool.retirement is None or not pool.retirement.possible_in(problem.periods.index(row.period)):
        return [f"{label}: no host may leave then"]
    return [f"{label}: {row.hosts} hosts"] if row.hosts < 1 else []


def check_retirement(check: PlanCheck) -> Iterator[Violation]:
    """No more hosts leave than there are, all of them by their end of life, at the stated cost."""
    gone: Counter[str] = Counter()
    for row in check.plan.retirements:
        gone[row.pool] += row.hosts
        retirement = check.pool(row.pool).retirement
        q = check.problem.periods.index(row.period)
        usd = 0.0 if retirement is None else row.hosts * retirement.unit_usd[q]
        if differs(row.usd, usd):
            yield Violation("retirement", f"{row.pool} {row.period}: {row.usd} USD stated, {usd} USD found")
    for pool in check.problem.pools:
        if gone[pool.name] > pool.existing_units:
            yield Violation("retirement", f"{pool.name}: {gone[pool.name]} of {pool.existing_units} leave")
        must_go = pool.retirement is not None and pool.retirement.end_period is not None
        if must_go and gone[pool.name] < pool.existing_units:
            yield Violation("retirement", f"{pool.name}: hosts stay beyond their end of life")
