"""Read the actual demand and latencies of a plan's services from Prometheus range queries."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

import numpy as np

from fleetplan.fleet.errors import InputError, Issue
from fleetplan.fleet.units import HOURS_PER_DAY, MS_PER_S, SECONDS_PER_HOUR
from fleetplan.perfmodel.operators import FloatArray
from fleetplan.planner.commands.bill_actuals import TakenActuals
from fleetplan.planner.importing.demand import DemandOptions, observed_rates
from fleetplan.planner.importing.fragments import plain_name
from fleetplan.planner.importing.prometheus import LATENCIES, Answers, Series
from fleetplan.planner.importing.records import RejectedRows
from fleetplan.planner.plan import Plan
from fleetplan.planner.questions.track import GatheredActuals, Mean, period_dates


def monitored_actuals(
    answers: Answers, options: DemandOptions, plan: Plan, into: GatheredActuals
) -> TakenActuals:
    """Add monitoring data of a plan's services to the measurements.

    The demand of a day is the percentile of its rates; that of a period is its busiest day. Latencies are
    means over all requests of the period.

    Raises
    ------
    InputError
        No series belongs to a service and a period of the plan, or none names one of several regions.
    """
    demand = () if plan.inputs is None else plan.inputs.demand
    regions: dict[str, set[str]] = defaultdict(set)
    for row in demand:
        regions[row.service].add(row.region)
    rejected, taken = [], 0
    for service, region, time_s, rate in observed_rates(answers, options):
        found = _region(service, region, regions, options)
        place = service if region is None else f"{service} in {region}"
        if found is None:
            rejected.append(RejectedRows(place, f"the plan has {', '.join(regions)}"))
            continue
        days = dict(_days(plan, time_s, rate, options.percentile))
        for period, per_s in days.items():
            into.add_demand(service, found, period, per_s)
        taken += bool(days)
        if not days:
            rejected.append(
                RejectedRows(place, f"is outside the periods of the plan ({', '.join(plan.periods)})")
            )
    if not taken:
        says = "; ".join(f"{each.place}: {each.reason}" for each in rejected) or "has no requests"
        raise InputError([Issue(options.source, 0, 0, "requests", says)])
    for name, means in (("ttft", into.ttft), ("tpot", into.tpot)):
        _add_latency(answers, name, options, plan, set(regions), means)
    return TakenActuals(taken, tuple(rejected))


def _region(
    service: str, region: str | None, regions: Mapping[str, set[str]], options: DemandOptions
) -> str | None:
    """Return the region of a series, or None if the plan has no demand of the service there."""
    known = sorted(regions.get(service, ()))
    if region is not None:
        return region if region in known else None
    if len(known) > 1:
        message = f"{service}: a series without a region, and the plan has {', '.join(known)}"
        hint = "name the label of the region: --region-label"
        raise InputError([Issue(options.source, 0, 0, "requests", message, hint)])
    return known[0] if known else None


def _periods(plan: Plan, time_s: FloatArray) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the periods that contain times, with a mask of these times."""
    for period, (first, after) in period_dates(plan).items():
        start, end = (
            datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp() for day in (first, after)
        )
        within = (time_s >= start) & (time_s < end)
        if within.any():
            yield period, within


def _days(plan: Plan, time_s: FloatArray, rate: FloatArray, percentile: float) -> Iterator[tuple[str, float]]:
    """Yield the demand of each period: the largest daily percentile of rates. [requests/s]"""
    for period, within in _periods(plan, time_s):
        day = time_s[within] // (HOURS_PER_DAY * SECONDS_PER_HOUR)
        yield (
            period,
            max(float(np.percentile(rate[within][day == each], percentile)) for each in np.unique(day)),
        )


def _add_latency(
    answers: Answers,
    name: str,
    options: DemandOptions,
    plan: Plan,
    services: set[str],
    means: dict[tuple[str, str], Mean],
) -> None:
    totals: dict[tuple[str, str], list[float]] = defaultdict(lambda: [0.0, 0.0])
    for position, kind in enumerate(LATENCIES):
        for each in answers.get(f"{name}{kind}", ()):
            service = plain_name(each.labels.get(options.service_label, ""))
            for period, value in _sums(plan, each):
                if service in services:
                    totals[service, period][position] += value
    for key, (seconds, requests) in totals.items():
        if requests > 0:
            means[key].add(seconds / requests * MS_PER_S, requests)


def _sums(plan: Plan, series: Series) -> Iterator[tuple[str, float]]:
    for period, within in _periods(plan, series.time_s):
        yield period, float(series.value[within].sum())
