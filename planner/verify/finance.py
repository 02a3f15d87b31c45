"""Cost by period, service and pool, and carbon, computed again from placements, purchases and prices."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from fleetplan.fleet import tco
from fleetplan.planner.verify.plan_check import PlanCheck
from fleetplan.planner.verify.violations import Violation, differs

Key = tuple[str, str]
"""Scope (period, service or pool) and name."""


NOT_OF_A_POOL: Final = ("energy", "transition", "tidal", "data")
"""Kinds of cost that follow from what runs, not from what stands."""


def check_cost_rows(check: PlanCheck) -> Iterator[Violation]:
    """Every stated split of the cost adds up to what its parts cost."""
    energy, carbon = _energy_and_carbon(check)
    capacity = _capacity(check)
    stated_usd: dict[str, float] = defaultdict(float)
    for row in check.plan.costs:
        key = (row.scope, row.name)
        stated_usd[row.scope] += row.usd
        if differs(sum(row.usd_by_kind.values()), row.usd):
            yield Violation("cost", f"{row.scope} {row.name}: {row.usd} USD of {row.usd_by_kind}")
        if differs(row.usd_by_kind.get("energy", 0.0), energy[key]):
            yield Violation("cost", f"{row.scope} {row.name}: its energy costs {energy[key]} USD")
        if (row.carbon_kg is None) != (carbon[key] is None) or differs(
            row.carbon_kg or 0.0, carbon[key] or 0.0
        ):
            yield Violation("cost", f"{row.scope} {row.name}: {row.carbon_kg} of {carbon[key]} kg CO2")
        found = row.usd - sum(row.usd_by_kind.get(kind, 0.0) for kind in NOT_OF_A_POOL)
        if row.scope != "service" and differs(found, capacity[key]):
            yield Violation("cost", f"{row.scope} {row.name}: capacity of {found}, not {capacity[key]} USD")
    if not check.plan.costs:
        return
    idle = sum(use.idle_usd for use in check.plan.pools)
    for scope, rest in (("period", 0.0), ("service", idle), ("pool", 0.0)):
        if differs(stated_usd[scope] + rest, check.plan.objective_usd):
            yield Violation("cost", f"by {scope}: {stated_usd[scope]} USD and {rest} USD besides")


def _energy_and_carbon(check: PlanCheck) -> tuple[dict[Key, float], dict[Key, float | None]]:
    energy: dict[Key, float] = defaultdict(float)
    carbon: dict[Key, float | None] = defaultdict(float)
    for row, candidate in check.rows:
        names = [request_class.name for request_class in check.problem.services[row.service].classes]
        load = sum(
            rate / candidate.requests_per_s[names.index(name)]
            for name, rate in row.requests_per_s_by_class.items()
            if candidate.requests_per_s[names.index(name)] > 0
        )
        moment = check.problem.moment_of(row)
        q = moment.period
        # Where the hosts stand, whatever the row says of it.
        region = check.problem.regions[check.pool(row.pool).region]
        usd_per_kw = check.pool(row.pool).energy_usd_per_kw[q] * moment.weight
        usd = load * (candidate.power_kw or 0.0) * usd_per_kw
        grid = region.grid_kg_co2_per_kwh
        for key in (("period", row.period), ("service", row.service), ("pool", row.pool)):
            energy[key] += usd
            before = carbon[key]
            if grid is None or candidate.power_kw is None or before is None:
                carbon[key] = None
            else:
                hours = load * tco.HOURS_PER_QUARTER * moment.weight
                carbon[key] = before + hours * candidate.power_kw * region.pue * grid[q]
    return energy, carbon


def _capacity(check: PlanCheck) -> dict[Key, float]:
    """Cost without energy by period and pool. [USD]"""
    usd: dict[Key, float] = defaultdict(float)
    for pool in check.problem.pools:
        for q, period in enumerate(check.problem.periods):
            fixed = sum(values[q] for values in pool.fixed_cost_kinds.values())
            usd["period", period] += fixed
            usd["pool", pool.name] += fixed
    for purchase in check.plan.purchases:
        acquisition = check.acquisition(purchase.offer, purchase.pool)
        ordered = check.problem.periods.index(purchase.period)
        for table in acquisition.unit_cost_by_period.values():
            for period, cost in zip(check.problem.periods, table[ordered], strict=True):
                usd["period", period] += purchase.units * cost
                usd["pool", purchase.pool] += purchase.units * cost
    for retired in check.plan.retirements:
        retirement = check.pool(retired.pool).retirement
        left = check.problem.periods.index(retired.period)
        for rows in ({} if retirement is None else retirement.unit_cost_by_period).values():
            for period, cost in zip(check.problem.periods, rows[left], strict=True):
                usd["period", period] += retired.hosts * cost
                usd["pool", retired.pool] += retired.hosts * cost
    return usd
