"""Verify families 3, 5 and 7: units and power of pools, purchases, rentals and retirements."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

from fleetplan.fleet.figures import counted
from fleetplan.planner.plan import Placement, Purchase, Retired, SurvivingPlacement
from fleetplan.planner.problem import Candidate, Problem
from fleetplan.planner.verify.packing import accelerators_of, fits
from fleetplan.planner.verify.plan_check import PlanCheck
from fleetplan.planner.verify.prices import capex_usd, idle_kw, leaving_usd, saved_usd, unit_usd
from fleetplan.planner.verify.records import compared
from fleetplan.planner.verify.rounding import exceeds
from fleetplan.planner.verify.supply_rules import (
    FleetPool,
    counts_against_maximum,
    kind_of,
    last_period,
    may_leave,
    serves_in_horizon,
)
from fleetplan.planner.verify.violations import Violation, above

Runs = Placement | SurvivingPlacement
"""Rows that state the number of replicas in a pool."""


def purchase_faults(problem: Problem, pools: dict[str, FleetPool], row: Purchase) -> list[str]:
    """Return the faults of a purchase; empty if it is sound."""
    label = f"{row.offer} {row.period}"
    if row.pool not in pools:
        return [f"{label}: there is no pool {row.pool!r}"]
    if row.offer not in pools[row.pool].offers:
        return [f"{label}: no such offer supplies {row.pool}"]
    if row.period not in problem.periods:
        return [f"{label}: there is no such period"]
    return [f"{label}: the number of units is {row.units}, below 1"] if row.units < 1 else []


def retirement_faults(problem: Problem, pools: dict[str, FleetPool], row: Retired) -> list[str]:
    """Return the faults of a retirement; empty if it is sound."""
    label = f"{row.pool} {row.period}"
    if row.pool not in pools:
        return [f"{label}: there is no such pool"]
    if row.period not in problem.periods:
        return [f"{label}: there is no such period"]
    if not may_leave(problem.fleet, pools[row.pool], problem.periods.index(row.period)):
        return [f"{label}: no host may leave in this period"]
    return [f"{label}: the number of hosts is {row.hosts}, below 1"] if row.hosts < 1 else []


def check_capacity(check: PlanCheck) -> Iterator[Violation]:
    """Check that replicas can be packed into the units of their pool, less the reserve."""
    for m, moment in enumerate(check.problem.moments):
        sizes: dict[str, Counter[int]] = defaultdict(Counter)
        for row, candidate in check.at(m):
            pool = check.pool(row.pool)
            if (row.region, candidate.hardware) != (pool.region.name, pool.hardware.name):
                yield Violation("capacity", f"{row.config} cannot run in {pool.name}")
            sizes[row.pool][candidate.accelerators] += row.replicas
        for name, replicas in sizes.items():
            pool, q = check.pool(name), moment.period
            usable = check.units[name, q] - pool.maintenance_units(q) - pool.kept_units(replicas)
            if not fits(replicas, pool.accelerators_per_unit, usable):
                text = (
                    f"{name} {moment.label}: replicas of {counted(accelerators_of(replicas), 'accelerator')}"
                )
                units = f"{counted(usable, 'unit')} of {counted(pool.accelerators_per_unit, 'accelerator')}"
                text = f"{text} do not fit into {units}"
                yield Violation("capacity", text)


def check_power(check: PlanCheck) -> Iterator[Violation]:
    """Check that the replicas and the idle accelerators of a region stay within its power."""
    for region in check.problem.regions.values():
        if region.power_kw is None:
            continue
        for m, moment in enumerate(check.problem.moments):
            limit_kw = region.power_kw[moment.period]
            load_kw = region_kw(check, region.name, moment.period, check.at(m))
            if exceeds(load_kw, limit_kw):
                label = f"{region.name} {moment.label}: the power"
                yield Violation("power", above(label, load_kw, limit_kw, "kW"))


def region_kw(check: PlanCheck, region: str, period: int, rows: Iterable[tuple[Runs, Candidate]]) -> float:
    """Return the facility power of a region: replicas at full load, other accelerators at idle. [kW]"""
    running = list(rows)
    pools = (pool for pool in check.pools.values() if pool.region.name == region)
    return sum(pool_kw(check, pool, period, running) for pool in pools)


def pool_kw(check: PlanCheck, pool: FleetPool, period: int, rows: Iterable[tuple[Runs, Candidate]]) -> float:
    """Return the facility power of a pool that counts against its region's limit. [kW]"""
    total, busy = 0.0, 0
    for row, candidate in rows:
        if row.pool == pool.name:
            idle = idle_kw(pool, candidate.accelerators)
            total += max(candidate.power_kw or 0.0, idle) * row.replicas
            busy += candidate.accelerators * row.replicas
    held = check.units[pool.name, period] * pool.accelerators_per_unit
    return (total + idle_kw(pool, held - busy)) * check.problem.regions[pool.region.name].pue


def check_purchases(check: PlanCheck) -> Iterator[Violation]:
    """Check the units, periods and prices of purchases against their offers."""
    periods = check.problem.periods
    taken: dict[tuple[str, int], int] = defaultdict(int)
    expected = []
    for row in check.plan.purchases:
        q, pool = check.period_index[row.period], check.pool(row.pool)
        offer = pool.offers[row.offer]
        for held in range(len(periods)):
            if counts_against_maximum(offer, q, held):
                taken[offer.name, held] += row.units
        if row.units % offer.lot_units:
            text = f"{offer.name}: {counted(row.units, 'unit')} cannot come in lots of {offer.lot_units}"
            yield Violation("purchases", text)
        if not serves_in_horizon(offer, q, len(periods)):
            text = f"{offer.name}: units of {row.period} cannot serve within the horizon"
            yield Violation("purchases", text)
        usd = sum(sum(values) for values in unit_usd(check.problem.fleet, pool, offer, q).values())
        update = {
            "region": pool.region.name,
            "hardware": pool.hardware.name,
            "kind": kind_of(offer),
            "unit": offer.unit,
            "accelerators": row.units * pool.accelerators_per_unit,
            "capex_usd": row.units * capex_usd(offer),
            "usd": row.units * usd,
            "price_source": offer.price_source,
            "price_as_of": offer.price_as_of,
            "assumed": q >= len(periods) - check.problem.fleet.extended_by,
        }
        expected.append(row.model_copy(update=update))
    for offer in check.problem.fleet.offers:
        for q, (period, limit) in enumerate(zip(periods, offer.max_units, strict=True)):
            if limit is not None and taken[offer.name, q] > limit:
                units = counted(taken[offer.name, q], "unit")
                text = f"{offer.name} {period}: {units}, above the maximum of {limit}"
                yield Violation("purchases", text)
    key = ("period", "offer", "pool")
    yield from compared("cost", check.plan.purchases, expected, key, check.floor_usd)


def check_retirement(check: PlanCheck) -> Iterator[Violation]:
    """Check that only existing hosts leave, all by the end of their life, at the stated cost."""
    gone: Counter[str] = Counter()
    expected, fleet = [], check.problem.fleet
    for row in check.plan.retirements:
        gone[row.pool] += row.hosts
        pool, q = check.pool(row.pool), check.period_index[row.period]
        at_once = leaving_usd(fleet, pool, q)
        usd = sum(at_once.values()) + sum(sum(values) for values in saved_usd(fleet, pool, q).values())
        leased = pool.existing is not None and pool.existing.rented is not None
        update = {
            "kind": "return" if leased else "retire",
            "region": pool.region.name,
            "hardware": pool.hardware.name,
            "unit": "accelerator" if pool.accelerators_per_unit == 1 else "host",
            "usd": row.hosts * usd,
            "resale_usd": -row.hosts * at_once.get("resale", 0.0),
            "assumed": q >= len(fleet.periods) - fleet.extended_by,
        }
        expected.append(row.model_copy(update=update))
    yield from compared("retirement", check.plan.retirements, expected, ("period", "pool"), check.floor_usd)
    for pool in check.pools.values():
        if gone[pool.name] > pool.existing_units:
            leave = counted(gone[pool.name], "host", "leave")
            yield Violation("retirement", f"{pool.name}: {leave}, of {pool.existing_units} installed")
        must_go = last_period(fleet, pool) is not None
        if must_go and gone[pool.name] < pool.existing_units:
            yield Violation("retirement", f"{pool.name}: hosts stay beyond their end of life")
