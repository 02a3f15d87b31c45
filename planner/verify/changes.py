"""Verify family 8 and changes within a day: starting replicas, from the placements alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from fleetplan.fleet.figures import counted
from fleetplan.planner.plan import Transition
from fleetplan.planner.problem.moments import Moment
from fleetplan.planner.verify.plan_check import PlanCheck
from fleetplan.planner.verify.quantities import tidal_usd_each, transition_usd_each
from fleetplan.planner.verify.records import compared
from fleetplan.planner.verify.rounding import exceeds
from fleetplan.planner.verify.violations import Violation

Runs = tuple[str, str, str, str, str, int]
"""Service, phase, hardware, configuration, pool, accelerators per replica."""

CHANGE_KEY = ("period", "slice", "scenario", "service", "phase", "hardware", "config", "pool")


def running(check: PlanCheck) -> list[Counter[Runs]]:
    """Return the replicas of every moment."""
    moments: list[Counter[Runs]] = []
    for m in range(len(check.problem.moments)):
        here: Counter[Runs] = Counter()
        for row, candidate in check.at(m):
            size = candidate.accelerators
            here[row.service, row.phase, row.hardware, row.config, row.pool, size] += row.replicas
        moments.append(here)
    return moments


def _in_force(check: PlanCheck, slice_name: str | None) -> Counter[Runs]:
    """Return the replicas of the plan in force in a slice of the day."""
    problem = check.problem
    before: Counter[Runs] = Counter()
    for (c, p, part), replicas in (problem.running_before or {}).items():
        if part == slice_name:
            one, pool = problem.candidates[c], problem.pools[p].name
            before[one.service, one.phase.value, one.hardware, one.config, pool, one.accelerators] += replicas
    return before


def before_period(check: PlanCheck, moments: list[Counter[Runs]], m: int) -> Counter[Runs] | None:
    """Return the replicas of the period before a moment; None if unknown."""
    moment = check.problem.moments[m]
    if moment.before is not None:
        return moments[moment.before]
    return None if check.problem.running_before is None else _in_force(check, moment.slice)


def before_slice(check: PlanCheck, moments: list[Counter[Runs]], m: int) -> Counter[Runs] | None:
    """Return the replicas of the slice before a moment; None without slices."""
    earlier = check.problem.moments[m].slice_before
    return None if earlier is None else moments[earlier]


def check_transitions(check: PlanCheck) -> Iterator[Violation]:
    """Check that the listed changes are those of the placements, at the cost in the policy."""
    expected = _all_changes(check, running(check), before_period, transition_usd_each)
    yield from compared("transitions", check.plan.transitions, expected, CHANGE_KEY, check.floor_usd)


def check_tides(check: PlanCheck) -> Iterator[Violation]:
    """Check the starts between slices: their list, their cost in the policy, and their limit."""
    moments = running(check)
    expected = _all_changes(check, moments, before_slice, tidal_usd_each)
    yield from compared("tidal", check.plan.tides, expected, CHANGE_KEY, check.floor_usd)
    limit = check.problem.fleet.policy.tidal.max_share_per_pool
    for m, moment in enumerate(check.problem.moments):
        before = before_slice(check, moments, m)
        if before is None or limit == 1:
            continue
        for pool in check.pools.values():
            switched = sum(
                max(0, count - before[runs]) * runs[-1]
                for runs, count in moments[m].items()
                if runs[4] == pool.name
            )
            held = check.units[pool.name, moment.period] * pool.accelerators_per_unit
            if exceeds(switched, limit * held):
                text = f"{pool.name} {moment.label}: {switched} of {counted(held, 'accelerator')} change"
                text = f"{text} within the day, above the share of {limit}"
                yield Violation("tidal", text)


def _all_changes(
    check: PlanCheck,
    moments: list[Counter[Runs]],
    before: Callable[[PlanCheck, list[Counter[Runs]], int], Counter[Runs] | None],
    usd_each: Callable[[PlanCheck, Moment], float],
) -> list[Transition]:
    """Return every change in the number of replicas from the preceding moment."""
    return [
        row
        for m, moment in enumerate(check.problem.moments)
        for row in _changes(check, moment, before(check, moments, m), moments[m], usd_each(check, moment))
    ]


def _changes(
    check: PlanCheck, moment: Moment, before: Counter[Runs] | None, here: Counter[Runs], usd_each: float
) -> Iterator[Transition]:
    """Yield the sets of replicas that changed in number."""
    if before is None:
        return
    period, part, scenario = check.key_of(moment)
    for runs in before.keys() | here.keys():
        service, phase, hardware, config, pool, size = runs
        more = here[runs] - before[runs]
        if more:
            yield Transition(
                period=period,
                slice=part,
                scenario=scenario,
                region=check.pool(pool).region.name,
                pool=pool,
                service=service,
                phase=phase,
                hardware=hardware,
                config=config,
                replicas_before=before[runs],
                replicas=here[runs],
                accelerators=more * size,
                usd=max(more, 0) * size * usd_each,
            )
