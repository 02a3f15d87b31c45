"""Family 6 and every cost term."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Final

from fleetplan.fleet.tco import HOURS_PER_QUARTER
from fleetplan.planner.problem import Phase
from fleetplan.planner.problem.capacity_costs import CAPITAL_KINDS
from fleetplan.planner.units import LOAD_UNITS_PER_REPLICA, USD_RESOLUTION
from fleetplan.planner.verify.changes import transition_usd
from fleetplan.planner.verify.day import tidal_usd
from fleetplan.planner.verify.plan_check import PlanCheck
from fleetplan.planner.verify.statements import cost_statements
from fleetplan.planner.verify.violations import Violation, differs, exceeds

ENERGY_ROUNDING_RATIO: Final = 1e-4
"""What the energy of the solver's model may differ by: it is rounded by load unit."""


def check_budgets(check: PlanCheck) -> Iterator[Violation]:
    """Capital, operating cost and TCO stay within their limits."""
    capex: dict[str, float] = defaultdict(float)
    for purchase in check.plan.purchases:
        per_unit = check.acquisition(purchase.offer, purchase.pool).capex_usd_per_unit
        capex[purchase.period] += purchase.units * per_unit
    for period, limit in zip(
        check.problem.periods, check.problem.fleet.budget.capex_usd_by_period, strict=True
    ):
        if limit is not None and exceeds(capex[period], limit):
            yield Violation("budgets", f"capex {period}: {capex[period]} of {limit} USD")
    kinds = cost_kinds(check)
    totals = (
        ("capex", sum(capex.values()), check.problem.fleet.budget.capex_usd),
        (
            "opex",
            sum(kinds.values()) - sum(kinds[kind] for kind in CAPITAL_KINDS),
            check.problem.fleet.budget.opex_usd,
        ),
        ("TCO", sum(kinds.values()), check.problem.fleet.budget.tco_usd),
    )
    for name, spent, limit in totals:
        if limit is not None and exceeds(spent, limit):
            yield Violation("budgets", f"{name}: {spent} of {limit} USD")


def check_cost(check: PlanCheck) -> Iterator[Violation]:
    """The stated cost is the cost, and the bound is below it."""
    kinds = cost_kinds(check)
    total = sum(kinds.values())
    stated = check.plan.objective_usd
    if differs(total, stated):
        yield Violation("cost", f"the plan states {stated} USD, its parts cost {total} USD")
    if exceeds(check.plan.bound_usd, stated):
        yield Violation("cost", f"the bound {check.plan.bound_usd} exceeds the cost {stated} USD")
    model_usd = check.plan.model_usd
    # Costs of a load unit are rounded to the nearest objective unit.
    replicas = sum(row.replicas for row, _ in check.rows)
    rounding = max(
        ENERGY_ROUNDING_RATIO * (kinds["energy"] + kinds["data"]),
        replicas * LOAD_UNITS_PER_REPLICA / 2 / USD_RESOLUTION,
    )
    if model_usd is not None and exceeds(total - rounding, model_usd):
        yield Violation("cost", f"the parts cost {total} USD, the solver's model charged {model_usd} USD")
    split = sum(row.usd for row in check.plan.placements) + sum(use.idle_usd for use in check.plan.pools)
    if differs(split, stated):
        yield Violation("cost", f"placements and idle capacity cost {split} USD of {stated} USD")
    yield from cost_statements(check.problem, check.plan, kinds)


def cost_kinds(check: PlanCheck) -> dict[str, float]:
    """TCO over the horizon by kind, from the fleet's prices."""
    kinds: dict[str, float] = defaultdict(float)
    for pool in check.problem.pools:
        for kind, values in pool.fixed_cost_kinds.items():
            kinds[kind] += sum(values)
    for purchase in check.plan.purchases:
        acquisition = check.acquisition(purchase.offer, purchase.pool)
        ordered = check.problem.periods.index(purchase.period)
        for kind, values in acquisition.unit_cost_kinds.items():
            kinds[kind] += purchase.units * values[ordered]
    for retired in check.plan.retirements:
        retirement = check.pool(retired.pool).retirement
        left = check.problem.periods.index(retired.period)
        for kind, rows in ({} if retirement is None else retirement.unit_cost_by_period).items():
            kinds[kind] += retired.hosts * sum(rows[left])
    kinds["energy"] = energy_usd(check)
    kinds["transition"] = transition_usd(check)
    kinds["tidal"] = tidal_usd(check)
    kinds["data"] = data_usd(check)
    return kinds


def energy_usd(check: PlanCheck, scenario: str | None = None) -> float:
    """Expected energy cost of what runs; of one demand scenario alone where one is named. [USD]"""
    total = 0.0
    for row, candidate in check.rows:
        if scenario not in (None, row.scenario):
            continue
        names = [c.name for c in check.problem.services[row.service].classes]
        load = sum(
            rate / candidate.requests_per_s[names.index(name)]
            for name, rate in row.requests_per_s_by_class.items()
            if candidate.requests_per_s[names.index(name)] > 0
        )
        moment = check.problem.moment_of(row)
        usd_per_kw = check.pool(row.pool).energy_usd_per_kw[moment.period] * moment.weight
        total += load * (candidate.power_kw or 0.0) * usd_per_kw
    return total


def data_usd(check: PlanCheck, scenario: str | None = None) -> float:
    """Cost of the way of requests of other regions; of one demand scenario where one is named. [USD]"""
    total = 0.0
    yearly = 1 + check.problem.fleet.finance.discount_rate_per_year
    for row, candidate in check.rows:
        if candidate.phase is Phase.DECODE or scenario not in (None, row.scenario):
            continue
        moment = check.problem.moment_of(row)
        seconds = HOURS_PER_QUARTER * 3600 * moment.hours_share * moment.probability
        gb = check.problem.services[row.service].mb_per_request / 1000
        for origin, rates in row.requests_per_s_by_origin.items():
            usd_per_gb = check.problem.regions[origin].network_usd_per_gb.get(row.region, 0.0)
            paid = sum(rates.values()) * seconds * gb * usd_per_gb
            total += paid / yearly ** ((moment.period + 1) / 4)
    return total
