"""Read the cost and size of a plan's pools from a FOCUS billing export."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from fleetplan.fleet.document.headers import check_header
from fleetplan.fleet.document.records import Table
from fleetplan.fleet.errors import InputError, Issue, brief
from fleetplan.fleet.units import HOURS_PER_MONTH, MONTHS_PER_YEAR, SECONDS_PER_HOUR
from fleetplan.planner.importing.focus import FOCUS_COLUMNS, charged_time, usage_of, without_nulls
from fleetplan.planner.importing.records import RejectedRowError, RejectedRows
from fleetplan.planner.plan import Plan
from fleetplan.planner.questions.track import GatheredActuals, period_dates

_KINDS: Final[Mapping[str, str]] = {"Standard": "rent", "Dynamic": "spot"}
"""Kind of purchase by pricing category; all other categories are commitments."""

_Key = tuple[str, str, str, str]
"""Catalogue hardware, region, pricing category, period."""


@dataclass(slots=True)
class _Paid:
    usd: float = 0.0
    accelerator_hours: float = 0.0


@dataclass(frozen=True, slots=True)
class TakenActuals:
    """Number of accepted rows or series of a source, rejected ones, and notes on their interpretation."""

    taken: int
    rejected: tuple[RejectedRows, ...]
    notes: tuple[str, ...] = ()


def bill_actuals(
    table: Table, path: str, regions: Mapping[str, str], plan: Plan, into: GatheredActuals
) -> TakenActuals:
    """Add the costs of a plan's pools in a bill.

    The cost of a kind of hardware in a region belongs to the plan's pools with both: to those of its pricing
    category if any are planned, divided by planned accelerators if there are several. Costs are scaled to the
    hours that the plan assumes for a period, covered in whole or in part, so that prices are comparable.

    Parameters
    ----------
    table : Table
        Billing export, FOCUS 1.0 to 1.2.
    path : str
        Name of the export, for messages.
    regions : Mapping[str, str]
        Region names of the fleet by those of the provider; others stay.
    plan : Plan
        Plan in force.
    into : GatheredActuals
        Measurements of other sources, to which the bill is added.

    Raises
    ------
    InputError
        A column is missing, or the bill has no costs of the plan.
    """
    check_header(path, table.columns, FOCUS_COLUMNS)
    reasons: Counter[str] = Counter()
    first: dict[str, str] = {}
    paid: dict[_Key, _Paid] = defaultdict(_Paid)
    spans: dict[str, tuple[datetime, datetime]] = {}
    taken = 0
    for line, written in table.records:
        record = without_nulls(written)
        try:
            instance, region, category, usd, hours = usage_of(record)
            start, end = charged_time(record, "ChargePeriodStart"), charged_time(record, "ChargePeriodEnd")
            key = (instance.hardware, regions.get(region, region), category, _period(plan, start))
            _require_pool(plan, key)
        except RejectedRowError as reason:
            reasons[str(reason)] += 1
            first.setdefault(str(reason), f"row {line}")
            continue
        taken += 1
        begin, finish = spans.get(key[3], (start, end))
        spans[key[3]] = (min(begin, start), max(finish, end))
        paid[key].usd += usd
        paid[key].accelerator_hours += hours * instance.accelerators
    rejected = tuple(
        RejectedRows(first[why] if many == 1 else f"{first[why]} and {many - 1} more", brief(why), many)
        for why, many in reasons.items()
    )
    if not taken:
        says = f"has no costs of the plan: {rejected[0].reason}" if rejected else "has no rows"
        raise InputError([Issue(path, 1, 1, "", says, "--region THEIRS=OURS names regions")])
    notes = [note for period, span in spans.items() for note in _scaled(plan, period, span, paid)]
    for key, sums in paid.items():
        notes += _share_out(plan, key, sums, spans[key[3]], into)
    return TakenActuals(taken, rejected, tuple(notes))


def _period(plan: Plan, start: datetime) -> str:
    for period, (begin, after) in period_dates(plan).items():
        if begin <= start.date() < after:
            return period
    raise RejectedRowError(f"is outside the periods of the plan ({', '.join(plan.periods)})")


def _require_pool(plan: Plan, key: _Key) -> None:
    hardware, region, _, _ = key
    if not _pools(plan, key):
        raise RejectedRowError(f"the plan has no pool of {hardware} in {region}")


def _pools(plan: Plan, key: _Key) -> dict[str, float]:
    """Return the pools that a cost may belong to, with the accelerators planned in the period."""
    hardware, region, category, period = key
    kinds = () if plan.inputs is None else plan.inputs.hardware
    parts = {each.name: each.part or each.name for each in kinds}
    found: dict[str, float] = {}
    for row in plan.pools:
        if (parts.get(row.hardware, row.hardware), row.region) == (hardware, region):
            had = row.accelerators if row.period == period else 0
            found[row.pool] = max(had, found.get(row.pool, 0.0))
    short: dict[str, dict[str, float]] = {kind: dict.fromkeys(found, 0.0) for kind in _KINDS.values()}
    for bought in plan.purchases:
        if bought.period == period and bought.pool in found and bought.kind in short:
            short[bought.kind][bought.pool] += bought.accelerators
    of_category = short.get(
        _KINDS.get(category, ""),
        {pool: had - sum(of[pool] for of in short.values()) for pool, had in found.items()},
    )
    for weights in (of_category, found):
        if planned := {pool: had for pool, had in weights.items() if had > 0}:
            return planned
    return found


def _scaled(
    plan: Plan, period: str, span: tuple[datetime, datetime], paid: Mapping[_Key, _Paid]
) -> list[str]:
    """Scale the costs of a period to the plan's hours, but not the accelerator-hours; return notes."""
    first, after = period_dates(plan)[period]
    months = (after.year - first.year) * MONTHS_PER_YEAR + after.month - first.month
    had, planned = _hours(span), months * HOURS_PER_MONTH
    for key, sums in paid.items():
        if key[3] == period:
            sums.usd *= planned / had
    if had == planned:
        return []
    return [f"{period}: the bill has {had:,.0f} hours; costs are scaled to the plan's {planned:,.0f}"]


def _hours(span: tuple[datetime, datetime]) -> float:
    return (span[1] - span[0]).total_seconds() / SECONDS_PER_HOUR


def _share_out(
    plan: Plan, key: _Key, sums: _Paid, span: tuple[datetime, datetime], into: GatheredActuals
) -> list[str]:
    pools = _pools(plan, key)
    whole = sum(pools.values())
    hours = _hours(span)
    for pool, had in pools.items():
        share = had / whole if whole else 1 / len(pools)
        at = (pool, key[3])
        into.usd[at] += sums.usd * share
        # Several categories pay for different accelerators of a pool: add them instead of averaging.
        mean = into.accelerators[at]
        mean.total, mean.weight = mean.total + sums.accelerator_hours / hours * share, 1.0
    into.periods.add(key[3])
    if len(pools) == 1:
        return []
    return [f"{key[3]}: {key[0]} in {key[1]} is divided between {', '.join(pools)} by planned accelerators"]
