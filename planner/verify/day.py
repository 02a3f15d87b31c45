"""What changes within a day, and when offline work is done, from the plan's rows alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from fleetplan.planner.plan import OfflineWork
from fleetplan.planner.problem.deferral import longest_wait_hours
from fleetplan.planner.problem.moments import Moment
from fleetplan.planner.verify.changes import running, started
from fleetplan.planner.verify.plan_check import PlanCheck
from fleetplan.planner.verify.violations import Violation, differs, exceeds

DAYS_PER_QUARTER: Final = 365 / 4
"""Every day of a quarter is alike."""

SECONDS_PER_HOUR: Final = 3600.0

WorkKey = tuple[str, str, str, int]
"""Service, region, class, moment index."""


def _switched_accelerators(check: PlanCheck) -> list[int]:
    """Accelerators whose replicas start from the slice before, by moment."""
    moments = running(check)
    return [
        0 if moment.slice_before is None else started(moments[moment.slice_before], moments[m])
        for m, moment in enumerate(check.problem.moments)
    ]


def tidal_usd(check: PlanCheck, scenario: str | None = None) -> float:
    """Expected cost of what starts within the days; of one demand scenario where one is named. [USD]"""
    switched = zip(check.problem.moments, _switched_accelerators(check), strict=True)
    counted = [(moment, count) for moment, count in switched if scenario in (None, moment.scenario)]
    return sum(_usd_each(check, moment) * count for moment, count in counted)


def _usd_each(check: PlanCheck, moment: Moment) -> float:
    """Expected cost of an accelerator that starts in a slice of every day, discounted. [USD]"""
    usd = check.problem.fleet.policy.tidal.usd_per_accelerator * DAYS_PER_QUARTER * moment.probability
    yearly = 1 + check.problem.fleet.finance.discount_rate_per_year
    return float(usd / yearly ** ((moment.period + 1) / 4))


def check_tides(check: PlanCheck) -> Iterator[Violation]:
    """What starts from slice to slice is listed, costs what the policy says, and stays within its limit."""
    limit = check.problem.fleet.policy.tidal.max_share_per_pool
    moments = running(check)
    for moment, switched in zip(check.problem.moments, _switched_accelerators(check), strict=True):
        when = check.problem.moment_key(moment)
        listed = [row for row in check.plan.tides if row.moment_key == when]
        stated = sum(max(0, row.accelerators) for row in listed)
        if stated != switched:
            text = f"{moment.label}: {switched} accelerators start, {stated} are listed"
            yield Violation("tidal", text)
        cost, by_policy = sum(row.usd for row in listed), _usd_each(check, moment) * switched
        if differs(cost, by_policy):
            yield Violation("tidal", f"{moment.label}: {cost} USD listed, {by_policy} USD by the policy")
    for m, moment in enumerate(check.problem.moments):
        if moment.slice_before is None or limit == 1:
            continue
        for pool in check.problem.pools:
            before, here = moments[moment.slice_before], moments[m]
            switched = sum(
                max(0, count - before[runs]) * runs[-1]
                for runs, count in here.items()
                if runs[4] == pool.name
            )
            held = check.units(pool, moment.period) * pool.accelerators_per_unit
            if exceeds(switched, limit * held):
                text = f"{pool.name} {moment.label}: {switched} of {held} accelerators change, {limit} may"
                yield Violation("tidal", text)


def work_served(check: PlanCheck) -> dict[WorkKey, float]:
    """Rates at which moments must serve offline services, for the work that is put into them. [requests/s]"""
    rates: dict[WorkKey, float] = defaultdict(float)
    for row in check.plan.offline_work:
        m = check.problem.moment_index(row)
        if m is not None:
            seconds = check.problem.moments[m].hours * SECONDS_PER_HOUR
            rates[row.service, row.region, row.request_class, m] += row.requests_per_day / seconds
    return rates


def check_offline(check: PlanCheck) -> Iterator[Violation]:
    """All offline work is done or declared unmet, and every piece of it before its deadline."""
    done: dict[WorkKey, float] = defaultdict(float)
    for row in check.plan.offline_work:
        arises = check.problem.moment_index(row.model_copy(update={"slice": row.arises_in}))
        label = f"{row.service} {row.request_class} {row.region} {row.moment_key}"
        service = check.problem.services.get(row.service)
        if arises is None or check.problem.moment_index(row) is None or service is None:
            yield Violation("offline", f"{label}: no such service, period or slice")
        elif service.offline is None or row.requests_per_day < 0:
            yield Violation("offline", f"{label}: {row.requests_per_day} requests a day")
        else:
            done[row.service, row.region, row.request_class, arises] += row.requests_per_day
            yield from _in_time(check, row, arises, service.offline.deadline_hours)
    unmet = {
        (row.service, row.region, row.request_class, check.problem.moment_index(row)): row.requests_per_s
        for row in check.plan.unmet
    }
    for cell in check.problem.cells:
        service = check.problem.services[cell.service]
        if service.offline is None:
            continue
        moment = check.problem.moments[cell.moment]
        for request_class, rate in zip(service.classes, cell.requests_per_s, strict=True):
            key = (cell.service, cell.region, request_class.name, cell.moment)
            arising = (rate - unmet.get(key, 0.0)) * moment.hours * SECONDS_PER_HOUR
            if exceeds(arising, done[key]):
                label = f"{cell.service} {request_class.name} {cell.region} {moment.label}"
                yield Violation("offline", f"{label}: {done[key]} of {arising} requests a day are done")


def _in_time(check: PlanCheck, row: OfflineWork, arises: int, deadline_hours: float) -> Iterator[Violation]:
    m = check.problem.moment_index(row)
    wait = 0.0 if m is None else longest_wait_hours(check.problem.moments, arises, m)
    if exceeds(wait, deadline_hours):
        text = f"{row.service} {row.moment_key}: work of {row.arises_in} waits {wait} of {deadline_hours} h"
        yield Violation("offline", text)
