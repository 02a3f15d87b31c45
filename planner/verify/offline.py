"""Verify family 13: the times at which offline work is done, from the plan's rows alone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from fleetplan.planner.plan import OfflineWork
from fleetplan.planner.verify.plan_check import DAY_HOURS, PlanCheck
from fleetplan.planner.verify.quantities import SECONDS_PER_HOUR
from fleetplan.planner.verify.rounding import SHARE_FLOOR, differs, exceeds
from fleetplan.planner.verify.violations import Violation

WorkKey = tuple[str, str, str, int]
"""Service, region, class, moment index."""


def work_served(check: PlanCheck) -> dict[WorkKey, float]:
    """Return the rates at which moments must serve offline services for their assigned work. [requests/s]"""
    rates: dict[WorkKey, float] = defaultdict(float)
    for row in check.plan.offline_work:
        m = check.moments[row.moment_key]
        seconds = check.hours(check.problem.moments[m]) * SECONDS_PER_HOUR
        rates[row.service, row.region, row.request_class, m] += row.requests_per_day / seconds
    return rates


def check_offline(check: PlanCheck) -> Iterator[Violation]:
    """Check that offline work is done or declared unmet, in the exact amount and before its deadline."""
    done: dict[WorkKey, float] = defaultdict(float)
    for row in check.plan.offline_work:
        arises = check.moments[row.period, row.arises_in, row.scenario]
        done[row.service, row.region, row.request_class, arises] += row.requests_per_day
        yield from _in_time(check, row)
    unmet = {
        (row.service, row.region, row.request_class, check.moments[row.moment_key]): row.requests_per_s
        for row in check.plan.unmet
    }
    for cell in check.problem.cells:
        service = check.problem.services[cell.service]
        if service.offline is None:
            continue
        moment = check.problem.moments[cell.moment]
        for request_class, rate in zip(service.classes, cell.requests_per_s, strict=True):
            key = (cell.service, cell.region, request_class.name, cell.moment)
            seconds = check.hours(moment) * SECONDS_PER_HOUR
            arising, worked = (rate - unmet.get(key, 0.0)) * seconds, done.pop(key, 0.0)
            if differs(arising, worked, SHARE_FLOOR * rate * seconds):
                label = f"{cell.service} {request_class.name} {cell.region} {moment.label}"
                text = f"{label}: {arising} requests/day arise and are not unmet, {worked} are done"
                yield Violation("offline", text)
    for service_name, region, name, m in done:
        label = f"{service_name} {name} {region} {check.problem.moments[m].label}"
        yield Violation("offline", f"{label}: offline work is done that does not arise")


def _in_time(check: PlanCheck, row: OfflineWork) -> Iterator[Violation]:
    """Check the wait of work done evenly and in order, for which the first or the last waits longest."""
    offline = check.problem.services[row.service].offline
    if offline is None or row.arises_in == row.slice:
        return
    starts: dict[str | None, float] = defaultdict(float)
    begins, hours, kinds = {}, {}, {}
    for part in check.problem.fleet.slices:
        begins[part.name], hours[part.name], kinds[part.name] = (
            starts[part.day_kind],
            part.hours,
            part.day_kind,
        )
        starts[part.day_kind] += part.hours
    one, other = row.arises_in or "", row.slice or ""
    label = " ".join([row.service, *filter(None, row.moment_key)])
    if kinds[one] != kinds[other]:
        yield Violation("offline", f"{label}: work of {one} is done on another kind of day")
    first = (begins[other] - begins[one]) % DAY_HOURS
    last = first + hours[other] - hours[one]
    if exceeds(max(first, last), offline.deadline_hours):
        waits = f"{label}: work of {row.arises_in} waits {max(first, last)} h"
        yield Violation("offline", f"{waits}, above the deadline of {offline.deadline_hours} h")
