"""Read actual demand, replica load, latency and cost from a table."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Final

from fleetplan.fleet.document.text_tables import TextRow, read_text_table
from fleetplan.fleet.errors import InputError, Issue
from fleetplan.fleet.figures import counted
from fleetplan.fleet.inventory.periods import QUARTERS
from fleetplan.fleet.units import MONTHS_PER_YEAR
from fleetplan.planner.plan import Plan

COLUMNS: Final = (
    "period", "date", "service", "region", "pool", "requests_per_s", "accelerators", "utilisation", "ttft_ms",
    "tpot_ms", "usd",
)  # fmt: skip

_MONTH: Final = len("2027-01")


@dataclass(slots=True)
class Mean:
    """A weighted mean."""

    total: float = 0.0
    weight: float = 0.0

    def add(self, value: float | None, weight: float = 1.0) -> None:
        """Add a value to the mean, unless it is None."""
        if value is not None:
            self.total += value * weight
            self.weight += weight

    @property
    def value(self) -> float | None:
        """Mean of the values; None without any."""
        return self.total / self.weight if self.weight else None


@dataclass(slots=True)
class ServedLoad:
    """Load of a service's replicas in a pool: served requests and busy accelerators.

    Attributes
    ----------
    requests : float
        Sum of requests/s over the rows. [requests/s]
    busy_accelerators : float
        Sum of accelerators times utilisation over the same rows.
    """

    requests: float = 0.0
    busy_accelerators: float = 0.0

    @property
    def rate(self) -> float | None:
        """Rate of an accelerator at full load; None if no accelerator was busy. [requests/s]"""
        return self.requests / self.busy_accelerators if self.busy_accelerators else None


@dataclass(frozen=True, slots=True)
class Actuals:
    """Measurements by period of the plan.

    Attributes
    ----------
    periods : tuple[str, ...]
        Periods with rows, in the order of the plan.
    demand : Mapping of (service, region, period)
        Largest rate of the rows. [requests/s]
    loads : Mapping of (service, pool, period)
        Load of the replicas.
    ttft_ms, tpot_ms : Mapping of (service, period)
        Means over the rows. [ms]
    utilisation : Mapping of (pool, period)
        Mean over the rows, 0 to 1.
    accelerators : Mapping of (pool, period)
        Mean over the rows that name only the pool.
    usd : Mapping of (pool, period)
        Sum over the rows. [USD]
    """

    periods: tuple[str, ...]
    demand: dict[tuple[str, str, str], float]
    loads: dict[tuple[str, str, str], ServedLoad]
    ttft_ms: dict[tuple[str, str], float]
    tpot_ms: dict[tuple[str, str], float]
    utilisation: dict[tuple[str, str], float]
    accelerators: dict[tuple[str, str], float]
    usd: dict[tuple[str, str], float]


@dataclass(slots=True)
class GatheredActuals:
    """Measurements collected from several sources, by the keys of `Actuals`."""

    demand: dict[tuple[str, str, str], float] = field(default_factory=dict)
    loads: dict[tuple[str, str, str], ServedLoad] = field(default_factory=lambda: defaultdict(ServedLoad))
    ttft: dict[tuple[str, str], Mean] = field(default_factory=lambda: defaultdict(Mean))
    tpot: dict[tuple[str, str], Mean] = field(default_factory=lambda: defaultdict(Mean))
    utilisation: dict[tuple[str, str], Mean] = field(default_factory=lambda: defaultdict(Mean))
    accelerators: dict[tuple[str, str], Mean] = field(default_factory=lambda: defaultdict(Mean))
    usd: dict[tuple[str, str], float] = field(default_factory=lambda: defaultdict(float))
    periods: set[str] = field(default_factory=set)
    """Periods with measurements."""

    def add_demand(self, service: str, region: str, period: str, requests_per_s: float) -> None:
        """Add a demand; the largest one of a period counts. [requests/s]"""
        key = (service, region, period)
        self.demand[key] = max(requests_per_s, self.demand.get(key, 0.0))
        self.periods.add(period)

    def actuals(self, plan: Plan) -> Actuals:
        """Return the collected measurements, with periods in the order of the plan."""

        def means(values: dict[tuple[str, str], Mean]) -> dict[tuple[str, str], float]:
            return {key: mean.value for key, mean in values.items() if mean.value is not None}

        return Actuals(
            periods=tuple(period for period in plan.periods if period in self.periods),
            demand=self.demand,
            loads={key: load for key, load in self.loads.items() if load.busy_accelerators > 0},
            ttft_ms=means(self.ttft),
            tpot_ms=means(self.tpot),
            utilisation=means(self.utilisation),
            accelerators=means(self.accelerators),
            usd={key: usd for key, usd in self.usd.items() if math.isfinite(usd) and usd > 0},
        )


def read_actuals(path: Path, plan: Plan, into: GatheredActuals) -> list[str]:
    """Add the measurements in a table; return notes on how costs of single months were scaled.

    Parameters
    ----------
    path : Path
        CSV file with `COLUMNS`. Each row belongs to a period, or to a date within one. A row with only a
        service states demand and latency, one with service and pool the load of replicas, one with only a
        pool its size, use and cost.
    plan : Plan
        Plan in force.
    into : GatheredActuals
        Measurements from other sources, to which the table is added.

    Raises
    ------
    InputError
        Lists every unusable line.
    """
    table = read_text_table(path, COLUMNS, ())
    when = [name for name in ("period", "date") if name in table.columns]
    if len(when) != 1:
        message = "needs one of the columns period and date"
        raise InputError(
            [Issue(str(path), 1, 1, "", message, f"periods of the plan: {', '.join(plan.periods)}")]
        )
    names = _Names(plan)
    into.periods |= {period for row in table.rows if (period := _take(row, plan, names, into)) is not None}
    table.require_valid()
    return _whole_periods(table.rows, plan, into)


def period_dates(plan: Plan) -> dict[str, tuple[date, date]]:
    """Return the first day of each dated period and the day after; older plans imply quarters by name."""
    if plan.inputs is not None and plan.inputs.periods:
        return {each.name: (each.first_day, each.day_after) for each in plan.inputs.periods}
    dated = {name: QUARTERS.dates(name) for name in plan.periods}
    return {name: dates for name, dates in dated.items() if dates is not None}


def _whole_periods(rows: Sequence[TextRow], plan: Plan, into: GatheredActuals) -> list[str]:
    """Scale costs stated for only some months of a period to the whole period; return notes."""
    months: dict[tuple[str, str], set[str]] = defaultdict(set)
    for row in rows:
        period = _period(row, plan) if row.cells.get("usd") and "service" not in row.cells else None
        if period is not None:
            months[row.cells["pool"], period].add(row.cells.get("date", ""))
    notes: dict[str, None] = {}
    for (pool, period), stated in months.items():
        first, after = period_dates(plan).get(period, (date.min, date.min))
        of = (after.year - first.year) * MONTHS_PER_YEAR + after.month - first.month
        if len(stated) < of and all(len(when) == _MONTH for when in stated):
            into.usd[pool, period] *= of / len(stated)
            had = counted(len(stated), "month")
            notes[f"{period}: costs of {had} are scaled to the {of} of the period"] = None
    return list(notes)


class _Names:
    """Names of services, regions and pools that rows may use."""

    def __init__(self, plan: Plan) -> None:
        demand = () if plan.inputs is None else plan.inputs.demand
        self.services = tuple(dict.fromkeys(row.service for row in demand))
        self.regions = tuple(dict.fromkeys(row.region for row in demand))
        self.pools = tuple(dict.fromkeys(row.pool for row in plan.pools))


def _take(row: TextRow, plan: Plan, names: _Names, into: GatheredActuals) -> str | None:
    """Add a row and return its period; note an issue and return None if it is outside the plan."""
    period = _period(row, plan)
    service = row.name("service", "service", names.services)
    pool = row.name("pool", "pool", names.pools)
    region = row.name("region", "region", names.regions)
    numbers = {name: row.number(name) for name in COLUMNS[5:]}
    if "service" not in row.cells and "pool" not in row.cells:
        row.note("service", "is missing, as is the pool")
    used = numbers["utilisation"]
    if used is not None and used > 1:
        row.note("utilisation", f"must be from 0 to 1, not {used:g}")
    if period is None:
        return None
    if service is not None and pool is not None:
        _take_load(row, (service, pool, period), numbers, into)
    elif service is not None:
        if region is None and "region" not in row.cells:
            region = names.regions[0] if len(names.regions) == 1 else None
            if region is None:
                row.note("region", "is missing; the plan has several")
        if region is not None and (rate := numbers["requests_per_s"]) is not None:
            into.add_demand(service, region, period, rate)
    elif pool is not None:
        into.accelerators[pool, period].add(numbers["accelerators"])
        into.utilisation[pool, period].add(used)
        into.usd[pool, period] += numbers["usd"] or 0.0
    if service is not None:
        weight = numbers["requests_per_s"] or 1.0
        into.ttft[service, period].add(numbers["ttft_ms"], weight)
        into.tpot[service, period].add(numbers["tpot_ms"], weight)
    return period


def _take_load(
    row: TextRow, key: tuple[str, str, str], numbers: dict[str, float | None], into: GatheredActuals
) -> None:
    rate, accelerators, used = (numbers[name] for name in ("requests_per_s", "accelerators", "utilisation"))
    given = [value is not None for value in (rate, accelerators, used)]
    if rate is not None and accelerators is not None and used is not None:
        into.loads[key].requests += rate
        into.loads[key].busy_accelerators += accelerators * used
    elif any(given):
        row.note(
            "utilisation", "a service in a pool needs requests_per_s, accelerators and utilisation together"
        )
    if numbers["usd"] is not None:
        row.note("usd", "belongs to a pool, not to a service in it")


def _period(row: TextRow, plan: Plan) -> str | None:
    periods = plan.periods
    if "date" not in row.cells:
        if "period" not in row.cells:
            row.note("period", "is missing")
        return row.name("period", "period", periods)
    written = row.cells["date"]
    try:
        day = date.fromisoformat((f"{written}-01" if len(written) == _MONTH else written)[:10])
    except ValueError:
        row.note("date", f"is not a date: {written!r}", "2027-01-31 or 2027-01")
        return None
    found = next((name for name, (first, after) in period_dates(plan).items() if first <= day < after), None)
    if found is None:
        row.note("date", f"{written} lies in no period of the plan", f"periods: {', '.join(periods)}")
        return None
    return found
