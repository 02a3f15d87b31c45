"""Plan in force: what runs before the first period, the reference for changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from fleetplan.fleet.figures import counted
from fleetplan.fleet.inventory.periods import Calendar
from fleetplan.planner.plan import Placement, Plan
from fleetplan.planner.problem.candidate import ConfigurationKey
from fleetplan.planner.problem.problem import Problem


def period_in_force(plan: Plan, periods: Sequence[str], calendar: Calendar) -> str | None:
    """Return the period of a plan that runs when a horizon begins.

    Parameters
    ----------
    plan : Plan
        The plan in force.
    periods : Sequence[str]
        Periods of the new horizon.
    calendar : Calendar
        Calendar of the horizon; periods of the plan in force may be longer or shorter.

    Returns
    -------
    str or None
        Its last period that begins before the horizon; otherwise the first period of the horizon if it has
        that; otherwise None.
    """
    first = calendar.first_month(periods[0])
    earlier = [
        (index, period)
        for period in plan.periods
        if first is not None and (index := calendar.first_month(period)) is not None and index < first
    ]
    if earlier:
        return max(earlier)[1]
    return periods[0] if periods[0] in plan.periods else None


def configurations_in_force(plan: Plan) -> frozenset[ConfigurationKey]:
    """Return the configurations that a plan runs, which stay candidates even if dominated."""
    return frozenset((row.service, row.phase, row.hardware, row.config) for row in plan.placements)


def with_baseline(problem: Problem, plan: Plan) -> tuple[Problem, tuple[str, ...]]:
    """Return the problem with the replicas of the plan in force, and warnings about those it cannot keep.

    Parameters
    ----------
    problem : Problem
        Problem whose candidates include those of the plan in force that still meet the SLO.
    plan : Plan
        The plan in force.

    Returns
    -------
    tuple[Problem, tuple[str, ...]]
        Replicas of former candidates, or in missing pools, end before the first period; a warning reports
        each.
    """
    period = period_in_force(plan, problem.periods, problem.fleet.calendar)
    candidates = {candidate.key: c for c, candidate in enumerate(problem.candidates)}
    pools = {pool.name: p for p, pool in enumerate(problem.pools)}
    running: Counter[tuple[int, int, str | None]] = Counter()
    warnings = []
    if period is None:
        warnings.append(
            f"the plan in force has no period before {problem.periods[0]}: all replicas count as starts"
        )
    likely = max(plan.demand_scenarios, key=lambda row: row.probability, default=None)
    scenario = None if likely is None else likely.name
    in_force = [row for row in plan.placements if (row.period, row.scenario) == (period, scenario)]
    if scenario is not None:
        warnings.append(f"plan in force: its placements for demand scenario {scenario} apply")
    for slice_name in dict.fromkeys(moment.slice for moment in problem.moments):
        for row in _rows_of_slice(in_force, slice_name):
            candidate = candidates.get((row.service, row.phase, row.hardware, row.config))
            label = (
                f"plan in force: {counted(row.replicas, 'replica')} of {row.service} {row.phase} {row.config}"
            )
            if candidate is None:
                warnings.append(
                    f"{label} on {row.hardware} end: no such configuration meets the limits any more"
                )
            elif row.pool not in pools:
                warnings.append(f"{label} end: the fleet has no pool {row.pool}")
            else:
                running[candidate, pools[row.pool], slice_name] += row.replicas
    return replace(problem, running_before=dict(running), begins_with=plan), tuple(dict.fromkeys(warnings))


def _rows_of_slice(rows: Sequence[Placement], slice_name: str | None) -> list[Placement]:
    """Return a plan's rows in a slice of the day; its largest rows if its day lacks that slice."""
    if slice_name in {row.slice for row in rows}:
        return [row for row in rows if row.slice == slice_name]
    most: dict[tuple[str, str, str, str, str], Placement] = {}
    for row in rows:
        key = (row.service, row.phase, row.hardware, row.config, row.pool)
        if key not in most or row.replicas > most[key].replicas:
            most[key] = row
    return list(most.values())
