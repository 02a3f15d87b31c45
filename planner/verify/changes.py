"""Family 8: what starts from one period to the next, from the placements alone."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator

from fleetplan.planner.statements import Violation, differs
from fleetplan.planner.verify.plan_check import PlanCheck

Runs = tuple[str, str, str, str, str, int]
"""Service, phase, hardware, configuration, pool, accelerators of one replica."""


def _running(check: PlanCheck) -> list[Counter[Runs] | None]:
    """Replicas by period after those of the plan in force, which is None where there is none."""
    problem = check.problem
    before: Counter[Runs] = Counter()
    for (c, p), replicas in (problem.running_before or {}).items():
        one, pool = problem.candidates[c], problem.pools[p].name
        before[one.service, one.phase.value, one.hardware, one.config, pool, one.accelerators] += replicas
    periods: list[Counter[Runs] | None] = [None if problem.running_before is None else before]
    for period in problem.periods:
        here: Counter[Runs] = Counter()
        for row, candidate in check.rows:
            if row.period == period:
                size = candidate.accelerators
                here[row.service, row.phase, row.hardware, row.config, row.pool, size] += row.replicas
        periods.append(here)
    return periods


def _started_accelerators(check: PlanCheck) -> list[int]:
    """Accelerators whose replicas start, by period."""
    periods = _running(check)
    return [
        0
        if before is None or here is None
        else sum(max(0, count - before[runs]) * runs[-1] for runs, count in here.items())
        for before, here in itertools.pairwise(periods)
    ]


def transition_usd(check: PlanCheck) -> float:
    """Cost of everything that starts. [USD]"""
    return check.problem.fleet.policy.transition_usd_per_accelerator * sum(_started_accelerators(check))


def check_transitions(check: PlanCheck) -> Iterator[Violation]:
    """The changes that the plan lists are those of its placements, and cost what the policy says."""
    usd = check.problem.fleet.policy.transition_usd_per_accelerator
    for period, started in zip(check.problem.periods, _started_accelerators(check), strict=True):
        listed = [row for row in check.plan.transitions if row.period == period]
        stated = sum(max(0, row.accelerators) for row in listed)
        if stated != started:
            yield Violation("transitions", f"{period}: {started} accelerators start, {stated} are listed")
        cost = sum(row.usd for row in listed)
        if differs(cost, usd * stated):
            yield Violation("transitions", f"{period}: {cost} USD listed, {usd * stated} USD by the policy")
