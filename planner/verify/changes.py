"""Family 8: what starts from one period to the next, from the placements alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from fleetplan.planner.problem.moments import Moment
from fleetplan.planner.verify.plan_check import PlanCheck
from fleetplan.planner.verify.violations import Violation, differs

Runs = tuple[str, str, str, str, str, int]
"""Service, phase, hardware, configuration, pool, accelerators of one replica."""


def running(check: PlanCheck) -> list[Counter[Runs]]:
    """Replicas of every moment."""
    moments: list[Counter[Runs]] = []
    for m in range(len(check.problem.moments)):
        here: Counter[Runs] = Counter()
        for row, candidate in check.at(m):
            size = candidate.accelerators
            here[row.service, row.phase, row.hardware, row.config, row.pool, size] += row.replicas
        moments.append(here)
    return moments


def _in_force(check: PlanCheck, slice_name: str | None) -> Counter[Runs]:
    """Replicas of the plan in force in a part of the day."""
    problem = check.problem
    before: Counter[Runs] = Counter()
    for (c, p, part), replicas in (problem.running_before or {}).items():
        if part == slice_name:
            one, pool = problem.candidates[c], problem.pools[p].name
            before[one.service, one.phase.value, one.hardware, one.config, pool, one.accelerators] += replicas
    return before


def started(before: Counter[Runs], here: Counter[Runs]) -> int:
    """Accelerators of the replicas that are more than before."""
    return sum(max(0, count - before[runs]) * runs[-1] for runs, count in here.items())


def _started_accelerators(check: PlanCheck) -> list[int]:
    """Accelerators whose replicas start, by moment; none where nothing is known of the time before."""
    moments = running(check)
    found = []
    for m, moment in enumerate(check.problem.moments):
        if moment.before is None and check.problem.running_before is None:
            found.append(0)
        else:
            before = _in_force(check, moment.slice) if moment.before is None else moments[moment.before]
            found.append(started(before, moments[m]))
    return found


def transition_usd(check: PlanCheck, scenario: str | None = None) -> float:
    """Expected cost of everything that starts; of one demand scenario where one is named. [USD]"""
    starting = zip(check.problem.moments, _started_accelerators(check), strict=True)
    counted = [(moment, count) for moment, count in starting if scenario in (None, moment.scenario)]
    return sum(_usd_each(check, moment) * count for moment, count in counted)


def _usd_each(check: PlanCheck, moment: Moment) -> float:
    """Expected cost of an accelerator that starts, at its value at the start of the horizon. [USD]"""
    yearly = 1 + check.problem.fleet.finance.discount_rate_per_year
    usd = check.problem.fleet.policy.transition_usd_per_accelerator
    return float(usd * moment.weight / yearly ** (moment.period / 4))


def check_transitions(check: PlanCheck) -> Iterator[Violation]:
    """The changes that the plan lists are those of its placements, and cost what the policy says."""
    for moment, starting in zip(check.problem.moments, _started_accelerators(check), strict=True):
        when = check.problem.moment_key(moment)
        listed = [row for row in check.plan.transitions if row.moment_key == when]
        stated = sum(max(0, row.accelerators) for row in listed)
        if stated != starting:
            text = f"{moment.label}: {starting} accelerators start, {stated} are listed"
            yield Violation("transitions", text)
        cost, by_policy = sum(row.usd for row in listed), _usd_each(check, moment) * stated
        if differs(cost, by_policy):
            text = f"{moment.label}: {cost} USD listed, {by_policy} USD by the policy"
            yield Violation("transitions", text)
