"""Variances of demand, rates and prices of each service in money, by standard costing.

The planned cost of a service is flexed step by step to the measurements: first to its demand, then to the
rates of its replicas, then to the prices of its pools. Each step is one variance; together they lead to the
flexed cost. The remaining difference to the actual cost is capacity: bought differently, or idle.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from fleetplan.planner.plan import Plan
from fleetplan.planner.questions.track.actuals import Actuals
from fleetplan.planner.questions.track.planned_figures import PlannedFigures

Assumption = Literal["demand", "rates", "price"]

NOTABLE_RATIO: Final = 0.02
"""Smallest relative deviation that is reported; smaller ones are rounding and chance."""


@dataclass(frozen=True, slots=True)
class VarianceFinding:
    """A variance: the deviation of one assumption, and its effect on cost.

    Attributes
    ----------
    assumption : {"demand", "rates", "price"}
        Deviating assumption.
    service, period : str
        Service and period.
    place : str
        Regions of a demand, hardware of a rate, or pool of a price.
    ratio : float
        Actual over planned.
    usd : float
        Change in the flexed cost of the service in the period. [USD]
    """

    assumption: Assumption
    service: str
    period: str
    place: str
    ratio: float
    usd: float

    @property
    def is_notable(self) -> bool:
        """Return whether the deviation reaches `NOTABLE_RATIO`."""
        return abs(self.ratio - 1) >= NOTABLE_RATIO


@dataclass(frozen=True, slots=True)
class DemandRow:
    """Demand of a service in a region and period. [requests/s]"""

    service: str
    region: str
    period: str
    planned: float
    actual: float


@dataclass(frozen=True, slots=True)
class LatencyRow:
    """A latency of a service in a period: worst planned value, actual value and limit. [ms]"""

    service: str
    period: str
    figure: str
    limit_ms: float | None
    planned_ms: float | None
    actual_ms: float


@dataclass(frozen=True, slots=True)
class PoolRow:
    """A pool in a period: accelerators, utilisation and cost; None without a measurement. [USD]"""

    pool: str
    period: str
    planned_accelerators: float
    actual_accelerators: float | None
    planned_utilisation: float
    actual_utilisation: float | None
    planned_usd: float
    actual_usd: float | None


@dataclass(frozen=True, slots=True)
class PeriodCost:
    """Cost of all pools in a period. [USD]

    Attributes
    ----------
    planned : float
        Planned cost.
    actual : float or None
        Measured cost; None unless it is known for every pool.
    flexed : float
        Planned cost at the measured demand, rates and prices.
    """

    period: str
    planned: float
    actual: float | None
    flexed: float

    @property
    def capacity(self) -> float | None:
        """Actual less flexed cost: more or less capacity than the load requires. [USD]"""
        return None if self.actual is None else self.actual - self.flexed


@dataclass(frozen=True, slots=True)
class TrackReport:
    """A plan compared with actual figures.

    Attributes
    ----------
    fleet : str
        Name of the fleet.
    periods : tuple[str, ...]
        Periods with measurements.
    findings : tuple[VarianceFinding, ...]
        Variances, largest amount first.
    demand, latencies, pools, costs : tuple of rows
        Plan and measurements by subject.
    rate_ratio : Mapping[str, Mapping[str, float]]
        Measured over planned rates by service and hardware.
    demand_ratio : Mapping[str, Mapping[str, float]]
        Actual over planned demand in the last measured period, by service and region.
    price_ratio : Mapping[str, float]
        Actual over planned price of an accelerator in the last measured period, by pool.
    """

    fleet: str
    periods: tuple[str, ...]
    findings: tuple[VarianceFinding, ...]
    demand: tuple[DemandRow, ...]
    latencies: tuple[LatencyRow, ...]
    pools: tuple[PoolRow, ...]
    costs: tuple[PeriodCost, ...]
    rate_ratio: dict[str, dict[str, float]]
    demand_ratio: dict[str, dict[str, float]]
    price_ratio: dict[str, float]


def track(plan: Plan, actuals: Actuals) -> TrackReport:
    """Compare a plan with actual figures.

    Parameters
    ----------
    plan : Plan
        The plan; of several demand scenarios, the most likely one counts.
    actuals : Actuals
        Measurements.
    """
    planned = PlannedFigures(plan)
    demand = tuple(
        DemandRow(service, region, period, planned.demand.get((service, region, period), 0.0), actual)
        for (service, region, period), actual in sorted(actuals.demand.items())
    )
    pools = tuple(_pool_rows(planned, actuals))
    rates = _rate_ratios(planned, actuals)
    prices = {
        (row.pool, row.period): (row.actual_usd / row.actual_accelerators)
        / (row.planned_usd / row.planned_accelerators)
        for row in pools
        if row.actual_usd and row.actual_accelerators and row.planned_usd and row.planned_accelerators
    }
    findings = sorted(
        _findings(planned, demand, rates, prices, actuals.periods), key=lambda each: -abs(each.usd)
    )
    costs = []
    for period in actuals.periods:
        stated = [row.actual_usd for row in pools if row.period == period]
        known = [usd for usd in stated if usd is not None]
        cost = planned.usd_by_period[period]
        flexed = cost + sum(each.usd for each in findings if each.period == period)
        costs.append(PeriodCost(period, cost, sum(known) if len(known) == len(stated) else None, flexed))
    last = actuals.periods[-1]
    latest: dict[str, dict[str, float]] = defaultdict(dict)
    for row in demand:
        if row.period == max((r.period for r in demand if r.service == row.service), key=plan.periods.index):
            latest[row.service][row.region] = row.actual / row.planned if row.planned else 1.0
    return TrackReport(
        fleet=plan.fleet,
        periods=actuals.periods,
        findings=tuple(findings),
        demand=demand,
        latencies=tuple(_latency_rows(plan, planned, actuals)),
        pools=pools,
        costs=tuple(costs),
        rate_ratio=rates,
        demand_ratio=dict(latest),
        price_ratio={pool: ratio for (pool, period), ratio in prices.items() if period == last},
    )


def _rate_ratios(planned: PlannedFigures, actuals: Actuals) -> dict[str, dict[str, float]]:
    """Return measured over planned rates by service and hardware: expected over actual busy accelerators."""
    expected: dict[tuple[str, str], float] = defaultdict(float)
    busy: dict[tuple[str, str], float] = defaultdict(float)
    for (service, pool, period), load in actuals.loads.items():
        before = planned.loads.get((service, pool, period))
        if before is not None and before.rate:
            key = (service, planned.hardware[pool])
            expected[key] += load.requests / before.rate
            busy[key] += load.busy_accelerators
    found: dict[str, dict[str, float]] = defaultdict(dict)
    for (service, hardware), accelerators in busy.items():
        found[service][hardware] = expected[service, hardware] / accelerators
    return dict(found)


def _findings(
    planned: PlannedFigures,
    demand: tuple[DemandRow, ...],
    rates: dict[str, dict[str, float]],
    prices: dict[tuple[str, str], float],
    periods: tuple[str, ...],
) -> Iterator[VarianceFinding]:
    asked: dict[tuple[str, str], list[DemandRow]] = defaultdict(list)
    for row in demand:
        asked[row.service, row.period].append(row)
    # Unmeasured demand counts as planned, because rates and prices may be measured without it.
    keys = {(row.service, row.period): None for row in planned.all_placements if row.period in periods}
    for service, period in {**dict.fromkeys(asked), **keys}:
        rows = asked[service, period]
        growth = _growth(rows)
        by_pool = planned.usd_by_origin(service, period)
        if rows:
            yield from _demand_findings(service, period, rows, growth, by_pool)
        slower: dict[str, float] = defaultdict(float)
        for pool, by_origin in by_pool.items():
            usd = sum(cost * growth.get(origin, 1.0) for origin, cost in by_origin.items())
            hardware = planned.hardware[pool]
            ratio = rates.get(service, {}).get(hardware, 1.0)
            slower[hardware] += usd * (1 / ratio - 1)
            price = prices.get((pool, period), 1.0)
            if price != 1.0:
                yield VarianceFinding("price", service, period, pool, price, usd / ratio * (price - 1))
        for hardware, usd in slower.items():
            if hardware in rates.get(service, {}):
                yield VarianceFinding("rates", service, period, hardware, rates[service][hardware], usd)


def _growth(rows: list[DemandRow]) -> dict[str, float]:
    """Return actual over planned demand by region; one overall ratio if a region had no planned demand."""
    planned = sum(row.planned for row in rows)
    if planned and any(row.actual and not row.planned for row in rows):
        return dict.fromkeys((row.region for row in rows), sum(row.actual for row in rows) / planned)
    return {row.region: row.actual / row.planned for row in rows if row.planned}


def _demand_findings(
    service: str,
    period: str,
    rows: list[DemandRow],
    growth: dict[str, float],
    by_pool: dict[str, dict[str, float]],
) -> Iterator[VarianceFinding]:
    """Yield the cost of demand deviations: one for all regions if their ratios agree, else one per region."""
    more = {
        region: (ratio - 1) * sum(by_origin.get(region, 0.0) for by_origin in by_pool.values())
        for region, ratio in growth.items()
    }
    planned = sum(row.planned for row in rows)
    overall = sum(row.actual for row in rows) / planned if planned else 1.0
    if all(abs(ratio - overall) < NOTABLE_RATIO for ratio in growth.values()):
        regions = ", ".join(row.region for row in rows)
        yield VarianceFinding("demand", service, period, regions, overall, sum(more.values()))
        return
    for region, usd in more.items():
        yield VarianceFinding("demand", service, period, region, growth[region], usd)


def _latency_rows(plan: Plan, planned: PlannedFigures, actuals: Actuals) -> Iterator[LatencyRow]:
    services = {} if plan.inputs is None else {each.name: each for each in plan.inputs.services}
    for figure, measured in (("ttft_ms", actuals.ttft_ms), ("tpot_ms", actuals.tpot_ms)):
        for (service, period), value in sorted(measured.items()):
            rows = [
                getattr(row, figure)
                for row in planned.placements
                if (row.service, row.period) == (service, period) and getattr(row, figure) is not None
            ]
            limit = getattr(services[service], figure) if service in services else None
            yield LatencyRow(service, period, figure, limit, max(rows, default=None), value)


def _pool_rows(planned: PlannedFigures, actuals: Actuals) -> Iterator[PoolRow]:
    for period in actuals.periods:
        for pool in dict.fromkeys(row.pool for row in planned.pools if row.period == period):
            rows = [row for row in planned.pools if (row.pool, row.period) == (pool, period)]
            key = (pool, period)
            if not any(row.accelerators for row in rows) and key not in actuals.usd:
                continue
            yield PoolRow(
                pool,
                period,
                max(row.accelerators for row in rows),
                actuals.accelerators.get(key),
                max(row.utilisation for row in rows),
                actuals.utilisation.get(key),
                planned.pool_usd[key],
                actuals.usd.get(key),
            )
